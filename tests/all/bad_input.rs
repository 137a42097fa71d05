//! Bad input of every kind is refused with an error that names the culprit: no panic, no result made of
//! nonsense, no file left behind.

use crate::common::{TempDir, assets};
use crate::replay::Case;
use crate::spoil::{File, Tensor};
use querent::data::synthetic;
use querent::nmppg::{Checkpoint, Config, Stage, Stepper};
use querent::{Engine, Error};
use safetensors::Dtype;
use std::path::{Path, PathBuf};

/// A golden with everything optional in it: groups, class weights, dropout.
fn golden() -> File {
    File::read(&assets().join("golden/dropout_groups_st.safetensors"))
}

/// How a file is spoilt.
type Change = fn(&mut File);

/// What `examples/replay` does between its arguments and its exit code.
fn replay(case: &Path, out: &Path) -> querent::Result<()> {
    Case::load(case)?.run_blocking(&Engine::cpu())?.save(out)
}

/// Folders for spoilt cases and for results, of which there must be none.
struct Bench {
    cases: TempDir,
    results: TempDir,
}

impl Bench {
    fn new(name: &str) -> Self {
        let cases = TempDir::new(&format!("bad-{name}"));
        let results = TempDir::new(&format!("bad-{name}-out"));
        Self { cases, results }
    }

    fn case(&self) -> PathBuf {
        self.cases.0.join("case.safetensors")
    }

    /// The error of replaying a file of these bytes. Panics if there is none, or if it left a file.
    fn refuse_bytes(&self, what: &str, bytes: &[u8]) -> String {
        std::fs::write(self.case(), bytes).expect("writes");
        self.refuse_path(what, &self.case())
    }

    fn refuse_path(&self, what: &str, case: &Path) -> String {
        let at_once = Case::load(case).err().map(|error| error.to_string());
        let error = replay(case, &self.results.0.join("out.safetensors"))
            .expect_err(&format!("{what}: should have been refused"));
        assert_eq!(at_once, Some(error.to_string()), "{what}: should have been refused while loading");
        assert_eq!(self.results.files(), [""; 0], "{what}: left a file");
        error.to_string()
    }

    /// The error of replaying the golden after a change, which must name all of `names`.
    fn refuse(&self, what: &str, names: &[&str], change: impl FnOnce(&mut File)) {
        let mut file = golden();
        change(&mut file);
        let message = self.refuse_bytes(what, &file.bytes());
        for name in names.iter().chain(&["case.safetensors"]) {
            assert!(message.contains(name), "{what}: `{name}` is not in: {message}");
        }
    }
}

/// The control: the same way, unspoilt, succeeds and leaves its one file.
#[test]
fn an_unspoilt_case_is_replayed() {
    let bench = Bench::new("control");
    golden().write(&bench.case());
    replay(&bench.case(), &bench.results.0.join("out.safetensors")).expect("replays");
    assert_eq!(bench.results.files(), ["out.safetensors"]);
}

#[test]
fn wrong_shapes_name_the_tensor() {
    let bench = Bench::new("shapes");
    let inputs: Vec<(String, Tensor)> =
        golden().tensors.into_iter().filter(|(name, _)| !name.starts_with("expect.")).collect();
    assert!(inputs.len() >= 20, "the golden has lost tensors");
    for (name, tensor) in inputs {
        let quoted = format!("`{name}`");
        bench.refuse(&format!("{name} with one more dimension"), &[&quoted], |file| {
            file.tensor(&name).shape.insert(0, 1);
        });
        bench.refuse(&format!("{name} without dimensions"), &[&quoted], |file| {
            *file.tensor(&name) = Tensor::f32(&[], &[1.0]);
        });
        for dimension in 0..tensor.shape.len() {
            // Where a tensor defines a size, the first one that disagrees with it is named.
            let named = match (name.as_str(), dimension) {
                ("x", 0) => "`y`",
                ("x", _) => "`group_of_column`",
                ("cost", _) => "`policy.0.weight`",
                ("class_weight", _) => "3 class weights for 4 classes",
                ("policy.2.bias", _) => "`policy.2.bias`",
                (bias, _) if bias.ends_with(".bias") => &quoted.replace("bias", "weight"),
                _ => &quoted,
            };
            bench.refuse(&format!("{name} shorter in dimension {dimension}"), &[named], |file| {
                file.tensor(&name).shorten(dimension);
            });
        }
    }
    bench.refuse("no rows", &["batch is 0"], |file| {
        for (name, shape) in [("x", vec![0, 12]), ("y", vec![0]), ("gumbel", vec![4, 0, 8])] {
            let tensor = file.tensor(name);
            (tensor.shape, tensor.bytes) = (shape, Vec::new());
        }
    });
    bench.refuse("no classes", &["`predictor.2.bias` is empty"], |file| {
        *file.tensor("predictor.2.bias") = Tensor::f32(&[0], &[]);
    });
}

