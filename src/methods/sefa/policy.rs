//! What SEFA has trained, without a device: an encoder a feature, and a predictor on samples of their latents. Batch norms
//! are folded into the layers.

use super::config::Config;
use super::instance::Instance;
use super::kernels::stream;
use super::knots::KNOTS;
use super::plan::Widths;
use crate::data::Normalization;
use crate::engine::kernels::normal;
use crate::error::{Error, Result};
use crate::nn::{Tensors, pitch};
use crate::policy::history::Epoch;
use crate::policy::{Case, Model, Perceptron, Policy, Stored, Tensor, Trained, belief, storable};
use crate::problem::Problem;
use crate::random::{Source, unit};
use crate::train::Settings;

/// What training gave besides its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    /// The encoders' layers: weights `[encoder][output][input]`, biases `[encoder][output]`. An encoder's inputs are the
    /// mask and the columns, its outputs the means and what the deviations are the softplus of.
    pub encoder: Vec<Tensors>,
    /// The predictor's layers, in PyTorch's layout.
    pub predictor: Vec<Tensors>,
    /// Of each column its knots, then their normal scores.
    pub knots: Vec<f64>,
}

/// Puts a model together from what training gave, rounded to f32.
///
/// # Errors
/// Settings, normalization or layers that do not fit the problem, or a number that is not finite.
pub fn model(
    problem: Problem,
    normalization: Normalization,
    config: Config,
    layers: Layers,
    history: Vec<Epoch>,
) -> Result<Model> {
    config.check(&problem)?;
    let settings = storable("the configuration", &config)?;
    let policy = put_together(&problem, &config, &layers)?;
    let horizon = config.steps(&problem);
    let method = super::NAME;
    Model::new(Trained {
        method,
        settings,
        problem,
        normalization,
        horizon,
        alpha: 0.0,
        policy,
        history,
        tradeoffs: None,
    })
}

/// Reads a policy from its file.
///
/// # Errors
/// Settings or tensors that do not fit the problem.
pub(super) fn load(stored: &mut Stored) -> Result<Box<dyn Policy>> {
    let config: Config = stored.config()?;
    config.check(&stored.problem)?;
    let widths = Widths::new(&stored.problem, &config);
    let mut encoder = Vec::new();
    for (index, width) in widths.encoder.windows(2).enumerate() {
        encoder.push(Tensors {
            weight: stored
                .take(&format!("{ENCODER}.{index}.weight"), &[widths.blocks, width[1], width[0]])?,
            bias: stored.take(&format!("{ENCODER}.{index}.bias"), &[widths.blocks, width[1]])?,
        });
    }
    let predictor = stored.take_network(PREDICTOR, &widths.predictor)?;
    let knots = stored.take(COLUMNS, &[stored.problem.columns(), 2, KNOTS])?;
    put_together(&stored.problem, &config, &Layers { encoder, predictor, knots })
}

/// Names in a model's file.
const ENCODER: &str = "encoder";
const PREDICTOR: &str = "predictor";
const COLUMNS: &str = "columns.knots";

/// The noise of so many samples of all latents, a row a sample: the same for every instance and step.
pub(super) fn noise(config: &Config, samples: usize, width: usize) -> Vec<f32> {
    let source = Source::new(config.seed, stream::SAMPLES, 0);
    let row = |sample: usize| {
        (0..pitch(width)).map(move |i| {
            let bits = source.bits(sample as u32, 0, i as u32 / 4)[i % 4];
            if i < width { normal(unit(bits)) as f32 } else { 0.0 }
        })
    };
    (0..samples).flat_map(row).collect()
}

fn put_together(problem: &Problem, config: &Config, layers: &Layers) -> Result<Box<dyn Policy>> {
    let widths = Widths::new(problem, config);
    let predictor = Perceptron::new(PREDICTOR, &widths.predictor, &layers.predictor)?;
    let encoder = encoders(&widths, &layers.encoder)?;
    let knots = narrow(COLUMNS, &layers.knots)?;
    if knots.len() != 2 * KNOTS * problem.columns() {
        let columns = problem.columns();
        return Err(Error::Config(format!(
            "`{COLUMNS}` has {} numbers, but {columns} columns have {}",
            knots.len(),
            2 * KNOTS * columns
        )));
    }
    let transposed = (0..predictor.layers()).map(|index| transposed(&predictor, index)).collect();
    let samples = config.taken(config.samples);
    let mut counts = vec![0; problem.features().len() + 1];
    let places = problem.group_of_column().iter().map(|&group| {
        counts[group as usize] += 1;
        counts[group as usize]
    });
    Ok(Box::new(Encoded {
        places: places.collect(),
        noise: noise(config, samples, widths.predictor[0]),
        costs: problem.features().iter().map(|feature| feature.cost as f32).collect(),
        classes: problem.classes().len(),
        latent: config.latent,
        samples,
        noisy: !config.deterministic,
        threshold: config.threshold as f32,
        widths,
        encoder,
        predictor,
        transposed,
        knots,
    }))
}

