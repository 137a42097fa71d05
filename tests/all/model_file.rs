//! A model's parts and its file: what does not fit together is refused, what is saved comes back, and a
//! spoiled file is told by what is wrong with it.

use crate::common::{self, TempDir};
use crate::models::{constant, history, random};
use crate::spoil::{File, Tensor};
use querent::data::Normalization;
use querent::nmppg::Config;
use querent::nn::Tensors;
use querent::policy::history::Epoch;
use querent::{Error, Model, Problem, Step};
use safetensors::Dtype;
use std::path::Path;

/// What does not fit together is refused before there is a model.
#[test]
fn contradicting_parts_are_refused() {
    type Parts = (Problem, Normalization, Config, Vec<Tensors>, Vec<Tensors>, Vec<Epoch>);
    let refused = |fragment: &str, spoil: &dyn Fn(&mut Parts)| {
        let model = random(&[0, 1, 1], 2, [[3, 4], [5, 6]], None, 1);
        let mut parts = (
            model.problem().clone(),
            model.normalization().clone(),
            serde_json::from_value(model.settings().clone()).expect("settings"),
            model.network("policy"),
            model.network("predictor"),
            model.history().to_vec(),
        );
        spoil(&mut parts);
        let (problem, normalization, config, policy, predictor, history) = parts;
        let error = querent::nmppg::model(problem, normalization, config, policy, predictor, history)
            .expect_err(fragment);
        assert!(matches!(error, Error::Config(_)) && error.to_string().contains(fragment), "{error}");
    };
    refused("the policy has 2 layers", &|parts| parts.3.truncate(2));
    refused("layer 0 of the policy has 14 weights and 3 biases, but it leads from 5 to 3", &|parts| {
        parts.3[0].weight.pop();
    });
    refused("layer 1 of the policy has 12 weights and 4 biases, but it leads from 3 to 5", &|parts| {
        parts.2.networks.policy = [3, 5]
    });
    refused("layer 0 of the policy", &|parts| parts.2.networks.policy = [usize::MAX, 4]);
    refused("layer 2 of the predictor has 12 weights and 1 biases", &|parts| parts.4[2].bias.truncate(1));
    refused("layer 2 of the predictor", &|parts| {
        parts.0 =
            Problem::new(parts.0.features().to_vec(), vec![0, 1, 1], ["a", "b", "c"].map(Into::into).into())
                .expect("valid");
    });
    refused("element 7 of `predictor.1.weight` is NaN", &|parts| parts.4[1].weight[7] = f64::NAN);
    refused("element 0 of `policy.2.bias` is 1e39", &|parts| parts.3[2].bias[0] = 1e39);
    refused("outputs overflow", &|parts| {
        parts.4[0].bias.fill(1.0);
        parts.4[1].weight.fill(1e30);
        parts.4[2].weight.fill(1e30);
    });
    refused("2 means and 3 scales for 3 columns", &|parts| parts.1.mean.truncate(2));
    refused("column 1 has mean", &|parts| parts.1.scale[1] = 0.0);
    refused("column 2 has mean inf", &|parts| parts.1.mean[2] = f32::INFINITY);
    refused("alpha is -1", &|parts| parts.2.alpha = (-1.0).into());
    refused("entry 1 of the training history cannot be stored", &|parts| {
        parts.5[1].train = parts.5[1].train.clone().with("entropy", f64::NAN)
    });
}

