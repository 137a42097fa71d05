//! One instance on its way through what SEFA has trained: samples of its latents, the predictor forward and back.

use super::kernels::{add_score, grad_of_class};
use super::knots::KNOTS;
use super::policy::Encoded;
use crate::engine::cpu::matmul::{Finish, Shape, Start, matmul};
use crate::engine::kernels::{deviation, normal_score};
use crate::error::Result;
use crate::nn::pitch;
use crate::policy::{Case, belief};

/// One instance.
#[derive(Clone, Debug)]
pub(super) struct Instance<'p> {
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

impl<'p> Instance<'p> {
    /// With nothing seen.
    pub fn new(of: &'p Encoded) -> Self {
        let rows = |width: usize| vec![0.0; of.samples * pitch(width)];
        let (widths, widest) = (&of.widths, of.widths.encoder.iter().copied().max().unwrap_or(0));
        let mut case = Self {
            of,
            threshold: of.threshold,
            inputs: vec![0.0; widths.blocks * of.inputs()],
            before: vec![0.0; of.inputs()],
            units: [Vec::with_capacity(widest), Vec::with_capacity(widest)],
            z: rows(widths.predictor[0]),
            dz: rows(widths.predictor[0]),
            layers: widths.predictor[1..].iter().map(|&width| rows(width)).collect(),
            grads: widths.predictor[1..].iter().map(|&width| rows(width)).collect(),
            belief: vec![0.0; of.classes],
            scores: vec![0.0; of.costs.len()],
            logits: vec![0.0; of.costs.len()],
        };
        case.reset();
        case
    }

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

    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize> {
        belief::highest(&self.scores, open)
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