#[test]
fn values_that_are_not_numbers_name_tensor_and_element() {
    let bench = Bench::new("values");
    let reals: Vec<String> = golden()
        .tensors
        .into_iter()
        .filter(|(name, tensor)| tensor.dtype == Dtype::F32 && !name.starts_with("expect."))
        .map(|(name, _)| name)
        .collect();
    for name in &reals {
        for (value, text) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
            let quoted = format!("`{name}`");
            bench.refuse(&format!("{text} in {name}"), &[&quoted, "element 2 ", text], |file| {
                file.tensor(name).put_f32(2, value);
            });
        }
    }
    // A finite f64 may be infinite as f32.
    bench.refuse("1e300 in x", &["row 0, column 0", "inf"], |file| {
        let x = file.tensor("x");
        let mut values: Vec<f64> = x.words().map(|b| f64::from(f32::from_le_bytes(b))).collect();
        values[0] = 1e300;
        x.dtype = Dtype::F64;
        x.bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    });
    bench.refuse("x in half precision", &["`x`", "F16"], |file| {
        let x = file.tensor("x");
        x.dtype = Dtype::F16;
        x.bytes.truncate(x.bytes.len() / 2);
    });
}

#[test]
fn labels_costs_groups_and_weights_out_of_range_are_named() {
    let bench = Bench::new("ranges");
    let label = |value: i32| move |file: &mut File| file.tensor("y").put_i32(3, value);
    bench.refuse("label 4 of 4", &["row 3", "label 4", "0 to 3"], label(4));
    bench.refuse("a negative label", &["row 3", "label -1"], label(-1));
    bench.refuse("the largest label", &["row 3", "label 2147483647"], label(i32::MAX));
    bench.refuse("a negative cost", &["feature 5", "cost is -0.5"], |file| {
        file.tensor("cost").put_f32(5, -0.5);
    });
    bench.refuse("a group that is not there", &["column 2", "feature 7", "7 features"], |file| {
        file.tensor("group_of_column").put_i32(2, 7);
    });
    bench.refuse("a negative group", &["column 2", "feature -1"], |file| {
        file.tensor("group_of_column").put_i32(2, -1);
    });
    bench.refuse("a feature without a column", &["has no column"], |file| {
        let groups = file.tensor("group_of_column");
        (0..12).for_each(|column| groups.put_i32(column, 0));
    });
    bench.refuse("a negative class weight", &["class 1", "weight is -2"], |file| {
        file.tensor("class_weight").put_f32(1, -2.0);
    });
    bench.refuse("no class weighs anything", &["every class weight is zero"], |file| {
        *file.tensor("class_weight") = Tensor::f32(&[4], &[0.0; 4]);
    });
    bench.refuse("too many class weights", &["5 class weights for 4 classes"], |file| {
        *file.tensor("class_weight") = Tensor::f32(&[5], &[1.0; 5]);
    });
    bench.refuse("one class", &["1 class"], |file| {
        file.tensors.remove("class_weight");
        file.tensor("predictor.2.bias").shape = vec![1];
        file.tensor("predictor.2.bias").bytes.truncate(4);
        file.tensor("predictor.2.weight").shape = vec![1, 10];
        file.tensor("predictor.2.weight").bytes.truncate(40);
    });
}

