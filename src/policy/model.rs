//! What training gives and deployment needs, in memory and in one file.

use super::session::Session;
use crate::data::Normalization;
use crate::data::encoding::Encoding;
use crate::engine::groups::{self, Groups};
use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::methods::nmppg::Config;
use crate::nn::{Stack, Tensors};
use crate::policy::history::Epoch;
use crate::problem::{Feature, Problem};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::HashMap;
use std::path::Path;

/// What the file says it is.
const FORMAT: &str = "querent model 1";

/// Columns known from the start, at most: a damaged file must not ask for all memory.
const MOST_KNOWN: usize = 1 << 20;

/// The networks' names in the file.
const NETWORKS: [&str; 2] = ["policy", "predictor"];

/// A trained policy and predictor, with all that is needed to use them.
///
/// A model is always usable: the shapes fit the problem, and every number is finite.
///
/// # Its file
/// A safetensors file: `policy.{0,1,2}.weight` (`[outputs, inputs]`, as PyTorch's linear layers),
/// `policy.{0,1,2}.bias` and the same for `predictor`, all f32. Its metadata has three entries: `format`
/// (`querent model 1`), `querent` (the version that trained it), and `model`, a JSON text like this, with
/// the settings under `config`, an entry for each epoch under `history`, and, for a model of a table, an
/// [`Encoding`] under `encoding`:
///
/// ```json
/// {
///   "problem": {
///     "features": [{ "name": "x1", "cost": 1.0, "columns": [0] }],
///     "classes": ["0", "1"],
///     "class_weights": [1.0, 1.0]
///   },
///   "normalization": { "mean": [0.0], "scale": [1.0] },
///   "horizon": 1,
///   "config": {},
///   "history": []
/// }
/// ```
///
/// Both networks read `(x ⊙ m, m)`: the normalized columns, zero where unknown, then 1 for each feature
/// that is known and 0 for the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    problem: Problem,
    normalization: Normalization,
    steps: usize,
    config: Config,
    history: Vec<Epoch>,
    version: String,
    groups: Vec<u32>,
    policy: Network,
    predictor: Network,
    encoding: Option<Encoding>,
}

/// A network's weights as a session reads them: `[input][output]`, so that a feature's rows of the first
/// layer are contiguous.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Network {
    pub(crate) stack: Stack,
    pub(crate) values: Vec<f32>,
}

