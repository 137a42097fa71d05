//! A model's file: see [`Model`].

use super::curve::CurvePoint;
use super::history::Epoch;
use super::model::{Model, fail};
use super::policy::{Policy, Tensor};
use super::tradeoff::Tradeoffs;
use crate::data::Normalization;
use crate::data::encoding::Encoding;
use crate::error::{Error, Result};
use crate::files::{in_order, write_atomically};
use crate::nn::Tensors;
use crate::problem::{Feature, Problem};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What the file says it is.
const FORMAT: &str = "querent model 2";
/// What files of NM-PPG said before there were other methods.
const FIRST_FORMAT: &str = "querent model 1";

/// Columns known from the start, at most: a damaged file must not ask for all memory.
const MOST_KNOWN: usize = 1 << 20;

/// The JSON text in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    /// The first format had none: it was NM-PPG.
    #[serde(default = "first_method")]
    method: String,
    problem: ProblemDescription,
    normalization: Normalization,
    horizon: usize,
    /// The first format had it among the settings alone.
    #[serde(default)]
    alpha: Option<f64>,
    /// Where the stop rule was moved to since training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tradeoff: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tradeoffs: Option<Tradeoffs>,
    /// What the model does at some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    curve: Vec<CurvePoint>,
    config: serde_json::Value,
    history: Vec<Epoch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<Encoding>,
}

fn first_method() -> String {
    "nmppg".into()
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

/// A model's file as it was read, before its method has made a policy of it.
pub struct Stored {
    /// The method's name.
    pub method: String,
    /// Its settings.
    pub settings: serde_json::Value,
    /// What is asked, and what it costs.
    pub problem: Problem,
    normalization: Normalization,
    /// Acquisitions at most.
    pub horizon: usize,
    /// What a unit of cost was worth in training.
    pub alpha: f64,
    tradeoff: Option<f64>,
    /// The trade-offs it was trained for, if there are several.
    pub tradeoffs: Option<Tradeoffs>,
    curve: Vec<CurvePoint>,
    history: Vec<Epoch>,
    version: String,
    encoding: Option<Encoding>,
    tensors: BTreeMap<String, Tensor>,
}

impl Stored {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// They are cut off, are not a model, are one of another format, or contradict themselves.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let cut = |error: safetensors::SafeTensorError| {
            Error::Config(format!("not a model of querent, or cut off: {error}"))
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(cut)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        match metadata.get("format").map(String::as_str) {
            Some(FORMAT | FIRST_FORMAT) => {}
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
        let Description {
            method,
            problem,
            normalization,
            horizon,
            alpha,
            tradeoff,
            tradeoffs,
            curve,
            config,
            history,
            encoding,
        } = description;
        let problem = problem.problem()?;
        let features = problem.features().len();
        if horizon == 0 || horizon > features {
            return fail(format!("the horizon is {horizon}, but there are {features} features"));
        }
        let alpha = alpha.or(config.get("alpha").and_then(serde_json::Value::as_f64)).unwrap_or(0.0);
        let file = SafeTensors::deserialize(bytes).map_err(cut)?;
        let tensors = file.iter().map(|(name, view)| Ok((name.to_string(), tensor(name, &view)?)));
        let tensors = tensors.collect::<Result<_>>()?;
        Ok(Self {
            method,
            settings: config,
            problem,
            normalization,
            horizon,
            alpha,
            tradeoff,
            tradeoffs,
            curve,
            history,
            version,
            encoding,
            tensors,
        })
    }

    /// The method's settings.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn config<C: serde::de::DeserializeOwned>(&self) -> Result<C> {
        serde_json::from_value(self.settings.clone())
            .map_err(|error| Error::Config(format!("the model's `config` cannot be read: {error}")))
    }

    /// Takes a tensor of a shape.
    ///
    /// # Errors
    /// It is missing or has another shape.
    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f64>> {
        let tensor = self.take_any(name)?;
        if tensor.shape != shape {
            return fail(format!("tensor `{name}` has shape {:?}, expected {shape:?}", tensor.shape));
        }
        Ok(tensor.values.iter().map(|&value| value.into()).collect())
    }

    /// Takes a tensor, whatever its shape.
    ///
    /// # Errors
    /// It is missing.
    pub fn take_any(&mut self, name: &str) -> Result<Tensor> {
        match self.tensors.remove(name) {
            Some(tensor) => Ok(tensor),
            None => fail(format!("tensor `{name}` is missing")),
        }
    }

    /// Takes a network's layers: `widths` are those of the inputs, the hidden layers and the outputs.
    ///
    /// # Errors
    /// A tensor is missing or has another shape.
    pub fn take_network(&mut self, name: &str, widths: &[usize]) -> Result<Vec<Tensors>> {
        let mut layers = Vec::new();
        for (index, width) in widths.windows(2).enumerate() {
            layers.push(Tensors {
                weight: self.take(&format!("{name}.{index}.weight"), &[width[1], width[0]])?,
                bias: self.take(&format!("{name}.{index}.bias"), &[width[1]])?,
            });
        }
        Ok(layers)
    }

    /// The model, with what its method has made of the tensors.
    ///
    /// # Errors
    /// A tensor that the method does not know, or as [`Model::new`].
    pub fn model(self, policy: Box<dyn Policy>, method: &'static str) -> Result<Model> {
        if let Some(name) = self.tensors.keys().next() {
            return fail(format!("unknown tensor `{name}`"));
        }
        let model = Model::new(super::model::Trained {
            method,
            settings: self.settings,
            problem: self.problem,
            normalization: self.normalization,
            horizon: self.horizon,
            alpha: self.alpha,
            policy,
            history: self.history,
            tradeoffs: self.tradeoffs,
        })?;
        let mut model = match self.encoding {
            Some(encoding) => model.with_encoding(encoding)?,
            None => model,
        };
        if let Some(at) = self.tradeoff {
            model = model.with_tradeoff(at)?;
        }
        if !self.curve.is_empty() {
            check_curve(&self.curve)?;
            model.curve = self.curve;
        }
        model.version = self.version;
        Ok(model)
    }
}