/// A predictor's layer the other way round.
fn transposed(predictor: &Perceptron, index: usize) -> Vec<f32> {
    let (weight, row, _) = predictor.layer(index);
    let inputs = weight.len() / row;
    (0..row).flat_map(|output| (0..inputs).map(move |input| weight[input * row + output])).collect()
}

/// The encoders' layers, checked and rounded.
fn encoders(widths: &Widths, layers: &[Tensors]) -> Result<Vec<EncoderLayer>> {
    if layers.len() + 1 != widths.encoder.len() {
        let (got, expected) = (layers.len(), widths.encoder.len() - 1);
        return Err(Error::Config(format!("the {ENCODER} has {got} layers instead of {expected}")));
    }
    let checked = layers.iter().zip(widths.encoder.windows(2)).enumerate().map(|(index, (layer, width))| {
        let (inputs, outputs) = (width[0], width[1]);
        if layer.weight.len() != widths.blocks * inputs * outputs || layer.bias.len() != widths.blocks * outputs {
            return Err(Error::Config(format!(
                "layer {index} of the {ENCODER} has {} weights and {} biases, but {} encoders lead from {inputs} to \
                 {outputs} units",
                layer.weight.len(),
                layer.bias.len(),
                widths.blocks
            )));
        }
        Ok(EncoderLayer {
            inputs,
            outputs,
            weight: narrow(&format!("{ENCODER}.{index}.weight"), &layer.weight)?,
            bias: narrow(&format!("{ENCODER}.{index}.bias"), &layer.bias)?,
        })
    });
    checked.collect()
}

/// Rounded to f32.
fn narrow(name: &str, values: &[f64]) -> Result<Vec<f32>> {
    if let Some(at) = values.iter().position(|&value| !(value as f32).is_finite()) {
        let value = values[at];
        return Err(Error::Config(format!(
            "element {at} of `{name}` is {value:e}, not a finite number of 32 bits"
        )));
    }
    Ok(values.iter().map(|&value| value as f32).collect())
}

/// A layer of all encoders.
#[derive(Clone, Debug, PartialEq)]
struct EncoderLayer {
    inputs: usize,
    outputs: usize,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

/// Encoders, predictor, and what scores are weighed by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Encoded {
    pub widths: Widths,
    encoder: Vec<EncoderLayer>,
    pub predictor: Perceptron,
    /// Its layers the other way round.
    pub transposed: Vec<Vec<f32>>,
    pub knots: Vec<f32>,
    /// Where each column is among the inputs of its feature's encoder.
    pub places: Vec<usize>,
    /// Of each sample, for all latents.
    pub noise: Vec<f32>,
    pub costs: Vec<f32>,
    pub classes: usize,
    pub latent: usize,
    pub samples: usize,
    pub noisy: bool,
    pub threshold: f32,
}

impl Encoded {
    /// Numbers of a row of all latents.
    pub fn pitch(&self) -> usize {
        pitch(self.widths.predictor[0])
    }

    /// Numbers of an encoder's inputs.
    pub fn inputs(&self) -> usize {
        self.widths.encoder[0]
    }

    /// An encoder's means and what is behind its deviations, in `units`; `spare` has room for any layer.
    pub fn encode(&self, block: usize, inputs: &[f32], units: &mut Vec<f32>, spare: &mut Vec<f32>) {
        units.clear();
        units.extend_from_slice(inputs);
        for (index, layer) in self.encoder.iter().enumerate() {
            spare.clear();
            let weights = &layer.weight[block * layer.outputs * layer.inputs..];
            let biases = &layer.bias[block * layer.outputs..][..layer.outputs];
            spare.extend(biases.iter().zip(weights.chunks_exact(layer.inputs)).map(|(bias, weights)| {
                let sum = bias + weights.iter().zip(units.iter()).map(|(w, x)| w * x).sum::<f32>();
                if index + 1 < self.encoder.len() && sum < 0.0 { 0.0 } else { sum }
            }));
            std::mem::swap(units, spare);
        }
    }
}

impl Policy for Encoded {
    fn case(&self) -> Box<dyn Case + '_> {
        Box::new(Instance::new(self))
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.threshold = belief::threshold(at)?;
        Ok(())
    }

    fn tensors(&self) -> Vec<Tensor> {
        let blocks = self.widths.blocks;
        let encoder = self.encoder.iter().enumerate().flat_map(|(index, layer)| {
            let name = |what: &str| format!("{ENCODER}.{index}.{what}");
            let shape = vec![blocks, layer.outputs, layer.inputs];
            [
                Tensor { name: name("weight"), shape, values: layer.weight.clone() },
                Tensor { name: name("bias"), shape: vec![blocks, layer.outputs], values: layer.bias.clone() },
            ]
        });
        let shape = vec![self.places.len(), 2, KNOTS];
        let columns = Tensor { name: COLUMNS.into(), shape, values: self.knots.clone() };
        encoder.chain(self.predictor.tensors()).chain([columns]).collect()
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