/// Labels and groups are read as numbers of any type: what is no index must not become one.
#[test]
fn numbers_that_are_no_indices_are_refused() {
    let bench = Bench::new("indices");
    for label in [0.5, -0.5, 1e-3] {
        bench.refuse(&format!("label {label}"), &["row 3"], |file| {
            let mut labels = [0.0; 11];
            labels[3] = label;
            *file.tensor("y") = Tensor::f32(&[11], &labels);
        });
    }
    for label in [1 << 32, -(1 << 32), (1 << 33) + 1, i64::MIN, i64::MAX] {
        bench.refuse(&format!("label {label}"), &["row 3"], |file| {
            let mut labels = [0; 11];
            labels[3] = label;
            *file.tensor("y") = Tensor::i64(&[11], &labels);
        });
    }
    bench.refuse("half a group", &["column 2"], |file| {
        let groups = file.tensor("group_of_column");
        let mut values: Vec<f32> = groups.words().map(|b| i32::from_le_bytes(b) as f32).collect();
        values[2] += 0.5;
        *groups = Tensor::f32(&[12], &values);
    });
}

/// Replays the golden after a change that is extreme, but not wrong: there may be a result or an error,
/// and if there is a result it is finite.
fn survive(bench: &Bench, what: &str, change: Change) {
    let mut file = golden();
    change(&mut file);
    file.write(&bench.case());
    let out = bench.results.0.join("out.safetensors");
    match replay(&bench.case(), &out) {
        Ok(()) => {
            let result = File::read(&out);
            let reals = result.tensors.values().filter(|tensor| tensor.dtype == Dtype::F32);
            let finite = reals.flat_map(Tensor::words).all(|b| f32::from_le_bytes(b).is_finite());
            assert!(finite, "{what}: wrote what is not finite");
            std::fs::remove_file(&out).expect("removes");
        }
        Err(error) => assert!(error.to_string().contains("not a finite number"), "{what}: {error}"),
    }
    assert_eq!(bench.results.files(), [""; 0], "{what}: left a file");
}

#[test]
fn extreme_numbers_never_panic() {
    let bench = Bench::new("extremes");
    let changes: &[(&str, Change)] = &[
        ("a feature nobody wants", |file| file.tensor("policy.2.bias").put_f32(0, -1e30)),
        ("a feature everybody wants", |file| file.tensor("policy.2.bias").put_f32(0, 3e38)),
        ("a policy that overflows", |file| {
            (0..16).for_each(|i| file.tensor("policy.0.bias").put_f32(i, 3e38))
        }),
        ("a predictor that overflows", |file| file.tensor("predictor.0.bias").put_f32(0, 3e38)),
        ("a class that is certain", |file| file.tensor("predictor.2.bias").put_f32(0, 3e38)),
        ("a class that is impossible", |file| file.tensor("predictor.2.bias").put_f32(0, -3e38)),
        ("high noise", |file| file.tensor("gumbel").put_f32(0, 3e38)),
        ("low noise", |file| file.tensor("gumbel").put_f32(0, -3e38)),
        ("high noise on stopping", |file| file.tensor("gumbel").put_f32(7, 3e38)),
        ("low noise on stopping", |file| file.tensor("gumbel").put_f32(7, -3e38)),
        ("a price nobody can pay", |file| file.tensor("cost").put_f32(0, 3e38)),
        ("a class that is all", |file| file.tensor("class_weight").put_f32(0, 3e38)),
        ("a temperature that is zero in f32", |file| file.set("tau_soft", "1e-300")),
        ("a cold policy", |file| file.set("tau_hard", "1e-300")),
        ("a hot policy", |file| file.set("tau_hard", "1e300")),
        ("a cost that is infinite in f32", |file| file.set("alpha", "1e300")),
        ("a bonus that is infinite in f32", |file| file.set("lambda_ent", "1e300")),
    ];
    for (what, change) in changes {
        survive(&bench, what, *change);
    }
}