/// The JSON text in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    problem: ProblemDescription,
    normalization: Normalization,
    horizon: usize,
    config: serde_json::Value,
    history: Vec<Epoch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<Encoding>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProblemDescription {
    features: Vec<FeatureDescription>,
    classes: Vec<String>,
    class_weights: Vec<f64>,
    /// How many columns are known from the start, after those of the features.
    #[serde(default, skip_serializing_if = "is_zero")]
    known_columns: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureDescription {
    name: String,
    cost: f64,
    columns: Vec<u32>,
}

impl Model {
    /// Puts a model together from what training gave: the networks' three layers each, in PyTorch's
    /// layout, rounded to f32.
    ///
    /// # Errors
    /// Settings, normalization or layers that do not fit the problem, or a number that is not finite.
    pub fn new(
        problem: Problem,
        normalization: Normalization,
        config: Config,
        policy: Vec<Tensors>,
        predictor: Vec<Tensors>,
        history: Vec<Epoch>,
    ) -> Result<Self> {
        config.check(&problem)?;
        storable("the configuration", &config)?;
        for (index, epoch) in history.iter().enumerate() {
            storable(format_args!("entry {index} of the training history"), epoch)?;
        }
        check_normalization(&problem, &normalization)?;
        let [policy_widths, predictor_widths] = widths(&problem, &config);
        let model = Self {
            steps: config.steps(&problem),
            version: env!("CARGO_PKG_VERSION").into(),
            groups: groups::words(problem.features().len(), problem.group_of_column()),
            policy: Network::new(NETWORKS[0], policy_widths, &policy)?,
            predictor: Network::new(NETWORKS[1], predictor_widths, &predictor)?,
            problem,
            normalization,
            config,
            history,
            encoding: None,
        };
        // Finite weights may still add up to something infinite.
        if !model.session().is_finite() {
            return Err(Error::Config(
                "the networks' weights are so large that their outputs overflow".into(),
            ));
        }
        Ok(model)
    }

    /// The same model with how the cells of its table become columns: it can then be asked in the table's
    /// own words and units.
    ///
    /// # Errors
    /// The encoding does not make the problem's columns.
    pub fn with_encoding(mut self, encoding: Encoding) -> Result<Self> {
        encoding.check(&self.problem)?;
        self.encoding = Some(encoding);
        Ok(self)
    }

    /// How the cells of its table become columns; `None` if it was trained on numbers as they are.
    pub fn encoding(&self) -> Option<&Encoding> {
        self.encoding.as_ref()
    }

    /// Asks one instance through. See [`Session`].
    pub fn session(&self) -> Session<'_> {
        Session::new(self)
    }

    /// What can be asked, what it costs, and what is predicted.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// How values in the user's units become the networks' inputs.
    pub fn normalization(&self) -> &Normalization {
        &self.normalization
    }

    /// Acquisitions at most.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The settings it was trained with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What training went through.
    pub fn history(&self) -> &[Epoch] {
        &self.history
    }

    /// The version of querent that trained it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The policy's layers, in PyTorch's layout.
    pub fn policy(&self) -> Vec<Tensors> {
        self.policy.tensors()
    }

    /// The predictor's layers, in PyTorch's layout.
    pub fn predictor(&self) -> Vec<Tensors> {
        self.predictor.tensors()
    }

    pub(crate) fn networks(&self) -> [&Network; 2] {
        [&self.policy, &self.predictor]
    }

    /// The columns a feature reveals, in ascending order.
    pub(crate) fn columns_of(&self, feature: usize) -> &[u32] {
        let (features, columns) = (self.problem.features().len(), self.problem.columns());
        Groups::new(&self.groups, features as u32, columns as u32).columns_of(feature)
    }

    /// The columns that are known from the start.
    pub(crate) fn known_columns(&self) -> &[u32] {
        let (features, columns) = (self.problem.features().len(), self.problem.columns());
        Groups::new(&self.groups, features as u32, columns as u32).known()
    }

    fn description(&self) -> serde_json::Result<Description> {
        let features =
            self.problem.features().iter().enumerate().map(|(index, feature)| FeatureDescription {
                name: feature.name.clone(),
                cost: feature.cost,
                columns: self.columns_of(index).to_vec(),
            });
        Ok(Description {
            problem: ProblemDescription {
                features: features.collect(),
                classes: self.problem.classes().to_vec(),
                class_weights: self.problem.class_weights().to_vec(),
                known_columns: self.problem.known_columns(),
            },
            normalization: self.normalization.clone(),
            horizon: self.steps,
            config: serde_json::to_value(&self.config)?,
            history: self.history.clone(),
            encoding: self.encoding.clone(),
        })
    }

    /// Writes the model to a file, under a temporary name first.
    ///
    /// # Errors
    /// The file cannot be written; an older file of that name is then still there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let text = self
            .description()
            .and_then(|description| serde_json::to_string(&description))
            .map_err(|error| Error::file(path, format!("the model cannot be described: {error}")))?;
        let metadata = HashMap::from(
            [("format", FORMAT.to_string()), ("querent", self.version.clone()), ("model", text)]
                .map(|(key, value)| (key.to_string(), value)),
        );
        let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
        let bytes = |values: &[f64]| values.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
        for (name, network) in NETWORKS.into_iter().zip(self.networks()) {
            for ((index, layer), tensor) in network.stack.layers.iter().enumerate().zip(network.tensors()) {
                let shape = vec![layer.outputs, layer.inputs];
                tensors.push((format!("{name}.{index}.weight"), shape, bytes(&tensor.weight)));
                tensors.push((format!("{name}.{index}.bias"), vec![layer.outputs], bytes(&tensor.bias)));
            }
        }
        let bad = |error: safetensors::SafeTensorError| Error::file(path, error.to_string());
        let views = tensors
            .iter()
            .map(|(name, shape, bytes)| {
                Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(bad)?))
            })
            .collect::<Result<Vec<_>>>()?;
        write_atomically(path, &safetensors::serialize(views, Some(metadata)).map_err(bad)?)
    }

    /// Reads a model.
    ///
    /// # Errors
    /// The file cannot be read, is cut off, is not a model, is one of another format, or contradicts
    /// itself.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
        Self::from_bytes(&bytes).map_err(|error| match error {
            // What `read` itself complains about needs no other name than the file's.
            Error::Config(what) | Error::Problem(what) => Error::file(path, what),
            other => Error::file(path, other.to_string()),
        })
    }

    /// Reads a model from the bytes of its file.
    ///
    /// # Errors
    /// As [`Model::load`], without the file's name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let cut = |error: safetensors::SafeTensorError| {
            Error::Config(format!("not a model of querent, or cut off: {error}"))
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(cut)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        match metadata.get("format").map(String::as_str) {
            Some(FORMAT) => {}
            Some(other) if other.starts_with("querent ") => {
                return fail(format!("it says it is a `{other}`, but this version reads a `{FORMAT}`"));
            }
            _ => return fail("not a model of querent".into()),
        }
        let text = |key: &str| {
            metadata.get(key).ok_or_else(|| Error::Config(format!("the model has no metadata `{key}`")))
        };
        let version = text("querent")?.clone();
        let description: Description = serde_json::from_str(text("model")?).map_err(|error| {
            Error::Config(format!("the model's metadata `model` cannot be read: {error}"))
        })?;
        let Description { problem, normalization, horizon, config, history, encoding } = description;
        let problem = problem.problem()?;
        let features = problem.features().len();
        if horizon == 0 || horizon > features {
            return fail(format!("the horizon is {horizon}, but there are {features} features"));
        }
        let config = Config::from_file(config)
            .map_err(|error| Error::Config(format!("the model's `config` cannot be read: {error}")))?;
        config.check(&problem)?;

        let file = SafeTensors::deserialize(bytes).map_err(cut)?;
        let mut known = Vec::new();
        let mut networks = Vec::new();
        for (name, widths) in NETWORKS.into_iter().zip(widths(&problem, &config)) {
            let mut layers = Vec::new();
            for (index, width) in widths.windows(2).enumerate() {
                let weight_name = format!("{name}.{index}.weight");
                let bias_name = format!("{name}.{index}.bias");
                layers.push(Tensors {
                    weight: tensor(&file, &weight_name, &[width[1], width[0]])?,
                    bias: tensor(&file, &bias_name, &[width[1]])?,
                });
                known.extend([weight_name, bias_name]);
            }
            networks.push(layers);
        }
        if let Some(name) = file.names().into_iter().find(|name| !known.iter().any(|k| k == name)) {
            return fail(format!("unknown tensor `{name}`"));
        }
        let predictor = networks.pop().unwrap_or_default();
        let policy = networks.pop().unwrap_or_default();
        let model = Self::new(problem, normalization, config, policy, predictor, history)?;
        let model = match encoding {
            Some(encoding) => model.with_encoding(encoding)?,
            None => model,
        };
        Ok(Self { steps: horizon, version, ..model })
    }
}

