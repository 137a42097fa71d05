//! Tier 5: golden steps from PyTorch autograd, on every engine: the path, J, L_pred and each gradient; of the
//! default step also the masks it draws, and the weights and their averages after the update.

use crate::common::{TempDir, assets, distance, engines, fused};
use crate::replay::{Case, Outcome};
use crate::spoil::File;
use querent::Engine;
use safetensors::Dtype;
use std::path::PathBuf;

/// The steps with options.
const WITH_OPTIONS: [&str; 3] = ["default_relaxed", "default_reinforce", "options_mixed"];

struct Golden {
    name: String,
    case: Case,
    file: File,
}

impl Golden {
    fn all() -> Vec<Golden> {
        let folder = std::fs::read_dir(assets().join("golden")).expect("assets/golden");
        let mut files: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
        // Those of other methods say so.
        files.retain(|path| !File::read(path).metadata.contains_key("method"));
        files.sort();
        assert!(files.len() >= 11, "goldens are missing: {files:?}");
        files
            .into_iter()
            .map(|path| Golden {
                name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                case: Case::load(&path).unwrap_or_else(|error| panic!("{error}")),
                file: File::read(&path),
            })
            .collect()
    }

    fn with_options() -> Vec<Golden> {
        let mut all = Self::all();
        all.retain(|golden| WITH_OPTIONS.contains(&golden.name.as_str()));
        assert_eq!(all.len(), WITH_OPTIONS.len(), "goldens are missing");
        all
    }

    fn expected(&self, name: &str) -> Vec<f64> {
        let tensor = self.file.tensors.get(&format!("expect.{name}"));
        let tensor = tensor.unwrap_or_else(|| panic!("{}: {name} is not expected", self.name));
        match tensor.dtype {
            Dtype::I32 => tensor.words().map(|b| i32::from_le_bytes(b).into()).collect(),
            _ => tensor.words().map(|b| f32::from_le_bytes(b).into()).collect(),
        }
    }

    /// What is out of tolerance, and the largest errors: of gradients, and of scalars and weights, which are
    /// held to the same tolerance.
    fn compare(&self, got: &Outcome, gradients: f64, scalars: f64) -> (Vec<String>, [f64; 2]) {
        let mut wrong = Vec::new();
        for (name, _, values) in got.words() {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            if values != self.expected(&name) {
                wrong.push(name);
            }
        }
        let mut worst = [0.0f64; 2];
        for (name, _, values) in got.tensors() {
            let error = distance(&values, &self.expected(&name));
            let (limit, worst) = match name.starts_with("grad.") {
                true => (gradients, &mut worst[0]),
                false => (scalars, &mut worst[1]),
            };
            *worst = worst.max(error);
            if error > limit {
                wrong.push(format!("{name}: {error:.1e} > {limit:.0e}"));
            }
        }
        (wrong, worst)
    }

    /// Everything that the file expects is part of the outcome.
    fn check_names(&self, got: &Outcome) {
        let names = got.tensors().into_iter().map(|(name, ..)| name);
        let mut names: Vec<String> = names.chain(got.words().into_iter().map(|(name, ..)| name)).collect();
        names.sort();
        let expected = self.file.tensors.keys().filter_map(|name| name.strip_prefix("expect."));
        assert_eq!(names, expected.collect::<Vec<_>>(), "{}", self.name);
    }

    /// What is beyond the tolerances of f32 when a setting has another value, or with `None` is missing.
    fn wrong_with(&self, key: &str, value: Option<&str>) -> Vec<String> {
        let mut file = self.file.clone();
        match value {
            Some(value) => file.set(key, value),
            None => drop(file.metadata.remove(key)),
        }
        let folder = TempDir::new(&format!("golden-{}", self.name));
        let path = folder.0.join("case.safetensors");
        file.write(&path);
        let case = Case::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let got = case.run_blocking(&Engine::cpu_f64()).unwrap_or_else(|error| panic!("{error}"));
        self.compare(&got, 1e-4, 1e-5).0
    }
}

