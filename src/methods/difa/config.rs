//! What a training run of DiFA is set to.

use crate::data::Dataset;
use crate::error::Result;
use crate::methods::myopic::schedule::Schedule;
use crate::methods::range::{self, Rule};
use crate::methods::usual;
use crate::problem::Problem;
use crate::train::Settings;
use serde::{Deserialize, Serialize};

/// Settings of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Acquisitions at most; `None`: all features, at most 30.
    pub horizon: Option<usize>,
    /// Widths of the hidden layers of both networks.
    pub hidden: Vec<usize>,
    /// Probability that a hidden unit of the predictor is dropped in training.
    pub dropout: f64,
    /// Instances of a training step.
    pub batch: usize,
    /// The selector's learning rate at each temperature's beginning.
    pub selector_rate: f64,
    /// The predictor's.
    pub predictor_rate: f64,
    /// What both rates are multiplied by when the validation loss rests (plateau decay).
    pub decay: f64,
    /// Such decays of a temperature before the next one.
    pub decays: usize,
    /// Epochs without a better validation loss that count as resting.
    pub patience: usize,
    /// Epochs of a temperature, at most.
    pub stage_epochs: usize,
    /// Epochs of the predictor alone, on masks of uniform cardinality (pretraining).
    pub warm_up_epochs: usize,
    /// Training steps of an epoch: small tables are gone through as often as fits into them, larger ones once.
    pub epoch_steps: usize,
    /// The first Gumbel-softmax temperature, τ_start.
    pub start_temperature: f64,
    /// The last one, τ_end.
    pub end_temperature: f64,
    /// How many there are, falling geometrically.
    pub temperatures: usize,
    /// Stops when the entropy of the belief, in nats, is below this. Training does not know it: any other threshold may
    /// be set afterwards.
    pub threshold: f64,
    /// Seed of weights, order, noise and dropout.
    pub seed: u64,
    /// Bytes that tapes and gradients may take; larger batches are split into micro-batches.
    pub memory_budget: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            horizon: None,
            hidden: vec![128, 128],
            dropout: 0.3,
            batch: 128,
            selector_rate: 1e-3,
            predictor_rate: 1e-3,
            decay: 0.2,
            decays: 1,
            patience: 2,
            stage_epochs: 20,
            warm_up_epochs: 10,
            epoch_steps: 900,
            start_temperature: 2.0,
            end_temperature: 0.2,
            temperatures: 5,
            threshold: 0.2,
            seed: 0,
            memory_budget: 1 << 30,
        }
    }
}

impl Config {
    /// The default settings for a table.
    pub fn for_table(data: &Dataset) -> Self {
        let mut config = Self::default();
        config.epoch_steps = usual::epoch_steps(config.epoch_steps, config.batch, data);
        config
    }

    /// The horizon for a problem.
    pub fn steps(&self, problem: &Problem) -> usize {
        usual::steps(self.horizon, problem)
    }

    /// The temperature of a stage.
    pub(super) fn temperature(&self, stage: usize) -> f64 {
        self.schedule().temperature([self.start_temperature, self.end_temperature], stage)
    }

    pub(super) fn schedule(&self) -> Schedule {
        Schedule {
            warm_up_epochs: self.warm_up_epochs,
            temperatures: self.temperatures,
            stage_epochs: self.stage_epochs,
            patience: self.patience,
            decays: self.decays,
        }
    }
}

impl Settings for Config {
    fn check(&self, problem: &Problem) -> Result<()> {
        usual::check_steps(self.steps(problem), problem)?;
        usual::check_hidden(&self.hidden)?;
        range::check(&[
            ("batch", self.batch as f64, Rule::Count),
            ("patience", self.patience as f64, Rule::Count),
            ("epoch_steps", self.epoch_steps as f64, Rule::Count),
            ("stage_epochs", self.stage_epochs as f64, Rule::Count),
            ("temperatures", self.temperatures as f64, Rule::Count),
            ("selector_rate", self.selector_rate, Rule::Positive),
            ("predictor_rate", self.predictor_rate, Rule::Positive),
            ("decay", self.decay, Rule::Positive),
            ("start_temperature", self.start_temperature, Rule::Positive),
            ("end_temperature", self.end_temperature, Rule::Positive),
            ("dropout", self.dropout, Rule::BelowOne),
            ("threshold", self.threshold, Rule::NotNegative),
        ])
    }
    fn batch(&self) -> usize {
        self.batch
    }
    fn seed(&self) -> u64 {
        self.seed
    }
    fn memory_budget(&self) -> u64 {
        self.memory_budget
    }
    fn epoch_steps(&self, pass: usize) -> usize {
        usual::whole_passes(self.epoch_steps, pass)
    }
}
