//! What a training run of DIME is set to.

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
    /// Acquisitions at most; `None`: all features, at most 30.
    pub horizon: Option<usize>,
    /// Widths of the hidden layers, which the predictor and the values share.
    pub hidden: Vec<usize>,
    /// Probability that a hidden unit is dropped in training.
    pub dropout: f64,
    /// Instances of a training step.
    pub batch: usize,
    /// The learning rate at the beginning of each ε.
    pub rate: f64,
    /// What the rate is multiplied by when the validation loss rests (plateau decay).
    pub decay: f64,
    /// Such decays of an ε before the next one.
    pub decays: usize,
    /// Epochs without a better validation loss that count as resting.
    pub patience: usize,
    /// Epochs of an ε, at most.
    pub stage_epochs: usize,
    /// Epochs of the predictor alone, on masks of uniform cardinality (pretraining).
    pub warm_up_epochs: usize,
    /// Training steps of an epoch: small tables are gone through as often as fits into them, larger ones once.
    pub epoch_steps: usize,
    /// The share of a rollout's choices that are made by chance, ε, at first. The published 0.05 hardly ever tries what
    /// comes second, so that what it begins with stays where it was at the end of the pretraining.
    pub epsilon: f64,
    /// What it is multiplied by from one to the next.
    pub epsilon_decay: f64,
    /// How many there are.
    pub epsilons: usize,
    /// What a unit of cost takes off what a feature is worth (the additive rule); `None`: it is divided by its cost.
    pub price: Option<f64>,
    /// Stops when the best feature is worth less than this: nats for a unit of cost or, with a price, nats. Training does
    /// not know it: any other threshold may be set afterwards.
    pub threshold: f64,
    /// Seed of weights, order, exploration and dropout.
    pub seed: u64,
    /// Bytes that tapes and gradients may take; larger batches are split into micro-batches.
    pub memory_budget: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            horizon: None,
            hidden: vec![128, 128],
            dropout: 0.0,
            batch: 128,
            rate: 1e-3,
            decay: 0.2,
            decays: 1,
            patience: 2,
            stage_epochs: 20,
            warm_up_epochs: 20,
            epoch_steps: 900,
            epsilon: 0.4,
            epsilon_decay: 0.25,
            epsilons: 4,
            price: None,
            threshold: 0.01,
            seed: 0,
            memory_budget: 1 << 30,
        }
    }
}

/// What small tables get, and the publication has.
const DROPOUT: f64 = 0.3;
/// Of what knowing nothing loses, the share that the best feature has to be worth for a mean cost, and others to test.
const THRESHOLD: f64 = 0.005;
const THRESHOLDS: [f64; 6] = [0.0005, 0.002, 0.005, 0.015, 0.05, 0.15];

impl Config {
    /// The default settings for a table: small ones get dropout and fewer steps an epoch.
    pub fn for_table(data: &Dataset) -> Self {
        let mut config = Self::default();
        config.epoch_steps = usual::epoch_steps(config.epoch_steps, config.batch, data);
        if data.sizes()[0] < usual::FEW_ROWS {
            config.dropout = DROPOUT;
        }
        config.threshold = usual::share(THRESHOLD, data.problem());
        config
    }

    /// The horizon for a problem.
    pub fn steps(&self, problem: &Problem) -> usize {
        usual::steps(self.horizon, problem)
    }
}

/// Thresholds that are worth a look.
pub(super) fn thresholds(problem: &Problem) -> Vec<f64> {
    THRESHOLDS.map(|of| usual::share(of, problem)).to_vec()
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
            ("epsilons", self.epsilons as f64, Rule::Count),
            ("rate", self.rate, Rule::Positive),
            ("decay", self.decay, Rule::Positive),
            ("epsilon", self.epsilon, Rule::Share),
            ("epsilon_decay", self.epsilon_decay, Rule::Share),
            ("dropout", self.dropout, Rule::BelowOne),
            ("price", self.price.unwrap_or(0.0), Rule::NotNegative),
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