/// A stop logit as low as a blocked one, by itself or because the policy overflows.
#[test]
fn a_stop_nobody_wants_never_panics() {
    let bench = Bench::new("stop");
    survive(&bench, "a low bias", |file| file.tensor("policy.2.bias").put_f32(7, -1e30));
    survive(&bench, "a large value", |file| file.tensor("x").put_f32(0, 3e38));
    survive(&bench, "large weights", |file| {
        (0..16).for_each(|i| file.tensor("policy.0.weight").put_f32(i, 3e38));
    });
}

#[test]
fn what_is_missing_or_unknown_is_named() {
    let bench = Bench::new("missing");
    let optional = ["class_weight", "dropout.0", "dropout.1"];
    for name in golden().tensors.keys().filter(|name| !name.starts_with("expect.")) {
        if !optional.contains(&name.as_str()) {
            bench.refuse(&format!("no {name}"), &[&format!("`{name}`")], |file| {
                file.tensors.remove(name);
            });
        }
    }
    bench.refuse("half of the dropout", &["`dropout.1` is missing"], |file| {
        file.tensors.remove("dropout.1");
    });
    bench.refuse("the other half of the dropout", &["`dropout.0` is missing"], |file| {
        file.tensors.remove("dropout.0");
    });
    for key in golden().metadata.keys() {
        bench.refuse(&format!("no {key}"), &[&format!("`{key}` is missing")], |file| {
            file.metadata.remove(key);
        });
    }
    bench.refuse("no metadata at all", &["is missing"], |file| file.metadata.clear());
    bench.refuse("an unknown tensor", &["unknown tensor `gumble`"], |file| {
        file.tensors.insert("gumble".into(), Tensor::f32(&[1], &[0.0]));
    });
    bench.refuse("an unknown setting", &["unknown metadata `lambda`"], |file| {
        file.metadata.insert("lambda".into(), "0.1".into());
    });
}

#[test]
fn bad_settings_of_a_case_are_named() {
    let bench = Bench::new("settings");
    let cases: &[(&str, &str, &[&str])] = &[
        ("rollout", "foo", &["`rollout`", "`foo`", "`st` or `soft`"]),
        ("rollout", "", &["`rollout`"]),
        ("k", "abc", &["`k`", "`abc`"]),
        ("k", "-1", &["`k`", "`-1`"]),
        ("k", "2.5", &["`k`", "`2.5`"]),
        ("k", "99999999999999999999999", &["`k`"]),
        ("k", "0", &["horizon is 0", "1 to 7"]),
        ("k", "8", &["horizon is 8", "1 to 7"]),
        ("k", "18446744073709551615", &["horizon is 18446744073709551615"]),
        ("k", "3", &["`gumbel`", "[4, 11, 8]", "[3, 11, 8]"]),
        ("tau_soft", "0", &["tau_soft is 0"]),
        ("tau_soft", "-1", &["tau_soft is -1"]),
        ("tau_soft", "NaN", &["tau_soft is NaN"]),
        ("tau_soft", "inf", &["tau_soft is inf"]),
        ("tau_soft", "warm", &["`tau_soft`", "`warm`"]),
        ("tau_hard", "0", &["tau_hard is 0"]),
        ("tau_hard", "-2", &["tau_hard is -2"]),
        ("alpha", "-0.1", &["alpha is -0.1"]),
        ("alpha", "NaN", &["alpha is NaN"]),
        ("alpha", "0,1", &["`alpha`", "`0,1`"]),
        ("lambda_ent", "inf", &["lambda is inf"]),
        ("lambda_ent", "x", &["`lambda_ent`", "`x`"]),
    ];
    for (key, value, names) in cases {
        bench.refuse(&format!("{key} = {value}"), names, |file| file.set(key, value));
    }
}

