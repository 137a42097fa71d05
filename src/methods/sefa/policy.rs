//! What SEFA has trained, without a device: an encoder a feature, and a predictor on samples of their latents. Batch norms
//! are folded into the layers.

use super::config::Config;
use super::kernels::{add_score, grad_of_class, stream};
use super::knots::KNOTS;
use super::plan::Widths;
use crate::data::Normalization;
use crate::engine::cpu::matmul::{Finish, Shape, Start, matmul};
use crate::engine::kernels::{deviation, normal, normal_score};
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
struct Encoded {
    widths: Widths,
    encoder: Vec<EncoderLayer>,
    predictor: Perceptron,
    /// Its layers the other way round.
    transposed: Vec<Vec<f32>>,
    knots: Vec<f32>,
    /// Where each column is among the inputs of its feature's encoder.
    places: Vec<usize>,
    /// Of each sample, for all latents.
    noise: Vec<f32>,
    costs: Vec<f32>,
    classes: usize,
    latent: usize,
    samples: usize,
    noisy: bool,
    threshold: f32,
}

impl Encoded {
    /// Numbers of a row of all latents.
    fn pitch(&self) -> usize {
        pitch(self.widths.predictor[0])
    }

    /// Numbers of an encoder's inputs.
    fn inputs(&self) -> usize {
        self.widths.encoder[0]
    }

    /// An encoder's means and what is behind its deviations, in `units`; `spare` has room for any layer.
    fn encode(&self, block: usize, inputs: &[f32], units: &mut Vec<f32>, spare: &mut Vec<f32>) {
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
        let rows = |width: usize| vec![0.0; self.samples * pitch(width)];
        let (widths, widest) = (&self.widths, self.widths.encoder.iter().copied().max().unwrap_or(0));
        let mut case = Instance {
            of: self,
            threshold: self.threshold,
            inputs: vec![0.0; widths.blocks * self.inputs()],
            before: vec![0.0; self.inputs()],
            units: [Vec::with_capacity(widest), Vec::with_capacity(widest)],
            z: rows(widths.predictor[0]),
            dz: rows(widths.predictor[0]),
            layers: widths.predictor[1..].iter().map(|&width| rows(width)).collect(),
            grads: widths.predictor[1..].iter().map(|&width| rows(width)).collect(),
            belief: vec![0.0; self.classes],
            scores: vec![0.0; self.costs.len()],
            logits: vec![0.0; self.costs.len()],
        };
        case.reset();
        Box::new(case)
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

/// One instance.
#[derive(Clone, Debug)]
struct Instance<'p> {
    of: &'p Encoded,
    threshold: f32,
    /// What each encoder reads.
    inputs: Vec<f32>,
    /// What the last one to change read before.
    before: Vec<f32>,
    units: [Vec<f32>; 2],
    /// Samples of all latents, a row a sample, and the gradient of a class's probability by them.
    z: Vec<f32>,
    dz: Vec<f32>,
    /// The predictor's layers of each sample, and their gradients.
    layers: Vec<Vec<f32>>,
    grads: Vec<Vec<f32>>,
    belief: Vec<f32>,
    scores: Vec<f32>,
    /// Their logarithms.
    logits: Vec<f32>,
}

impl Instance<'_> {
    /// Samples the latents of a feature.
    fn sample(&mut self, block: usize) {
        let Self { of, inputs, units: [units, spare], z, .. } = self;
        let inputs = &inputs[block * of.inputs()..][..of.inputs()];
        of.encode(block, inputs, units, spare);
        let (means, deviations) = units.split_at_mut(of.latent);
        deviations.iter_mut().for_each(|v| *v = if of.noisy { deviation(*v) } else { 0.0 });
        let at = block * of.latent..(block + 1) * of.latent;
        for (z, noise) in z.chunks_exact_mut(of.pitch()).zip(of.noise.chunks_exact(of.pitch())) {
            for (i, (z, noise)) in z[at.clone()].iter_mut().zip(&noise[at.clone()]).enumerate() {
                *z = means[i] + deviations[i] * noise;
            }
        }
    }

    /// What is believed, and what each feature is worth.
    fn weigh(&mut self) {
        self.forward();
        let classes = self.of.classes;
        self.scores.fill(0.0);
        // Of two classes, one says it all: the gradients are each other's negatives.
        let scored = if classes == 2 { 1 } else { classes };
        for class in 0..scored {
            self.backward(class);
            let weight = if scored == 1 { 1.0 } else { self.belief[class] } / self.of.samples as f32;
            for dz in self.dz.chunks_exact(self.of.pitch()) {
                let dz = &dz[..self.of.widths.predictor[0]];
                add_score(dz, self.of.latent, weight, &self.of.costs, &mut self.scores);
            }
        }
        for (logit, score) in self.logits.iter_mut().zip(&self.scores) {
            *logit = score.max(f32::MIN_POSITIVE).ln();
        }
    }

