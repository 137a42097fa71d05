//! What a training run of a fixed list is set to.

use crate::data::Dataset;
use crate::error::Result;
use crate::methods::range::{self, Rule};
use crate::methods::usual;
use crate::problem::Problem;
use crate::train::Settings;
use serde::{Deserialize, Serialize};

/// Settings of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Features of the list; `None`: all, at most 30.
    pub horizon: Option<usize>,
    /// Widths of the predictor's hidden layers.
    pub hidden: Vec<usize>,
    /// Probability that a hidden unit is dropped in training.
    pub dropout: f64,
    /// Instances of a training step.
    pub batch: usize,
    /// The learning rate; on the finished list it falls along a cosine.
    pub rate: f64,
    /// Epochs on masks of uniform cardinality before the first choice (pretraining).
    pub warm_up_epochs: usize,
    /// Epochs on the beginnings of the finished list, at most.
    pub stage_epochs: usize,
    /// Such epochs without a better validation loss that end them.
    pub patience: usize,
    /// Training steps of an epoch: small tables are gone through as often as fits into them, larger ones once.
    pub epoch_steps: usize,
    /// Stops when the entropy of the belief, in nats, is below this; 0 asks the whole list. Training does not know it:
    /// any other threshold may be set afterwards.
    pub threshold: f64,
    /// Seed of weights, order, masks and dropout.
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
            rate: 1e-3,
            warm_up_epochs: 10,
            stage_epochs: 10,
            patience: 3,
            epoch_steps: 900,
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

    /// The length of the list for a problem.
    pub fn steps(&self, problem: &Problem) -> usize {
        usual::steps(self.horizon, problem)
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
            // Choices are made by what the epoch before has seen on the validation rows.
            ("warm_up_epochs", self.warm_up_epochs as f64, Rule::Count),
            ("stage_epochs", self.stage_epochs as f64, Rule::Count),
            ("rate", self.rate, Rule::Positive),
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