#[test]
fn bad_options_of_a_case_are_named() {
    let bench = Bench::new("options");
    let golden = File::read(&assets().join("golden/default_reinforce.safetensors"));
    let refuse = |what: &str, names: &[&str], change: &dyn Fn(&mut File)| {
        let mut file = golden.clone();
        change(&mut file);
        let message = bench.refuse_bytes(what, &file.bytes());
        for name in names.iter().chain(&["case.safetensors"]) {
            assert!(message.contains(name), "{what}: `{name}` is not in: {message}");
        }
    };
    let settings: &[(&str, &str, &[&str])] = &[
        ("exact_stop", "1", &["`exact_stop`", "`1`", "`true` or `false`"]),
        ("hazard", "1", &["hazard is 1"]),
        ("focus", "-0.5", &["focus is -0.5"]),
        ("submasks", "all", &["`submasks`", "`all`"]),
        ("reinforce", "2", &["reinforce is 2"]),
        ("rollouts", "1", &["rollouts is 1", "REINFORCE needs at least 2"]),
        ("rollouts", "2.5", &["`rollouts`", "`2.5`"]),
        ("rollouts", "17", &["`rollouts` is 17", "16 rows"]),
        ("guard", "NaN", &["guard is NaN"]),
        ("seed", "-1", &["`seed`", "`-1`"]),
        ("ema", "0", &["ema is 0"]),
        ("policy_rate", "-1", &["policy_rate is -1"]),
        ("policy_steps", "1.5", &["`policy_steps`", "`1.5`"]),
        ("rollout", "soft", &["`reinforce`", "soft"]),
    ];
    for (key, value, names) in settings {
        refuse(&format!("{key} = {value}"), names, &|file| file.set(key, value));
    }
    // What an update needs is there as a whole or not at all.
    for key in ["policy_rate", "predictor_rate", "policy_steps", "predictor_steps", "ema"] {
        refuse(&format!("no {key}"), &[&format!("`{key}` is missing")], &|file| {
            file.metadata.remove(key);
        });
    }
    for name in golden
        .tensors
        .keys()
        .filter(|name| ["mean.", "variance.", "average."].iter().any(|state| name.starts_with(state)))
    {
        refuse(&format!("no {name}"), &[&format!("`{name}` is missing")], &|file| {
            file.tensors.remove(name);
        });
        refuse(&format!("{name} shorter"), &[name.rsplit_once('.').expect("a name").0], &|file| {
            file.tensor(name).shorten(0);
        });
    }
    refuse("a negative variance", &["`variance.predictor`", "below 0"], &|file| {
        file.tensor("variance.predictor.1.bias").put_f32(2, -1e-9);
    });
    refuse("no update, but moments", &["unknown tensor `average.policy.0.bias`"], &|file| {
        for key in ["policy_rate", "predictor_rate", "policy_steps", "predictor_steps", "ema"] {
            file.metadata.remove(key);
        }
    });
}

#[test]
fn files_that_are_no_cases_are_refused_with_their_path() {
    let bench = Bench::new("files");
    let whole = golden().bytes();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().expect("eight bytes")) as usize;
    for cut in [0, 1, 7, 8, 9, header / 2, header, header + 1, whole.len() - 1] {
        let message = bench.refuse_bytes(&format!("cut off after {cut}"), &whole[..cut]);
        assert!(message.contains("case.safetensors") && message.contains("cut off"), "{message}");
    }
    let with_tail = [&whole[..], b"tail"].concat();
    let noise: Vec<u8> = (0..4000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let others: [(&str, &[u8]); 5] = [
        ("a tail", &with_tail),
        ("text", b"alpha = 0.1\nk = 4\n"),
        ("zeros", &[0; 64]),
        ("noise", &noise),
        ("no tensors", b"\x02\0\0\0\0\0\0\0{}"),
    ];
    for (what, bytes) in others {
        let message = bench.refuse_bytes(what, bytes);
        assert!(message.contains("case.safetensors"), "{what}: {message}");
    }
    let message = bench.refuse_path("a missing file", &bench.cases.0.join("nowhere.safetensors"));
    assert!(message.contains("nowhere.safetensors"), "{message}");
    let message = bench.refuse_path("a folder", &bench.cases.0);
    assert!(message.contains("bad-files"), "{message}");
}