#[test]
fn a_model_comes_back_from_its_file_with_equal_bits() {
    let folder = TempDir::new("model");
    let file = folder.0.join("model.safetensors");
    let model = random(&[2, 0, 1, 0, 2, 3], 3, [[31, 18], [20, 7]], Some(3), 4);
    model.save(&file).expect("saves");
    let loaded = Model::load(&file).expect("loads");
    assert_eq!(loaded, model);
    assert_eq!(loaded.version(), env!("CARGO_PKG_VERSION"));
    assert_eq!((loaded.steps(), loaded.problem().group_of_column()), (3, &[2, 0, 1, 0, 2, 3][..]));
    assert_eq!(loaded.history(), history());
    let bits = |tensors: Vec<Tensors>| -> Vec<u64> {
        tensors.iter().flat_map(|t| t.weight.iter().chain(&t.bias)).map(|value| value.to_bits()).collect()
    };
    assert_eq!(bits(loaded.network("policy")), bits(model.network("policy")));
    assert_eq!(bits(loaded.network("predictor")), bits(model.network("predictor")));
    let probabilities = |model: &Model| {
        let mut session = model.session();
        session.observe(2, [0.3, -0.7]).expect("taken");
        (session.next(), session.predict().iter().map(|p| p.to_bits()).collect::<Vec<_>>())
    };
    assert_eq!(probabilities(&loaded), probabilities(&model));
    // Over an older file, and again.
    loaded.save(&file).expect("saves");
    assert_eq!(Model::load(&file).expect("loads"), model);
    assert_eq!(folder.files(), ["model.safetensors"]);
}

