//! The file of a case: tensors and metadata, each taken once, so that what nobody asked for is noticed.

use querent::nmppg::Stage;
use querent::nn::Tensors;
use querent::{Error, Result};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// A tensor of a case file.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// The metadata keys of a case.
const KEYS: [&str; 6] = ["alpha", "k", "tau_hard", "tau_soft", "lambda_ent", "rollout"];
/// Those of the step's options, each as published if it is missing.
const OPTIONS: [&str; 10] = [
    "exact_stop",
    "through_policy",
    "hazard",
    "reinforce",
    "rollouts",
    "lure",
    "guard",
    "focus",
    "submasks",
    "seed",
];
/// Those of the update: all of them or none.
pub const UPDATE: [&str; 5] = ["policy_rate", "predictor_rate", "policy_steps", "predictor_steps", "ema"];
/// What options were called in earlier versions: such files are still read.
const OLDER: [(&str, &str); 4] =
    [("score", "reinforce"), ("twins", "rollouts"), ("parts", "submasks"), ("average", "ema")];
/// What an update keeps of each weight: Adam's moments, and the moving average.
const STATE: [&str; 3] = ["mean", "variance", "average"];

/// All metadata keys.
fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.into_iter().chain(OPTIONS).chain(UPDATE)
}

/// Reads a case piece by piece and remembers what was asked for.
pub struct Reader {
    path: PathBuf,
    pub tensors: BTreeMap<String, Tensor>,
    metadata: HashMap<String, String>,
}

impl Reader {
    pub fn fail<T>(&self, what: String) -> Result<T> {
        Err(Error::file(&self.path, what))
    }

    pub fn open(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
        let bad = |error: safetensors::SafeTensorError| {
            Error::file(path, format!("not a safetensors file, or cut off: {error}")).because(error)
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(bad)?;
        let mut reader = Self {
            path: path.to_path_buf(),
            tensors: BTreeMap::new(),
            metadata: header.metadata().clone().unwrap_or_default(),
        };
        for (old, new) in OLDER {
            if !reader.metadata.contains_key(new)
                && let Some(value) = reader.metadata.remove(old)
            {
                reader.metadata.insert(new.into(), value);
            }
        }
        for (name, view) in SafeTensors::deserialize(&bytes).map_err(bad)?.iter() {
            if name.starts_with("expect.") {
                continue;
            }
            let values = match numbers(&view) {
                Some(values) => values,
                None => {
                    return reader.fail(format!(
                        "tensor `{name}` has type {:?}; f32, f64, i32 and i64 are read",
                        view.dtype()
                    ));
                }
            };
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                let value = values[at];
                return reader.fail(format!("tensor `{name}`: element {at} is {value}, not a finite number"));
            }
            reader.tensors.insert(name.to_string(), Tensor { shape: view.shape().to_vec(), values });
        }
        if let Some(key) = reader.metadata.keys().find(|key| keys().all(|known| known != key.as_str())) {
            let known: Vec<&str> = keys().collect();
            return reader.fail(format!("unknown metadata `{key}`; known are {}", known.join(", ")));
        }
        Ok(reader)
    }

    /// Whether there is metadata of this name.
    pub fn has(&self, key: &str) -> bool {
        self.metadata.contains_key(key)
    }

    pub fn text(&self, key: &str) -> Result<&str> {
        match self.metadata.get(key) {
            Some(text) => Ok(text),
            None => self.fail(format!("metadata `{key}` is missing")),
        }
    }

    pub fn number<N: std::str::FromStr>(&self, key: &str) -> Result<N> {
        let text = self.text(key)?;
        text.parse().or_else(|_| self.fail(format!("metadata `{key}` is `{text}`, not a number that fits")))
    }

    /// A number that may be missing.
    pub fn option<N: std::str::FromStr>(&self, key: &str, usual: N) -> Result<N> {
        if self.metadata.contains_key(key) { self.number(key) } else { Ok(usual) }
    }

    /// A yes or no that may be missing.
    pub fn flag(&self, key: &str, usual: bool) -> Result<bool> {
        match self.metadata.get(key).map(String::as_str) {
            None => Ok(usual),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => {
                self.fail(format!("metadata `{key}` is `{other}`, but it must be `true` or `false`"))
            }
        }
    }