/// Whatever byte of the header is damaged: an error or a case, never a panic.
#[test]
fn a_damaged_header_never_panics() {
    let bench = Bench::new("damage");
    let whole = golden().bytes();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().expect("eight bytes")) as usize;
    let mut refused = 0;
    for at in 0..header {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(bench.case(), bytes).expect("writes");
        refused += usize::from(Case::load(bench.case()).is_err());
    }
    assert!(refused > header / 4, "{refused} of {header} damaged headers were noticed");
}

#[test]
fn settings_out_of_range_are_named() {
    let data = synthetic::syn1(0, [40, 10, 10]).expect("valid");
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::default().with(|c| {
            c.networks.policy = [8, 8];
            c.networks.predictor = [8, 8];
        });
        change(&mut config);
        match Stepper::new(&Engine::cpu(), &data, config).err() {
            Some(error @ Error::Config(_)) => error.to_string(),
            other => panic!("expected a complaint about the configuration, got {other:?}"),
        }
    };
    assert!(refused(|c| c.alpha = f64::NAN.into()).contains("alpha is NaN"));
    assert!(refused(|c| c.alpha = (-1.0).into()).contains("alpha is -1"));
    assert!(refused(|c| c.networks.dropout = 1.0).contains("dropout is 1"));
    assert!(refused(|c| c.networks.dropout = -0.1).contains("dropout is -0.1"));
    assert!(refused(|c| c.networks.dropout = f64::NAN).contains("dropout is NaN"));
    assert!(refused(|c| c.batch = 0).contains("batch is 0"));
    assert!(refused(|c| c.networks.policy[1] = 0).contains("a width of networks.policy is 0"));
    assert!(refused(|c| c.networks.predictor[0] = 0).contains("a width of networks.predictor is 0"));
    assert!(refused(|c| c.horizon = Some(12)).contains("horizon is 12, but it must be 1 to 11"));
    assert!(refused(|c| c.horizon = Some(0)).contains("horizon is 0"));
    assert!(refused(|c| c.schedule.policy_rate = 0.0).contains("policy_rate is 0"));
    assert!(refused(|c| c.schedule.predictor_rate = f64::INFINITY).contains("predictor_rate is inf"));
    assert!(refused(|c| c.gradient.tau_hard = -1.0).contains("tau_hard is -1"));
    let below_one = "must be at least 0 and below 1";
    for value in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
        let bad = [
            ("hazard", small().with(|c| c.gradient.hazard = value)),
            ("focus", small().with(|c| c.predictor.focus = value)),
            ("submasks", small().with(|c| c.predictor.submasks = value)),
        ];
        for (name, bad) in bad {
            let error = Stepper::new(&Engine::cpu(), &data, bad).err().expect("a bad share").to_string();
            assert!(error.contains(&format!("{name} is {value}")) && error.contains(below_one), "{error}");
        }
    }
    assert!(refused(|c| c.gradient.reinforce_from = -0.5).contains("reinforce_from is -0.5"));
    assert!(refused(|c| c.gradient.reinforce_from = f64::NAN).contains("reinforce_from is NaN"));
    // Without another rollout there is no baseline; without REINFORCE one is enough.
    for rollouts in [0, 1] {
        let config = small().with(|c| {
            c.gradient.rollouts = rollouts;
            c.gradient.reinforce_from = 0.99;
        });
        let error = Stepper::new(&Engine::cpu(), &data, config).err().expect("no baseline").to_string();
        assert!(
            error.contains(&format!("rollouts is {rollouts}")) && error.contains("at least 2"),
            "{error}"
        );
    }
    assert!(
        refused(|c| (c.gradient.rollouts, c.gradient.reinforce_from) = (0, 1.0)).contains("rollouts is 0")
    );
    small_trainer(small().with(|c| {
        c.gradient.rollouts = 1;
        c.gradient.reinforce_from = 1.0;
    }));

    let mut trainer = small_trainer(small());
    let stage = *trainer.stage();
    for tau_soft in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = trainer.set_stage(Stage { tau_soft, ..stage }).expect_err("a bad temperature");
        assert!(error.to_string().contains("tau_soft is"), "{error}");
    }
    let error = trainer.set_stage(Stage { lambda: f64::NAN, ..stage }).expect_err("a bad weight");
    assert!(error.to_string().contains("lambda is NaN"), "{error}");
    for value in [-0.1, 1.0, f64::NAN] {
        let bad = [
            ("hazard", Stage { hazard: value, ..stage }),
            ("focus", Stage { focus: value, ..stage }),
            ("submasks", Stage { submasks: value, ..stage }),
        ];
        for (name, bad) in bad {
            let error = trainer.set_stage(bad).expect_err("a bad share").to_string();
            assert!(error.contains(&format!("{name} is {value}")) && error.contains(below_one), "{error}");
        }
    }
    for reinforce in [-1.0, f64::NAN] {
        let error = trainer.set_stage(Stage { reinforce, ..stage }).expect_err("a bad share").to_string();
        assert!(error.contains(&format!("reinforce is {reinforce}")), "{error}");
    }
    assert_eq!(*trainer.stage(), stage, "a refused stage changes nothing");
}