/// A curve goes from the smallest α to the largest.
fn check_curve(curve: &[CurvePoint]) -> Result<()> {
    let rises = curve.windows(2).all(|pair| pair[0].alpha < pair[1].alpha);
    let is_finite = |p: &CurvePoint| [p.alpha, p.cost, p.loss, p.accuracy].iter().all(|v| v.is_finite());
    if rises && curve.iter().all(is_finite) {
        return Ok(());
    }
    fail("the model's `curve` must have finite numbers and go from the smallest α to the largest".into())
}

impl Model {
    fn description(&self) -> Description {
        let features =
            self.problem.features().iter().enumerate().map(|(index, feature)| FeatureDescription {
                name: feature.name.clone(),
                cost: feature.cost,
                columns: self.columns_of(index).to_vec(),
            });
        Description {
            method: self.method.clone(),
            problem: ProblemDescription {
                features: features.collect(),
                classes: self.problem.classes().to_vec(),
                class_weights: self.problem.class_weights().to_vec(),
                known_columns: self.problem.known_columns(),
            },
            normalization: self.normalization.clone(),
            horizon: self.steps,
            alpha: Some(self.alpha),
            tradeoff: self.tradeoff,
            tradeoffs: self.tradeoffs,
            curve: self.curve.clone(),
            config: self.settings.clone(),
            history: self.history.clone(),
            encoding: self.encoding.clone(),
        }
    }

    /// Writes the model to a file, under a temporary name first.
    ///
    /// # Errors
    /// The file cannot be written; an older file of that name is then still there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes().map_err(|error| Error::file(path, error.message()))?;
        write_atomically(path, &bytes)
    }

    /// The bytes of its file.
    ///
    /// # Errors
    /// It cannot be described.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let text = serde_json::to_string(&self.description())
            .map_err(|error| Error::Config(format!("the model cannot be described: {error}")))?;
        let metadata = HashMap::from(
            [("format", FORMAT.to_string()), ("querent", self.version.clone()), ("model", text)]
                .map(|(key, value)| (key.to_string(), value)),
        );
        let tensors = self.tensors();
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|tensor| tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect())
            .collect();
        let bad = |error: safetensors::SafeTensorError| Error::Config(error.to_string());
        let views = tensors
            .iter()
            .zip(&bytes)
            .map(|(tensor, bytes)| {
                let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).map_err(bad)?;
                Ok((&tensor.name, view))
            })
            .collect::<Result<Vec<_>>>()?;
        safetensors::serialize(views, Some(metadata)).map_err(bad).map(in_order)
    }
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

fn tensor(name: &str, view: &TensorView<'_>) -> Result<Tensor> {
    if view.dtype() != Dtype::F32 {
        return fail(format!("tensor `{name}` has type {:?} instead of F32", view.dtype()));
    }
    let values = view.data().chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    Ok(Tensor { name: name.into(), shape: view.shape().to_vec(), values })
}
