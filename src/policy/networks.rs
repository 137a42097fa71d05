//! A policy of two networks on masked inputs: one chooses, the other predicts. What tells methods apart here is when to
//! stop.

use super::belief;
use super::perceptron::{Activations, Perceptron};
use super::policy::{Case, Policy, Tensor};
use super::tradeoff::{COLUMNS, Tradeoffs};
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
    tradeoff: Option<Told>,
    /// The chooser reads what cannot be had.
    availability: bool,
    columns: usize,
    features: usize,
    classes: usize,
}

/// The trade-off that the chooser is told, of those it was trained for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    of: Tradeoffs,
    alpha: f64,
}

impl Networks {
    /// Puts them together; their widths are those of the problem.
    pub fn new(problem: &Problem, chooser: Perceptron, predictor: Perceptron, stop: Stop) -> Self {
        let (columns, features) = (problem.columns(), problem.features().len());
        let classes = problem.classes().len();
        Self { chooser, predictor, stop, tradeoff: None, availability: false, columns, features, classes }
    }

    /// The same with a chooser that was trained for many trade-offs and reads which one counts, behind the columns of the
    /// problem.
    pub fn with_tradeoffs(mut self, of: Tradeoffs) -> Self {
        self.tradeoff = Some(Told { of, alpha: of.trained.middle() });
        self
    }

    /// The same with a chooser that also reads what cannot be had, a column for each feature behind those of the
    /// trade-off.
    pub fn with_availability(mut self) -> Self {
        self.availability = true;
        self
    }

    /// Where the columns begin that tell the chooser what cannot be had, if it is told; and where its masks do.
    fn told(&self) -> (Option<usize>, usize) {
        let told = self.columns + if self.tradeoff.is_some() { COLUMNS } else { 0 };
        if self.availability { (Some(told), told + self.features) } else { (None, told) }
    }
}

impl Policy for Networks {
    fn case(&self) -> Box<dyn Case + '_> {
        let mut case = Instance {
            of: self,
            stop: self.stop,
            tradeoff: self.tradeoff,
            chooser: Activations::new(&self.chooser),
            predictor: Activations::new(&self.predictor),
            unavailable: vec![false; self.features],
            belief: vec![0.0; self.classes],
        };
        case.reset();
        Box::new(case)
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        move_to(at, &mut self.stop, &mut self.tradeoff)
    }

    fn tensors(&self) -> Vec<Tensor> {
        [self.chooser.tensors(), self.predictor.tensors()].concat()
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

fn move_to(at: f64, stop: &mut Stop, tradeoff: &mut Option<Told>) -> Result<()> {
    match (stop, tradeoff) {
        (_, Some(told)) => {
            told.of.check(at)?;
            told.alpha = at;
            Ok(())
        }
        (Stop::Logit, None) => Err(Error::Config(
            "the model was trained for one α and has nothing to move: train it for a range of α, or for another one"
                .into(),
        )),
        (Stop::Entropy(threshold), None) => {
            *threshold = belief::threshold(at)?;
            Ok(())
        }
    }
}

/// One instance.
#[derive(Clone, Debug)]
struct Instance<'p> {
    of: &'p Networks,
    stop: Stop,
    tradeoff: Option<Told>,
    chooser: Activations<'p>,
    predictor: Activations<'p>,
    /// What the chooser was told.
    unavailable: Vec<bool>,
    belief: Vec<f32>,
}

impl Instance<'_> {
    /// The softmax of the predictor's output.
    fn believe(&mut self) {
        belief::believe(&self.predictor.output()[..self.of.classes], &mut self.belief);
    }

    /// Tells the chooser whether a feature can be had, if that is news and it reads such.
    fn tell(&mut self, feature: usize, unavailable: bool) {
        let (Some(first), _) = self.of.told() else { return };
        if self.unavailable[feature] != unavailable {
            let change = if unavailable { 1.0 } else { -1.0 };
            self.chooser.observe(&[(first + feature) as u32], &[change], None);
            // Nobody's values are to blame if it overflows: the feature is just not asked for, then.
            if !self.chooser.is_finite() {
                self.chooser.undo();
                return;
            }
            self.unavailable[feature] = unavailable;
        }
    }
}

impl<'p> Case for Instance<'p> {
    fn reset(&mut self) {
        self.chooser.reset();
        self.predictor.reset();
        self.unavailable.fill(false);
        if let Some(Told { of, alpha }) = self.tradeoff {
            let columns: [u32; COLUMNS] = std::array::from_fn(|i| (self.of.columns + i) as u32);
            self.chooser.observe(&columns, &of.scale.columns(alpha), None);
        }
        self.believe();
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        move_to(at, &mut self.stop, &mut self.tradeoff)?;
        self.reset();
        Ok(())
    }

    fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) -> bool {
        let (_, masks) = self.of.told();
        self.chooser.observe(columns, inputs, feature.map(|feature| masks + feature));
        self.predictor.observe(columns, inputs, feature.map(|feature| self.of.columns + feature));
        let fits = self.is_finite();
        if !fits {
            self.chooser.undo();
            self.predictor.undo();
        }
        self.believe();
        // What turns up after all was not out of reach.
        if let Some(feature) = feature.filter(|_| fits) {
            self.tell(feature, false);
        }
        fits
    }

    fn available(&mut self, feature: usize, is: bool) {
        self.tell(feature, !is);
    }

    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize> {
        belief::highest(&self.chooser.output()[..self.of.features], open)
    }

    fn stops(&self, best: usize) -> bool {
        match self.stop {
            Stop::Logit => self.stop_score(best) < 0.0,
            Stop::Entropy(threshold) => self.stop_score(best) < threshold,
        }
    }

    fn stop_score(&self, best: usize) -> f32 {
        match self.stop {
            // Of equal logits, that of the feature counts.
            Stop::Logit => {
                let logits = self.chooser.output();
                if logits[best] >= logits[self.of.features] {
                    0.0
                } else {
                    logits[best] - logits[self.of.features]
                }
            }
            Stop::Entropy(_) => belief::entropy(&self.belief),
        }
    }

    fn logits(&self) -> Option<&[f32]> {
        let outputs = self.of.features + usize::from(self.stop == Stop::Logit);
        Some(&self.chooser.output()[..outputs])
    }

    fn threshold(&self) -> Option<f32> {
        match self.stop {
            Stop::Logit => None,
            Stop::Entropy(threshold) => Some(threshold),
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