fn small() -> Config {
    Config::default().with(|c| {
        c.networks.policy = [8, 8];
        c.networks.predictor = [8, 8];
        c.batch = 20;
    })
}

fn small_trainer(config: Config) -> Stepper {
    let data = synthetic::syn1(0, [40, 10, 10]).expect("valid");
    Stepper::new(&Engine::cpu(), &data, config).expect("valid")
}

#[test]
fn files_that_are_no_checkpoints_are_refused_with_their_path() {
    let folder = TempDir::new("bad-checkpoints");
    let path = folder.0.join("run.checkpoint");
    let mut trainer = small_trainer(small());
    trainer.steps(1);
    let checkpoint = trainer.checkpoint_blocking().expect("reads");
    checkpoint.save(&path).expect("writes");
    assert_eq!(Checkpoint::load(&path).expect("the control"), checkpoint);

    let refused = |what: &str, bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("writes");
        let error = Checkpoint::load(&path).expect_err(what).to_string();
        assert!(error.contains("run.checkpoint"), "{what}: {error}");
        error
    };
    let whole = std::fs::read(&path).expect("reads");
    for cut in [0, 1, 8, 100, whole.len() / 2, whole.len() - 1] {
        assert!(refused("cut off", &whole[..cut]).contains("cut off"), "after {cut}");
    }
    refused("text", b"not a checkpoint");
    let foreign = golden().bytes();
    assert!(refused("a case", &foreign).contains("not a checkpoint of querent"));

    std::fs::write(&path, &whole).expect("writes");
    let spoilt = |change: Change| {
        let mut file = File::read(&path);
        change(&mut file);
        file.bytes()
    };
    let changes: [(&str, Change); 5] = [
        ("reads a `querent checkpoint 4`", |file| file.set("format", "querent checkpoint 9")),
        ("not a checkpoint", |file| file.set("format", "another format")),
        ("no `stage`", |file| drop(file.metadata.remove("stage"))),
        ("no `config`", |file| drop(file.metadata.remove("config"))),
        ("`status` has type I64", |file| *file.tensor("status") = Tensor::i64(&[1], &[0])),
    ];
    let changed: Vec<(&str, Vec<u8>)> = changes.map(|(name, change)| (name, spoilt(change))).into();
    for (name, bytes) in changed {
        let error = refused(name, &bytes);
        assert!(error.contains(name), "{name}: {error}");
    }
    // What the method has to say about it is found out when a run is to continue.
    let others: [(&str, Change); 3] = [
        ("stage", |file| file.set("stage", "{}")),
        ("stage", |file| file.set("stage", "half past two")),
        ("of the method another", |file| file.set("method", "another")),
    ];
    std::fs::write(&path, &whole).expect("writes");
    let others = others.map(|(name, change)| (name, spoilt(change)));
    for (name, bytes) in others {
        std::fs::write(&path, bytes).expect("writes");
        let checkpoint = Checkpoint::load(&path).expect("a checkpoint");
        let error = small_trainer(small()).restore(&checkpoint).expect_err(name).to_string();
        assert!(error.contains(name), "{name}: {error}");
    }
    let error = Checkpoint::load(folder.0.join("nowhere")).expect_err("a missing file").to_string();
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn checkpoints_of_something_else_change_nothing() {
    let folder = TempDir::new("bad-restore");
    let path = folder.0.join("run.checkpoint");
    let made_by = |config: Config| {
        let mut trainer = small_trainer(config);
        trainer.steps(2);
        trainer.checkpoint_blocking().expect("reads")
    };
    let mut trainer = small_trainer(small());
    trainer.steps(1);
    let before = trainer.checkpoint_blocking().expect("reads");
    let mut refused = |what: &str, checkpoint: &Checkpoint, names: &[&str]| {
        let error = trainer.restore(checkpoint).expect_err(what).to_string();
        for name in names {
            assert!(error.contains(name), "{what}: `{name}` is not in: {error}");
        }
        assert_eq!(trainer.checkpoint_blocking().expect("reads"), before, "{what}: changed the run");
    };
    let other = "another configuration";
    refused("another seed", &made_by(Config { seed: 1, ..small() }), &[other, "seed was 1, now it is "]);
    refused("another width", &made_by(small().with(|c| c.networks.policy = [8, 9])), &[other, "[8,9]"]);
    refused("another α", &made_by(Config { alpha: 0.5.into(), ..small() }), &[other, "0.5"]);

    // The same settings, another table: eleven features here, three there.
    let problem = querent::Problem::ungrouped(&[1.0; 3], 2).expect("valid");
    let split = || querent::data::Split { x: vec![0.5; 3 * 40], y: vec![1; 40] };
    let data = querent::data::Dataset::new(problem, split(), split(), split()).expect("valid");
    let elsewhere = Stepper::new(&Engine::cpu(), &data, small()).expect("valid");
    let checkpoint = elsewhere.checkpoint_blocking().expect("reads");
    refused("another problem", &checkpoint, &["another problem", "`policy.values`"]);

    // Spoilt files that still load.
    made_by(small()).save(&path).expect("writes");
    let whole = File::read(&path);
    let mut spoilt = |what: &str, names: &[&str], change: Change| {
        let mut file = whole.clone();
        change(&mut file);
        file.write(&path);
        refused(what, &Checkpoint::load(&path).expect("loads"), names);
    };
    spoilt("a buffer is missing", &["`powers` has 0 elements"], |file| {
        drop(file.tensors.remove("powers"));
    });
    spoilt("a buffer is short", &["`clock`"], |file| file.tensor("clock").shorten(0));
    spoilt("a buffer has another type", &["`clock`"], |file| {
        file.tensor("clock").dtype = Dtype::F32;
    });

    // The control: its own checkpoint is taken, and does change the run.
    whole.write(&path);
    let own = Checkpoint::load(&path).expect("loads");
    trainer.restore(&own).expect("its own");
    assert_eq!(trainer.checkpoint_blocking().expect("reads"), own);
    assert_ne!(own, before);
}

/// As the other refused checkpoints, but what is wrong is in the stage, which is set last.
#[test]
fn a_checkpoint_with_a_bad_stage_changes_nothing() {
    let folder = TempDir::new("bad-stage");
    let path = folder.0.join("run.checkpoint");
    let mut trainer = small_trainer(small());
    let before = trainer.checkpoint_blocking().expect("reads");
    trainer.steps(2);
    trainer.checkpoint_blocking().expect("reads").save(&path).expect("writes");
    let mut file = File::read(&path);
    let mut stage: serde_json::Value = serde_json::from_str(&file.metadata["stage"]).expect("JSON");
    stage["tau_soft"] = (-1.0).into();
    file.set("stage", &stage.to_string());
    file.write(&path);

    let mut trainer = small_trainer(small());
    let refused = Checkpoint::load(&path).and_then(|checkpoint| trainer.restore(&checkpoint));
    let error = refused.expect_err("a bad temperature").to_string();
    assert!(error.contains("tau_soft is -1"), "{error}");
    assert!(trainer.checkpoint_blocking().expect("reads") == before, "changed the run");
}