fn fail<T>(what: String) -> Result<T> {
    Err(Error::Config(what))
}

impl ProblemDescription {
    /// The problem, checked.
    fn problem(self) -> Result<Problem> {
        let columns = self.features.iter().map(|feature| feature.columns.len()).sum();
        let mut group_of_column = vec![None; columns];
        for (index, feature) in self.features.iter().enumerate() {
            for &column in &feature.columns {
                match group_of_column.get_mut(column as usize) {
                    Some(group @ None) => *group = Some(index as u32),
                    Some(Some(other)) => {
                        return fail(format!("column {column} belongs to features {other} and {index}"));
                    }
                    None => {
                        return fail(format!(
                            "feature {index} (`{}`) has column {column}, but there are only {columns} columns",
                            feature.name
                        ));
                    }
                }
            }
        }
        // As many places as columns, none taken twice: all are taken.
        let group_of_column = group_of_column.into_iter().flatten().collect();
        let features = self.features.into_iter().map(|f| Feature { name: f.name, cost: f.cost }).collect();
        let problem = Problem::new(features, group_of_column, self.classes)?;
        if self.known_columns > MOST_KNOWN {
            return fail(format!(
                "{} columns are known from the start, at most {MOST_KNOWN} can be",
                self.known_columns
            ));
        }
        problem.with_known_columns(self.known_columns).with_class_weights(self.class_weights)
    }
}

