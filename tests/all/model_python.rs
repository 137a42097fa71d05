//! A model's file in Python, with `safetensors` and numpy alone: the script below is all it takes.
//!
//! The interpreter is `python3`, or `QUERENT_PYTHON` if that is set; then it must have both packages.

use crate::common::TempDir;
use querent::data::Normalization;
use querent::nmppg::Config;
use querent::nn::Stack;
use querent::{Feature, Model, Problem, Step};
use std::io::Write;
use std::process::Command;

/// Prints what the session is to be compared with: names and costs, the probabilities of the classes once
/// the feature `panel` is seen, and the next action where `age` cannot be had.
const SCRIPT: &str = r#"
import json, sys
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

path, values = sys.argv[1], [np.float32(v) for v in sys.argv[2:]]
tensors = load_file(path)
with safe_open(path, framework="numpy") as file:
    metadata = file.metadata()
assert metadata["format"] == "querent model 2", metadata
model = json.loads(metadata["model"])

features = model["problem"]["features"]
columns = sum(len(feature["columns"]) for feature in features)
mean, scale = (np.array(model["normalization"][key], np.float32) for key in ("mean", "scale"))
assert len(mean) == len(scale) == columns and model["horizon"] == 2 and model["config"]["alpha"] == 0.03

x, mask = np.zeros(columns, np.float32), np.zeros(len(features), np.float32)
seen = next(i for i, feature in enumerate(features) if feature["name"] == "panel")
at = features[seen]["columns"]
x[at] = (np.array(values, np.float32) - mean[at]) / scale[at]
mask[seen] = 1
# A policy is told what cannot be had, unless `unavailable` is 0.
unavailable = np.array([feature["name"] == "age" for feature in features], np.float32)
assert model["config"]["unavailable"] > 0

def network(name, told):
    h = np.concatenate([x, *told, mask])
    for i in range(3):
        h = tensors[f"{name}.{i}.weight"] @ h + tensors[f"{name}.{i}.bias"]
        if i < 2:
            h = np.maximum(h, 0)
    return h

logits = network("predictor", [])
p = np.exp(logits - logits.max())
z = network("policy", [unavailable])
z[:-1][mask + unavailable > 0] = -np.inf
print("version", metadata["querent"])
print("features", *(f"{feature['name']}:{feature['cost']}" for feature in features))
print("classes", *model["problem"]["classes"])
print("action", int(z.argmax()))
print("probabilities", *(p / p.sum()))
"#;

fn model() -> Model {
    let features = [("age", 0.5), ("panel", 2.0), ("scan", 8.25)]
        .map(|(name, cost)| Feature { name: name.into(), cost })
        .to_vec();
    let classes = ["well", "ill", "unsure"].map(Into::into).to_vec();
    let problem = Problem::new(features, vec![1, 0, 1, 2, 1], classes).expect("valid");
    let normalization =
        Normalization { mean: vec![10.0, -1.0, 0.1, 3.0, 0.0], scale: vec![4.0, 0.5, 1.0, 2.0, 3.0] };
    let network = |inputs, hidden: [usize; 2], outputs, which| {
        let stack = Stack::new(0, &[inputs, hidden[0], hidden[1], outputs]);
        let mut layers = stack.unpack(&stack.init(7, which));
        layers.iter_mut().flat_map(|layer| &mut layer.weight).for_each(|weight| *weight *= 3.0);
        layers
    };
    let config = Config::new(0.03).with(|c| {
        c.networks.policy = [16, 12];
        c.networks.predictor = [10, 20];
        c.horizon = Some(2);
    });
    let (policy, predictor) = (network(11, [16, 12], 4, 0), network(8, [10, 20], 3, 1));
    querent::nmppg::model(problem, normalization, config, policy, predictor, Vec::new()).expect("fits")
}

/// An interpreter with both packages, or why there is none.
fn python() -> Result<String, String> {
    let python = std::env::var("QUERENT_PYTHON").unwrap_or_else(|_| "python3".into());
    match Command::new(&python).args(["-c", "import numpy, safetensors.numpy"]).output() {
        Ok(output) if output.status.success() => Ok(python),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!("{python}: {}", text.lines().last().unwrap_or_default()))
        }
        Err(error) => Err(format!("{python}: {error}")),
    }
}

#[test]
fn python_reads_a_model_with_safetensors_alone() {
    let python = match python() {
        Ok(python) => python,
        Err(why) if std::env::var_os("QUERENT_PYTHON").is_some() => {
            panic!("QUERENT_PYTHON is set, but {why}")
        }
        Err(why) => {
            // Not by a macro: the test runner would keep that to itself.
            let _ = writeln!(std::io::stderr(), "SKIPPED, the model's file in Python: {why}");
            return;
        }
    };
    let folder = TempDir::new("python");
    let file = folder.0.join("model.safetensors");
    let model = model();
    model.save(&file).expect("saves");

    let values = [12.5f32, -0.75, 4.0];
    let mut session = model.session();
    session.observe(1, values).expect("taken");
    session.unavailable(0).expect("it is open");
    let action = match session.next() {
        Step::Acquire(feature) => feature,
        Step::Stop => 3,
    };

    let output = Command::new(&python)
        .args(["-c", SCRIPT])
        .arg(&file)
        .args(values.map(|value| value.to_string()))
        .output()
        .expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let line = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no line `{key}` in {text}"))
    };
    assert_eq!(line("version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(line("features"), "age:0.5 panel:2.0 scan:8.25");
    assert_eq!(line("classes"), "well ill unsure");
    assert_eq!(line("action"), action.to_string());
    let probabilities: Vec<f32> =
        line("probabilities").split(' ').map(|p| p.parse().expect("a number")).collect();
    assert_eq!(probabilities.len(), 3);
    let off =
        |against: &[f32]| probabilities.iter().zip(against).map(|(p, q)| (p - q).abs()).fold(0.0, f32::max);
    assert!(off(session.predict()) < 1e-5, "{probabilities:?} and {:?}", session.predict());
    assert!(off(session.prior()) > 1e-3, "the comparison can fail");
}
