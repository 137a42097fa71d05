//! A policy of two networks on masked inputs: one chooses, the other predicts. What tells methods apart here is when to
//! stop.

use super::perceptron::{Activations, Perceptron};
use super::policy::{Case, Policy, Tensor};
use crate::error::{Error, Result};
use crate::problem::Problem;

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// Stopping has an output of its own, the chooser's last.
    Logit,
    /// When the entropy of the belief, in nats, is below this.
    Entropy(f32),
}

/// The two networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Networks {
    chooser: Perceptron,
    predictor: Perceptron,
    stop: Stop,
    columns: usize,
    features: usize,
    classes: usize,
}

impl Networks {
    /// Puts them together; their widths are those of the problem.
    pub fn new(problem: &Problem, chooser: Perceptron, predictor: Perceptron, stop: Stop) -> Self {
        let (columns, features) = (problem.columns(), problem.features().len());
        Self { chooser, predictor, stop, columns, features, classes: problem.classes().len() }
    }
}

impl Policy for Networks {
    fn case(&self) -> Box<dyn Case + '_> {
        let mut case = Instance {
            of: self,
            chooser: Activations::new(&self.chooser),
            predictor: Activations::new(&self.predictor),
            belief: vec![0.0; self.classes],
        };
        case.believe();
        Box::new(case)
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        match &mut self.stop {
            Stop::Logit => Err(Error::Config(
                "the model was trained for one α and has no threshold to move; train with another --alpha"
                    .into(),
            )),
            Stop::Entropy(_) if !(at.is_finite() && at >= 0.0) => Err(Error::Config(format!(
                "the threshold on the belief's entropy is {at}, but it must be a finite number, zero or more"
            ))),
            Stop::Entropy(threshold) => {
                *threshold = at as f32;
                Ok(())
            }
        }
    }

    fn tensors(&self) -> Vec<Tensor> {
        [self.chooser.tensors(), self.predictor.tensors()].concat()
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// One instance.
#[derive(Clone, Debug)]
struct Instance<'p> {
    of: &'p Networks,
    chooser: Activations<'p>,
    predictor: Activations<'p>,
    belief: Vec<f32>,
}

impl Instance<'_> {
    /// The softmax of the predictor's output.
    fn believe(&mut self) {
        let logits = &self.predictor.output()[..self.of.classes];
        let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        self.belief.iter_mut().zip(logits).for_each(|(p, logit)| *p = (logit - top).exp());
        let mass: f32 = self.belief.iter().sum();
        self.belief.iter_mut().for_each(|p| *p /= mass);
    }
}

impl<'p> Case for Instance<'p> {
    fn reset(&mut self) {
        self.chooser.reset();
        self.predictor.reset();
        self.believe();
    }

    fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) -> bool {
        let mask = feature.map(|feature| self.of.columns + feature);
        self.chooser.observe(columns, inputs, mask);
        self.predictor.observe(columns, inputs, mask);
        let fits = self.is_finite();
        if !fits {
            self.chooser.undo();
            self.predictor.undo();
        }
        self.believe();
        fits
    }

    /// The highest logit, the lowest index where there are several.
    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize> {
        let mut best: Option<(usize, f32)> = None;
        for (index, &logit) in self.chooser.output()[..self.of.features].iter().enumerate() {
            if best.is_none_or(|(_, top)| logit > top) && open(index) {
                best = Some((index, logit));
            }
        }
        best.map(|(index, _)| index)
    }

    fn stops(&self, best: usize) -> bool {
        match self.of.stop {
            Stop::Logit => self.stop_score(best) < 0.0,
            Stop::Entropy(threshold) => self.stop_score(best) < threshold,
        }
    }

    fn stop_score(&self, best: usize) -> f32 {
        match self.of.stop {
            // Of equal logits, that of the feature counts.
            Stop::Logit => {
                let logits = self.chooser.output();
                if logits[best] >= logits[self.of.features] {
                    0.0
                } else {
                    logits[best] - logits[self.of.features]
                }
            }
            Stop::Entropy(_) => {
                let terms = self.belief.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln());
                terms.sum()
            }
        }
    }

    fn belief(&self) -> &[f32] {
        &self.belief
    }

    fn is_finite(&self) -> bool {
        self.chooser.is_finite() && self.predictor.is_finite()
    }

    fn boxed<'a>(&self) -> Box<dyn Case + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}
