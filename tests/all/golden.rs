//! Tier 5: golden steps from PyTorch autograd, on every engine: the path, J, L_pred and each gradient.

use crate::common::{assets, distance, engines};
use querent::Engine;
use querent::nmppg::replay::{Case, Outcome};
use safetensors::{Dtype, SafeTensors};
use std::path::PathBuf;

struct Golden {
    name: String,
    case: Case,
    bytes: Vec<u8>,
}

impl Golden {
    fn all() -> Vec<Golden> {
        let folder = std::fs::read_dir(assets().join("golden")).expect("assets/golden");
        let mut files: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
        files.sort();
        assert!(files.len() >= 8, "goldens are missing: {files:?}");
        files
            .into_iter()
            .map(|path| Golden {
                name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                case: Case::load(&path).unwrap_or_else(|error| panic!("{error}")),
                bytes: std::fs::read(&path).expect("reads"),
            })
            .collect()
    }

    fn expected(&self, name: &str) -> Vec<f64> {
        let file = SafeTensors::deserialize(&self.bytes).expect("a safetensors file");
        let view =
            file.tensor(&format!("expect.{name}")).unwrap_or_else(|_| panic!("{name} is not expected"));
        let words = view.data().chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
        match view.dtype() {
            Dtype::I32 => words.map(|b| i32::from_le_bytes(b).into()).collect(),
            _ => words.map(|b| f32::from_le_bytes(b).into()).collect(),
        }
    }

    /// What is out of tolerance, and the largest gradient error.
    fn compare(&self, got: &Outcome, gradients: f64, scalars: f64) -> (Vec<String>, f64) {
        let mut wrong = Vec::new();
        let path: Vec<f64> = got.path.iter().map(|&feature| feature.into()).collect();
        if path != self.expected("path") {
            wrong.push("path".to_string());
        }
        let mut worst: f64 = 0.0;
        for (name, _, values) in got.tensors() {
            let is_gradient = name.starts_with("grad.");
            let error = distance(&values, &self.expected(&name));
            if is_gradient {
                worst = worst.max(error);
            }
            let limit = if is_gradient { gradients } else { scalars };
            if error > limit {
                wrong.push(format!("{name}: {error:.1e} > {limit:.0e}"));
            }
        }
        (wrong, worst)
    }
}

fn check(name: &str, engine: &Engine, gradients: f64, scalars: f64) {
    for golden in Golden::all() {
        let outcome = golden.case.run_blocking(engine).unwrap_or_else(|error| panic!("{error}"));
        let (wrong, worst) = golden.compare(&outcome, gradients, scalars);
        println!("{name:8} {:20} largest gradient error {worst:.1e}", golden.name);
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

/// The control: each kind of mistake must be seen.
#[test]
fn the_golden_comparator_can_fail() {
    let golden = &Golden::all()[0];
    let right = golden.case.run_blocking(&Engine::cpu_f64()).unwrap_or_else(|error| panic!("{error}"));
    assert!(golden.compare(&right, 1e-6, 1e-6).0.is_empty());
    let wrong = |change: fn(&mut Outcome)| {
        let mut outcome = right.clone();
        change(&mut outcome);
        golden.compare(&outcome, 1e-4, 1e-5).0
    };
    assert!(wrong(|o| o.path[0] ^= 1)[0].contains("path"));
    assert!(wrong(|o| o.objective *= 1.0001)[0].contains("J_ent"));
    assert!(wrong(|o| o.prediction_loss = f64::NAN)[0].contains("L_pred"));
    assert!(wrong(|o| o.policy[1].weight[0] += 1.0)[0].contains("grad.policy.1.weight"));
    let largest = |values: &[f64]| values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let mut shifted = right.clone();
    let by = 2e-4 * largest(&shifted.predictor[2].bias);
    shifted.predictor[2].bias[0] += by;
    assert!(golden.compare(&shifted, 1e-4, 1e-5).0[0].contains("grad.predictor.2.bias"));
}