fn check(name: &str, engine: &Engine, gradients: f64, scalars: f64) {
    for golden in Golden::all() {
        let outcome = golden.case.run_blocking(engine).unwrap_or_else(|error| panic!("{error}"));
        golden.check_names(&outcome);
        let (wrong, worst) = golden.compare(&outcome, gradients, scalars);
        println!("{name:8} {:20} largest errors {:.1e}, {:.1e}", golden.name, worst[0], worst[1]);
        assert!(wrong.is_empty(), "{name}, {}: {wrong:?}", golden.name);
    }
}

#[test]
fn f64_reproduces_every_golden() {
    check("cpu f64", &Engine::cpu_f64(), 1e-6, 1e-6);
}

#[test]
fn both_engines_reproduce_every_golden() {
    for (name, engine) in engines() {
        check(name, &engine, 1e-4, 1e-5);
    }
}

/// Another software driver than the system's: Chromium's package brings its own, SwiftShader. In a process of its own, as
/// the loader reads the environment.
#[cfg(target_os = "linux")]
#[test]
fn swiftshader_reproduces_every_golden() {
    let driver = "/usr/lib/chromium/vk_swiftshader_icd.json";
    if !std::path::Path::new(driver).is_file() {
        eprintln!("SKIPPED: {driver} is not there");
        return;
    }
    let environment = [("VK_DRIVER_FILES", driver), ("VK_ICD_FILENAMES", driver)];
    println!("{}", crate::common::in_a_process_of_its_own("golden::on_swiftshader", &environment));
}

#[test]
#[ignore = "runs in a process of its own, started by swiftshader_reproduces_every_golden"]
fn on_swiftshader() {
    if std::env::var("VK_DRIVER_FILES").is_ok_and(|driver| driver.contains("swiftshader")) {
        let engine = Engine::gpu_blocking().expect("SwiftShader is an adapter");
        assert!(engine.to_string().contains("SwiftShader"), "{engine}");
        check("SwiftShader", &engine, 1e-4, 1e-5);
    }
}

/// The same where several calls are one dispatch, as on a GPU.
#[test]
fn fused_dispatches_reproduce_every_golden() {
    let Some(engine) = fused() else { return };
    check("fused", &engine, 1e-4, 1e-5);
}

