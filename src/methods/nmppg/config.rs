//! What a training run is set to.

use crate::error::{Error, Result};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// Which masks the networks see during training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rollout {
    /// Hard masks forward, relaxed ones backward: what inference will meet.
    StraightThrough,
    /// Relaxed masks both ways: an ablation, and a test of correctness, as its gradient is exact.
    Soft,
}

/// What changes from stage to stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Temperature of the relaxation, τs.
    pub tau_soft: f64,
    /// Weight of the entropy bonus, λ.
    pub lambda: f64,
}

/// The horizon where none is given: gradients flow through at most so many acquisitions.
const DEFAULT_HORIZON: usize = 30;

/// Settings of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What one unit of cost is worth in nats of loss, α.
    pub alpha: f64,
    /// Acquisitions at most; `None`: all features, at most 30.
    pub horizon: Option<usize>,
    /// Widths of the policy's hidden layers.
    pub policy_hidden: [usize; 2],
    /// Widths of the predictor's hidden layers.
    pub predictor_hidden: [usize; 2],
    /// Instances of a training step.
    pub batch: usize,
    /// The policy's learning rate.
    pub policy_rate: f64,
    /// The predictor's learning rate.
    pub predictor_rate: f64,
    /// Probability that a hidden unit of the predictor is dropped in training.
    pub dropout: f64,
    /// Temperature of the policy, τh.
    pub tau_hard: f64,
    /// Which masks the networks see.
    pub rollout: Rollout,
    /// Seed of weights, order, noise and dropout.
    pub seed: u64,
    /// Bytes that tapes and gradients may take; larger batches are split into micro-batches.
    pub memory_budget: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: 0.02,
            horizon: None,
            policy_hidden: [128, 128],
            predictor_hidden: [128, 128],
            batch: 128,
            policy_rate: 1e-3,
            predictor_rate: 1e-4,
            dropout: 0.3,
            tau_hard: 1.0,
            rollout: Rollout::StraightThrough,
            seed: 0,
            memory_budget: 1 << 30,
        }
    }
}

impl Config {
    /// The default settings for a trade-off α between loss and cost.
    pub fn new(alpha: f64) -> Self {
        Self { alpha, ..Self::default() }
    }

    /// The horizon for a problem.
    pub fn steps(&self, problem: &Problem) -> usize {
        self.horizon.unwrap_or(problem.features().len().min(DEFAULT_HORIZON))
    }

    /// Checks the settings against a problem.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self, problem: &Problem) -> Result<()> {
        let fail = |what: String| Err(Error::Config(what));
        let features = problem.features().len();
        let steps = self.steps(problem);
        if steps == 0 || steps > features {
            return fail(format!(
                "the horizon is {steps}, but it must be 1 to {features}, the number of features"
            ));
        }
        if self.batch == 0 {
            return fail("the batch is 0 instances".into());
        }
        if self.policy_hidden.iter().chain(&self.predictor_hidden).any(|&width| width == 0) {
            return fail("a hidden layer has width 0".into());
        }
        let positive = [
            ("policy_rate", self.policy_rate),
            ("predictor_rate", self.predictor_rate),
            ("tau_hard", self.tau_hard),
        ];
        for (name, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return fail(format!("{name} is {value}, but it must be a finite number above 0"));
            }
        }
        if !(self.alpha.is_finite() && self.alpha >= 0.0) {
            return fail(format!("alpha is {}, but it must be a finite number, zero or more", self.alpha));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return fail(format!("dropout is {}, but it must be at least 0 and below 1", self.dropout));
        }
        Ok(())
    }
}

impl Stage {
    /// Checks the stage's settings.
    ///
    /// # Errors
    /// The first one that is out of range.
    pub fn check(&self) -> Result<()> {
        if !(self.tau_soft.is_finite() && self.tau_soft > 0.0) {
            let value = self.tau_soft;
            return Err(Error::Config(format!(
                "tau_soft is {value}, but it must be a finite number above 0"
            )));
        }
        if !self.lambda.is_finite() {
            let value = self.lambda;
            return Err(Error::Config(format!("lambda is {value}, but it must be a finite number")));
        }
        Ok(())
    }
}