/// A file that was written when settings were not nested, had other names and epochs other fields.
#[test]
fn a_model_of_an_earlier_version_asks_as_it_did() {
    let model = Model::load(common::assets().join("models/v1.safetensors")).expect("loads");
    let config: querent::nmppg::Config = serde_json::from_value(model.settings().clone()).expect("settings");
    assert_eq!((config.alpha.one(), config.horizon, config.batch), (Some(0.03), Some(4), 24));
    assert_eq!((config.networks.policy, config.networks.predictor), ([8, 6], [6, 5]));
    assert_eq!((config.schedule.stage_epochs, &config.schedule.temperatures[..]), (1, &[0.5, 0.1][..]));
    assert_eq!((config.schedule.ema, config.gradient.rollouts), (0.0025, 2));
    assert_eq!((config.predictor.submasks, config.predictor.input_noise), (0.8, 0.35));
    assert_eq!((model.history().len(), model.history()[1].settings["tau_soft"]), (3, 0.5));

    let mut session = model.session();
    session.given([0.5, -1.0]).expect("taken");
    let mut asked = Vec::new();
    while let Step::Acquire(feature) = session.next() {
        let groups = model.problem().group_of_column();
        let columns = groups.iter().filter(|&&group| group as usize == feature).count();
        session.observe(feature, vec![0.3 * (feature + 1) as f32; columns]).expect("taken");
        asked.push(feature);
    }
    let bits: Vec<u32> = session.predict().iter().map(|p| p.to_bits()).collect();
    assert_eq!((asked, bits), (vec![0], vec![1050487204, 1048663872, 1054965532]));

    let folder = TempDir::new("model-earlier");
    let file = folder.0.join("model.safetensors");
    model.save(&file).expect("saves");
    assert_eq!(Model::load(&file).expect("loads"), model);
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing_behind() {
    let folder = TempDir::new("model-unwritable");
    let model = constant(&[1.0, 0.0], &[1.0], None);
    let missing = folder.0.join("no such folder").join("model.safetensors");
    let taken = folder.0.join("taken");
    std::fs::create_dir_all(taken.join("inside")).expect("a folder");
    for path in [&missing, &taken] {
        let error = model.save(path).expect_err("should have failed");
        assert!(
            matches!(error, Error::Io { .. }) && error.to_string().contains(&*path.to_string_lossy()),
            "{error}"
        );
        let error = Model::load(path).expect_err("should have failed");
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }
    assert_eq!(folder.files(), ["taken"]);
}

/// Changes the model's JSON text.
fn describe_model(file: &mut File, change: impl Fn(&mut serde_json::Value)) {
    let text = file.metadata.get_mut("model").expect("there");
    let mut value = serde_json::from_str(text).expect("JSON");
    change(&mut value);
    *text = value.to_string();
}

fn refused(path: &Path, fragment: &str) {
    let error = Model::load(path).expect_err(fragment);
    assert!(matches!(error, Error::File { .. }), "{fragment}: {error:?}");
    let text = error.to_string();
    assert!(text.contains(fragment) && text.contains(&*path.to_string_lossy()), "`{fragment}`: {text}");
}

#[test]
fn spoiled_files_are_refused_with_what_is_wrong() {
    let folder = TempDir::new("model-spoiled");
    let path = folder.0.join("model.safetensors");
    random(&[0, 1, 1, 2], 2, [[3, 4], [5, 6]], None, 8).save(&path).expect("saves");
    let good = File::read(&path);
    let spoil = |fragment: &str, change: &dyn Fn(&mut File)| {
        let mut file = good.clone();
        change(&mut file);
        file.write(&path);
        refused(&path, fragment);
    };

    spoil("not a model of querent", &|file| file.metadata.clear());
    spoil("not a model of querent", &|file| drop(file.metadata.insert("format".into(), "pt".into())));
    spoil("it says it is a `querent model 3`, but this version reads a `querent model 2`", &|file| {
        file.metadata.insert("format".into(), "querent model 3".into());
    });
    spoil("`querent checkpoint 1`", &|file| {
        file.metadata.insert("format".into(), "querent checkpoint 1".into());
    });
    spoil("no metadata `model`", &|file| drop(file.metadata.remove("model")));
    spoil("no metadata `querent`", &|file| drop(file.metadata.remove("querent")));

    spoil("tensor `policy.1.bias` is missing", &|file| drop(file.tensors.remove("policy.1.bias")));
    spoil("unknown tensor `policy.3.bias`", &|file| {
        let copy = file.tensors["policy.1.bias"].clone();
        file.tensors.insert("policy.3.bias".into(), copy);
    });
    let tensor = |file: &mut File, name: &str, change: &dyn Fn(&mut Tensor)| {
        change(file.tensors.get_mut(name).expect("there"));
    };
    spoil("tensor `policy.0.weight` has shape [7, 3], expected [3, 7]", &|file| {
        tensor(file, "policy.0.weight", &|tensor| tensor.shape = vec![7, 3]);
    });
    spoil("tensor `predictor.2.bias` has shape [1], expected [2]", &|file| {
        tensor(file, "predictor.2.bias", &|tensor| {
            (tensor.shape, tensor.bytes) = (vec![1], tensor.bytes[..4].to_vec())
        });
    });
    spoil("tensor `policy.2.bias` has type I32", &|file| {
        tensor(file, "policy.2.bias", &|tensor| tensor.dtype = Dtype::I32);
    });
    for value in [f32::NAN, f32::INFINITY] {
        spoil("element 3 of `predictor.1.weight` is", &|file| {
            tensor(file, "predictor.1.weight", &|tensor| {
                tensor.bytes[12..16].copy_from_slice(&value.to_le_bytes());
            });
        });
    }

    for text in ["", "{", "[]", "null", "{\"problem\":", "\u{0}"] {
        spoil("`model` cannot be read", &|file| drop(file.metadata.insert("model".into(), text.into())));
    }
    use serde_json::json;
    let describe = |fragment: &str, pointer: &str, value: serde_json::Value| {
        spoil(fragment, &|file| {
            describe_model(file, |text| {
                *text.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value.clone();
            });
        });
    };
    describe("column 0 belongs to features 0 and 1", "/problem/features/1/columns", json!([0, 2]));
    describe("feature 0 (`feature \"0\" ü`) has column 4", "/problem/features/0/columns", json!([4]));
    describe("has column 4294967295", "/problem/features/2/columns", json!([u32::MAX]));
    describe("`model` cannot be read", "/problem/features/2/columns", json!([-1]));
    describe("feature 2 (`feature \"2\" ü`) has no column", "/problem/features/2/columns", json!([]));
    describe("its cost is -1", "/problem/features/0/cost", json!(-1));
    describe("there is no feature", "/problem/features", json!([]));
    describe("at least two", "/problem/classes", json!(["one"]));
    describe("1 class weights for 2 classes", "/problem/class_weights", json!([1]));
    describe("3 means and 4 scales for 4 columns", "/normalization/mean", json!([0, 0, 0]));
    describe("column 1 has mean", "/normalization/scale", json!([1, 0, 1, 1]));
    describe("number out of range", "/normalization/mean", json!([1e300, 0, 0, 0]));
    describe("the horizon is 0, but there are 3 features", "/horizon", json!(0));
    describe("the horizon is 4, but there are 3 features", "/horizon", json!(4));
    describe("`model` cannot be read", "/horizon", json!(1.5));
    describe("alpha is -1", "/config/alpha", json!(-1));
    describe("`config` cannot be read: unknown field `x`", "/config", json!({"x": 1}));
    describe(
        "tensor `policy.0.weight` has shape [3, 7], expected [8, 7]",
        "/config/networks/policy",
        json!([8, 4]),
    );
    describe("expected [18446744073709551615, 7]", "/config/networks/policy", json!([u64::MAX, 4]));
    describe("`model` cannot be read", "/history/1/seconds", json!(null));
    spoil("`model` cannot be read: missing field `history`", &|file| {
        describe_model(file, |text| drop(text.as_object_mut().expect("an object").remove("history")));
    });

    good.write(&path);
    Model::load(&path).expect("the file that was spoiled is a good one");
}

#[test]
fn truncated_and_foreign_files_are_refused() {
    let folder = TempDir::new("model-foreign");
    let path = folder.0.join("model.safetensors");
    let model = random(&[0, 1, 1, 2], 2, [[3, 4], [5, 6]], None, 8);
    model.save(&path).expect("saves");
    let bytes = std::fs::read(&path).expect("reads");
    for end in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        std::fs::write(&path, &bytes[..end]).expect("writes");
        refused(&path, "not a model of querent, or cut off");
    }
    std::fs::write(&path, [&bytes[..], b"more"].concat()).expect("writes");
    refused(&path, "not a model of querent, or cut off");
    for foreign in [&b"name,cost\nx1,1\n"[..], b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &[0xff; 64]] {
        std::fs::write(&path, foreign).expect("writes");
        refused(&path, "not a model of querent, or cut off");
    }
    let golden = std::fs::read_dir(common::assets().join("golden")).expect("lists").flatten();
    let golden =
        golden.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "safetensors"));
    refused(&golden.expect("a golden"), "not a model of querent");

    // A bit flipped in every third byte of the header: an error or a model, never a panic.
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let mut survivors = 0;
    for at in (0..header).step_by(3) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, &flipped).expect("writes");
        match Model::load(&path) {
            Ok(model) => {
                survivors += 1;
                model.session().observe(0, 0.5).expect("a model is always usable");
            }
            Err(Error::File { .. }) => {}
            Err(other) => panic!("byte {at}: {other:?}"),
        }
    }
    assert!(survivors < header / 6, "{survivors} of {} were not refused", header / 3);
}

/// One model has one file, however often it is written: what it says of itself is in order, whatever a hash map does.
#[test]
fn a_model_has_the_same_bytes_each_time() {
    let model = random(&[0, 1, 1], 2, [[3, 4], [5, 6]], None, 1);
    let bytes = model.to_bytes().expect("described");
    for _ in 0..8 {
        let again = Model::from_bytes(&bytes).expect("loads").to_bytes().expect("described");
        assert!(again == bytes, "other bytes");
    }
    // The control: another model has others.
    let other = random(&[0, 1, 1], 2, [[3, 4], [5, 6]], None, 2);
    assert!(other.to_bytes().expect("described") != bytes);
}