/// A setting, another value for it (`None`: as published), where that must be seen, and where not.
type Try = (&'static str, Option<&'static str>, &'static str, &'static [&'static str]);

const TRIES: [Try; 16] = [
    ("exact_stop", None, "grad.policy", &["path"]),
    ("hazard", None, "grad.policy", &["path"]),
    ("reinforce", None, "grad.policy", &["path", "submask", "J_ent", "predictor"]),
    ("rollouts", Some("4"), "grad.policy", &["path", "submask", "J_ent", "predictor"]),
    ("lure", None, "grad.policy", &["path", "submask", "J_ent", "predictor"]),
    ("guard", None, "grad.policy", &["path", "submask", "J_ent", "predictor"]),
    ("focus", None, "grad.predictor", &["path", "submask", "L_pred", "policy"]),
    ("submasks", None, "grad.predictor", &["path", "L_pred", "policy"]),
    ("seed", None, "submask", &["path", "L_pred", "policy"]),
    ("alpha", Some("0.2"), "grad.policy", &["path", "submask", "predictor"]),
    ("lambda_ent", Some("0.05"), "grad.policy", &["path", "submask", "predictor"]),
    ("policy_rate", Some("0.01"), "after.policy", &["grad", "predictor"]),
    ("predictor_rate", Some("0.01"), "after.predictor", &["grad", "policy"]),
    ("policy_steps", Some("9"), "after.policy", &["grad", "predictor"]),
    // The masks are another step's as well.
    ("predictor_steps", Some("9"), "after.predictor", &["policy"]),
    ("ema", Some("0.15"), "average", &["grad", "after"]),
];

/// Every setting of the default step is in its golden, and it is read: with another value the outcome is
/// another one, beyond the tolerances, and only where that setting has a say.
#[test]
fn every_setting_of_a_golden_matters() {
    for golden in Golden::with_options() {
        let name = &golden.name;
        for (key, value, seen, unseen) in TRIES {
            // A step without REINFORCE has neither `reinforce` nor `rollouts`, one with a relaxed stop
            // has no `exact_stop`.
            if !golden.file.metadata.contains_key(key) {
                assert_ne!(name, "default_reinforce", "the default step lacks {key}");
                continue;
            }
            let wrong = golden.wrong_with(key, value);
            let in_wrong = |what: &str| wrong.iter().any(|name| name.contains(what));
            assert!(in_wrong(seen), "{name}: {key} is not seen in {seen}: {wrong:?}");
            let stray = unseen.iter().find(|what| in_wrong(what));
            assert_eq!(stray, None, "{name}: {key} has no say there: {wrong:?}");
        }
        let tried = |key: &&String| TRIES.iter().any(|(tried, ..)| tried == key);
        let untried: Vec<&String> = golden.file.metadata.keys().filter(|key| !tried(key)).collect();
        assert_eq!(untried.len(), 4, "{name}: {untried:?}"); // k, rollout, and the temperatures
    }
    // Nothing is relaxed where choices follow REINFORCE alone: neither is the temperature of that seen.
    for golden in Golden::with_options() {
        let wrong = golden.wrong_with("tau_soft", Some("0.7"));
        assert_eq!(wrong.is_empty(), golden.name == "default_reinforce", "{}: {wrong:?}", golden.name);
    }
}

/// Options under the names of earlier versions; not under both.
#[test]
fn options_of_earlier_versions_are_read() {
    let older = [("reinforce", "score"), ("rollouts", "twins"), ("submasks", "parts"), ("ema", "average")];
    for golden in Golden::with_options() {
        let folder = TempDir::new(&format!("golden-older-{}", golden.name));
        let path = folder.0.join("case.safetensors");
        let mut file = golden.file.clone();
        for (new, old) in older {
            if let Some(value) = file.metadata.remove(new) {
                file.metadata.insert(old.into(), value);
            }
        }
        file.write(&path);
        let run = |case: &Case| case.run_blocking(&Engine::cpu()).unwrap_or_else(|error| panic!("{error}"));
        let case = Case::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(run(&case), run(&golden.case), "{}", golden.name);
        file.metadata.insert("submasks".into(), "0.5".into());
        file.write(&path);
        let error = Case::load(&path).expect_err("both names").to_string();
        assert!(error.contains("unknown metadata `parts`"), "{error}");
    }
}

/// The control: each kind of mistake must be seen, in every golden.
#[test]
fn the_golden_comparator_can_fail() {
    for golden in Golden::all() {
        let right = golden.case.run_blocking(&Engine::cpu_f64()).unwrap_or_else(|error| panic!("{error}"));
        assert!(golden.compare(&right, 1e-6, 1e-6).0.is_empty());
        let fails = |what: &str, change: &dyn Fn(&mut Outcome)| {
            let mut outcome = right.clone();
            change(&mut outcome);
            let wrong = golden.compare(&outcome, 1e-4, 1e-5).0;
            let seen = wrong.len() == 1 && wrong[0].starts_with(what);
            assert!(seen, "{}: {what} is spoilt, seen is {wrong:?}", golden.name);
        };
        let shift = |values: &mut [f64], by: f64| {
            values[0] += by * values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        };
        fails("path", &|o| o.path[0] ^= 1);
        fails("J_ent", &|o| o.objective *= 1.0001);
        fails("L_pred", &|o| o.prediction_loss = f64::NAN);
        fails("grad.policy.1.weight", &|o| o.policy[1].weight[0] += 1.0);
        fails("grad.predictor.2.bias", &|o| shift(&mut o.predictor[2].bias, 2e-4));
        if WITH_OPTIONS.contains(&golden.name.as_str()) {
            fails("submask", &|o| o.submask[0] ^= 1);
            fails("after.policy.2.weight", &|o| shift(&mut o.after[0][2].weight, 2e-5));
            fails("after.predictor.0.bias", &|o| shift(&mut o.after[1][0].bias, 2e-5));
            fails("average.policy.1.bias", &|o| shift(&mut o.average[0][1].bias, 2e-5));
            fails("average.predictor.1.weight", &|o| shift(&mut o.average[1][1].weight, 2e-5));
        }
    }
}