    /// The mean of the samples' softmaxes.
    fn forward(&mut self) {
        let Self { of, z, layers, belief, .. } = self;
        let (samples, last) = (of.samples, layers.len() - 1);
        for index in 0..=last {
            let (done, rest) = layers.split_at_mut(index);
            let (x, inputs) = match done.last() {
                None => (&z[..], of.pitch()),
                Some(x) => (&x[..], x.len() / samples),
            };
            let (weight, outputs, bias) = of.predictor.layer(index);
            matmul(
                (&mut rest[0], Shape::rows(samples, outputs, outputs)),
                Start::Bias(bias),
                1.0,
                (x, Shape::rows(samples, inputs, inputs)),
                (weight, Shape::rows(inputs, outputs, outputs)),
                (if index < last { Finish::Relu } else { Finish::Nothing }, None),
            );
        }
        belief.fill(0.0);
        for logits in layers[last].chunks_exact(pitch(of.classes)) {
            let logits = &logits[..of.classes];
            let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mass: f32 = logits.iter().map(|logit| (logit - top).exp()).sum();
            belief.iter_mut().zip(logits).for_each(|(f, logit)| *f += (logit - top).exp() / mass);
        }
        belief.iter_mut().for_each(|f| *f /= samples as f32);
    }

    /// The gradient of a class's probability in each sample by its latents.
    fn backward(&mut self, class: usize) {
        let Self { of, dz, layers, grads, .. } = self;
        let (samples, last) = (of.samples, layers.len() - 1);
        let pairs = layers[last].chunks_exact(pitch(of.classes));
        for (logits, grad) in pairs.zip(grads[last].chunks_exact_mut(pitch(of.classes))) {
            grad_of_class(&logits[..of.classes], class, &mut grad[..of.classes]);
        }
        for index in (0..=last).rev() {
            let (before, from) = grads.split_at_mut(index);
            let outputs = from[0].len() / samples;
            let (to, inputs, finish) = match before.last_mut() {
                None => (&mut dz[..], of.pitch(), Finish::Nothing),
                Some(to) => {
                    let inputs = to.len() / samples;
                    (&mut to[..], inputs, Finish::Gate(&layers[index - 1]))
                }
            };
            matmul(
                (to, Shape::rows(samples, inputs, inputs)),
                Start::Zero,
                1.0,
                (&from[0], Shape::rows(samples, outputs, outputs)),
                (&of.transposed[index], Shape::rows(outputs, inputs, inputs)),
                (finish, None),
            );
        }
    }
}

impl<'p> Case for Instance<'p> {
    fn reset(&mut self) {
        self.inputs.fill(0.0);
        // What is known from the start has been acquired; until it is told, it is nothing in particular.
        if self.of.widths.blocks > self.of.costs.len() {
            self.inputs[self.of.costs.len() * self.of.inputs()] = 1.0;
        }
        (0..self.of.widths.blocks).for_each(|block| self.sample(block));
        self.weigh();
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.threshold = belief::threshold(at)?;
        self.reset();
        Ok(())
    }

    fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) -> bool {
        let block = feature.unwrap_or(self.of.costs.len());
        let own = &mut self.inputs[block * self.of.inputs()..][..self.of.inputs()];
        self.before.copy_from_slice(own);
        own[0] = 1.0;
        for (&column, &input) in columns.iter().zip(inputs) {
            let knots = &self.of.knots[column as usize * 2 * KNOTS..][..2 * KNOTS];
            own[self.of.places[column as usize]] = normal_score(knots, input);
        }
        self.sample(block);
        self.weigh();
        let fits = self.is_finite();
        if !fits {
            self.inputs[block * self.of.inputs()..][..self.of.inputs()].copy_from_slice(&self.before);
            self.sample(block);
            self.weigh();
        }
        fits
    }

    /// The highest score, the lowest index where there are several.
    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize> {
        let mut best: Option<(usize, f32)> = None;
        for (index, &score) in self.scores.iter().enumerate() {
            if best.is_none_or(|(_, most)| score > most) && open(index) {
                best = Some((index, score));
            }
        }
        best.map(|(index, _)| index)
    }

    fn stops(&self, best: usize) -> bool {
        self.stop_score(best) < self.threshold
    }

    fn stop_score(&self, _: usize) -> f32 {
        belief::entropy(&self.belief)
    }

    fn logits(&self) -> Option<&[f32]> {
        Some(&self.logits)
    }

    fn threshold(&self) -> Option<f32> {
        Some(self.threshold)
    }

    fn belief(&self) -> &[f32] {
        &self.belief
    }

    fn is_finite(&self) -> bool {
        self.belief.iter().all(|f| f.is_finite())
    }

    fn boxed<'a>(&self) -> Box<dyn Case + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}