    /// The options and rates of a stage.
    pub fn stage(&self, has_update: bool) -> Result<Stage> {
        let usual = Stage::default();
        let stage = Stage {
            alpha: self.number("alpha")?,
            tradeoffs: None,
            tau_soft: self.number("tau_soft")?,
            lambda: self.number("lambda_ent")?,
            lure: self.option("lure", usual.lure)?,
            guard: self.option("guard", usual.guard)?,
            exact_stop: self.flag("exact_stop", usual.exact_stop)?,
            hazard: self.option("hazard", usual.hazard)?,
            reinforce: self.option("reinforce", usual.reinforce)?,
            rollouts: self.option("rollouts", usual.rollouts)?,
            focus: self.option("focus", usual.focus)?,
            submasks: self.option("submasks", usual.submasks)?,
            input_noise: 0.0,
            unavailable: 0.0,
            policy_rate: if has_update { self.number("policy_rate")? } else { usual.policy_rate },
            predictor_rate: if has_update { self.number("predictor_rate")? } else { usual.predictor_rate },
            ema: if has_update { self.number("ema")? } else { usual.ema },
        };
        stage.check()?;
        Ok(stage)
    }

    /// What an update keeps of a network with these inputs, hidden layers and outputs.
    pub fn state(&mut self, net: &str, [inputs, h0, h1, outputs]: [usize; 4]) -> Result<Vec<Vec<Tensors>>> {
        let mut state = Vec::new();
        for what in STATE {
            let name = format!("{what}.{net}");
            let (hidden, tensors) = self.network(&name, inputs, Some(outputs))?;
            if hidden != [h0, h1] {
                return self
                    .fail(format!("`{name}` has hidden layers of {hidden:?}, but `{net}` {:?}", [h0, h1]));
            }
            let mut values = tensors.iter().flat_map(|layer| layer.weight.iter().chain(&layer.bias));
            if what == "variance" && values.any(|&value| value < 0.0) {
                return self.fail(format!("`{name}` has a value below 0"));
            }
            state.push(tensors);
        }
        Ok(state)
    }

    /// Takes an optional tensor with so many dimensions.
    pub fn maybe(&mut self, name: &str, dimensions: usize) -> Result<Option<Tensor>> {
        match self.tensors.remove(name) {
            Some(tensor) if tensor.shape.len() != dimensions => self.fail(format!(
                "tensor `{name}` has shape {:?}, but {dimensions} dimension(s) are needed",
                tensor.shape
            )),
            other => Ok(other),
        }
    }

    pub fn take(&mut self, name: &str, dimensions: usize) -> Result<Tensor> {
        match self.maybe(name, dimensions)? {
            Some(tensor) => Ok(tensor),
            None => self.fail(format!("tensor `{name}` is missing")),
        }
    }

    /// A tensor's values, if it has this shape.
    pub fn of_shape(&self, name: &str, tensor: Tensor, shape: &[usize]) -> Result<Vec<f64>> {
        if tensor.shape != shape {
            return self.fail(format!("tensor `{name}` has shape {:?}, expected {shape:?}", tensor.shape));
        }
        Ok(tensor.values)
    }

    pub fn shaped(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f64>> {
        let tensor = self.take(name, shape.len())?;
        self.of_shape(name, tensor, shape)
    }

    /// A network's tensors and the widths of its hidden layers. `outputs`: `None` if its own last
    /// bias decides.
    pub fn network(
        &mut self,
        name: &str,
        inputs: usize,
        outputs: Option<usize>,
    ) -> Result<([usize; 2], Vec<Tensors>)> {
        let mut widths = vec![inputs];
        let mut tensors = Vec::new();
        for layer in 0..3 {
            let bias_name = format!("{name}.{layer}.bias");
            let bias = self.take(&bias_name, 1)?;
            let width = outputs.filter(|_| layer == 2).unwrap_or(bias.values.len());
            if width == 0 {
                return self.fail(format!("tensor `{bias_name}` is empty"));
            }
            let bias = self.of_shape(&bias_name, bias, &[width])?;
            let weight = self.shaped(&format!("{name}.{layer}.weight"), &[width, widths[layer]])?;
            widths.push(width);
            tensors.push(Tensors { weight, bias });
        }
        Ok(([widths[1], widths[2]], tensors))
    }
}

fn numbers(view: &TensorView<'_>) -> Option<Vec<f64>> {
    let data = view.data();
    let four = data.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
    let eight = data.chunks_exact(8).map(|b| [b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    match view.dtype() {
        Dtype::F32 => Some(four.map(|b| f32::from_le_bytes(b).into()).collect()),
        Dtype::I32 => Some(four.map(|b| i32::from_le_bytes(b).into()).collect()),
        Dtype::F64 => Some(eight.map(f64::from_le_bytes).collect()),
        Dtype::I64 => Some(eight.map(|b| i64::from_le_bytes(b) as f64).collect()),
        _ => None,
    }
}
