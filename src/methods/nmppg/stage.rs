//! What changes from stage to stage of a run.

use crate::error::{Error, Result};
use crate::methods::range::{self, Rule};
use crate::policy::Tradeoffs;
use serde::{Deserialize, Serialize};

/// What changes from stage to stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)] // and no defaults: a checkpoint that lacks a setting would go on with another one
pub struct Stage {
    /// What one unit of cost is worth in nats of loss, α; of a range, its middle.
    pub alpha: f64,
    /// The range that instances get an α of; `None`: all have the same.
    pub tradeoffs: Option<Tradeoffs>,
    /// Gumbel-softmax temperature, τs: that of the relaxation.
    pub tau_soft: f64,
    /// Weight of the entropy bonus, λ.
    pub lambda: f64,
    /// The policy's learning rate.
    pub policy_rate: f64,
    /// The predictor's learning rate.
    pub predictor_rate: f64,
    /// Share of the newest weights in their exponential moving average (EMA, Polyak averaging), which evaluation uses;
    /// 1: no averaging.
    pub ema: f64,
    /// Share of the entropy bonus that counts as value: 1 as published; 0 for a bonus that makes the
    /// policy try things but does not reward asking on.
    pub lure: f64,
    /// Weight of the guard that keeps stopping and going on both possible; 0 as published.
    pub guard: f64,
    /// The stop's share is its probability itself, not a relaxed sample of it; `false` as published.
    pub exact_stop: bool,
    /// Hazard: the chance that a rollout is cut short at a step, whatever the policy wants; 0 as published.
    pub hazard: f64,
    /// Share of the score-function gradient (REINFORCE) in that of the choice between features; 0 as published.
    pub reinforce: f64,
    /// Rollouts of each instance in a batch: each is the others' leave-one-out baseline (RLOO); 1 as published.
    pub rollouts: usize,
    /// Share of the predictor's loss that counts where the policy stops; 0 as published.
    pub focus: f64,
    /// Share of the predictor's loss on random sub-masks of what was asked; 0 as published.
    pub submasks: f64,
    /// Input noise (augmentation) on the training rows, in standard deviations of each column; 0 as published.
    pub input_noise: f64,
    /// Share of the instances of which a part of the features cannot be had; 0 as published.
    pub unavailable: f64,
}

impl Default for Stage {
    fn default() -> Self {
        Self {
            alpha: 0.02,
            tradeoffs: None,
            tau_soft: 0.5,
            lambda: 0.0,
            policy_rate: 1e-3,
            predictor_rate: 1e-4,
            ema: 1.0,
            lure: 1.0,
            guard: 0.0,
            exact_stop: false,
            hazard: 0.0,
            reinforce: 0.0,
            rollouts: 1,
            focus: 0.0,
            submasks: 0.0,
            input_noise: 0.0,
            unavailable: 0.0,
        }
    }
}

impl Stage {
    /// Checks the stage's settings.
    ///
    /// # Errors
    /// The first one that is out of range.
    pub fn check(&self) -> Result<()> {
        if self.reinforce > 0.0 && self.rollouts < 2 {
            return Err(Error::Config(format!(
                "rollouts is {}, but REINFORCE needs at least 2 of each instance: one is the other's baseline",
                self.rollouts
            )));
        }
        range::check(&[
            ("alpha", self.alpha, Rule::NotNegative),
            ("tau_soft", self.tau_soft, Rule::Positive),
            ("lambda", self.lambda, Rule::NotNegative),
            ("policy_rate", self.policy_rate, Rule::NotNegative),
            ("predictor_rate", self.predictor_rate, Rule::NotNegative),
            ("ema", self.ema, Rule::AboveZero),
            ("lure", self.lure, Rule::NotNegative),
            ("guard", self.guard, Rule::NotNegative),
            ("hazard", self.hazard, Rule::BelowOne),
            ("reinforce", self.reinforce, Rule::Share),
            ("rollouts", self.rollouts as f64, Rule::Count),
            ("focus", self.focus, Rule::BelowOne),
            ("submasks", self.submasks, Rule::BelowOne),
            ("input_noise", self.input_noise, Rule::NotNegative),
            ("unavailable", self.unavailable, Rule::BelowOne),
        ])
    }
}