impl Network {
    fn new(name: &str, widths: [usize; 4], layers: &[Tensors]) -> Result<Self> {
        if layers.len() != 3 {
            return fail(format!("the {name} has {} layers instead of three", layers.len()));
        }
        for ((index, layer), width) in layers.iter().enumerate().zip(widths.windows(2)) {
            let (inputs, outputs) = (width[0], width[1]);
            if Some(layer.weight.len()) != inputs.checked_mul(outputs) || layer.bias.len() != outputs {
                return fail(format!(
                    "layer {index} of the {name} has {} weights and {} biases, but it leads from {inputs} to \
                     {outputs} units",
                    layer.weight.len(),
                    layer.bias.len()
                ));
            }
            for (what, values) in [("weight", &layer.weight), ("bias", &layer.bias)] {
                if let Some(at) = values.iter().position(|&value| !(value as f32).is_finite()) {
                    let value = values[at];
                    return fail(format!(
                        "element {at} of `{name}.{index}.{what}` is {value:e}, not a finite number of 32 bits"
                    ));
                }
            }
        }
        let stack = Stack::new(0, &widths);
        let values = stack.pack(layers).into_iter().map(|value| value as f32).collect();
        Ok(Self { stack, values })
    }

    fn tensors(&self) -> Vec<Tensors> {
        let values: Vec<f64> = self.values.iter().map(|&value| value.into()).collect();
        self.stack.unpack(&values)
    }
}

/// Inputs, hidden units and outputs of the policy and the predictor.
fn widths(problem: &Problem, config: &Config) -> [[usize; 4]; 2] {
    let (features, classes) = (problem.features().len(), problem.classes().len());
    let inputs = problem.columns() + features;
    let [[a, b], [c, d]] = [config.policy_hidden, config.predictor_hidden];
    [[inputs, a, b, features + 1], [inputs, c, d, classes]]
}

fn check_normalization(problem: &Problem, normalization: &Normalization) -> Result<()> {
    let (columns, means, scales) = (problem.columns(), &normalization.mean, &normalization.scale);
    if means.len() != columns || scales.len() != columns {
        return fail(format!(
            "the normalization has {} means and {} scales for {columns} columns",
            means.len(),
            scales.len()
        ));
    }
    for (column, (mean, scale)) in means.iter().zip(scales).enumerate() {
        if !mean.is_finite() || !scale.is_finite() || *scale == 0.0 {
            return fail(format!(
                "the normalization of column {column} has mean {mean} and scale {scale}, but both must be \
                 finite and the scale not zero"
            ));
        }
    }
    Ok(())
}

/// Makes sure that a value comes back from its JSON text: numbers that are not finite would not.
fn storable<T: Serialize + DeserializeOwned>(what: impl std::fmt::Display, value: &T) -> Result<()> {
    match serde_json::to_string(value).and_then(|text| serde_json::from_str::<T>(&text)) {
        Ok(_) => Ok(()),
        Err(error) => fail(format!("{what} cannot be stored, is a number in it not finite? {error}")),
    }
}

fn tensor(file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f64>> {
    let Ok(view) = file.tensor(name) else {
        return fail(format!("tensor `{name}` is missing"));
    };
    if view.dtype() != Dtype::F32 {
        return fail(format!("tensor `{name}` has type {:?} instead of F32", view.dtype()));
    }
    if view.shape() != shape {
        return fail(format!("tensor `{name}` has shape {:?}, expected {shape:?}", view.shape()));
    }
    let words = view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    Ok(words.map(f64::from).collect())
}
