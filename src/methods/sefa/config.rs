//! What a training run of SEFA is set to.

use crate::data::Dataset;
use crate::error::{Error, Result};
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
    /// Widths of the predictor's hidden layers.
    pub hidden: Vec<usize>,
    /// Widths of the hidden layers of each feature's encoder.
    pub encoder: Vec<usize>,
    /// Numbers of a feature's latent.
    pub latent: usize,
    /// Samples of the latents in a training step, for each instance; published are 100.
    pub training_samples: usize,
    /// Samples in a validation.
    pub validation_samples: usize,
    /// Samples to predict and to score with, once it is trained; published are 200.
    pub samples: usize,
    /// What a nat of the latents' divergence from a standard normal distribution costs, β.
    pub beta: f64,
    /// The publication's ablation: a latent is its mean, without noise, and its divergence costs nothing.
    pub deterministic: bool,
    /// Instances of a training step.
    pub batch: usize,
    /// The learning rate at the beginning.
    pub rate: f64,
    /// What the rate is multiplied by when the validation loss rests (plateau decay).
    pub decay: f64,
    /// Such decays before the end: a stage of the run is one learning rate.
    pub decays: usize,
    /// Epochs without a better validation loss that count as resting.
    pub patience: usize,
    /// Epochs of a learning rate, at most.
    pub stage_epochs: usize,
    /// Epochs before that, at the first rate, whose validation loss does not count yet.
    pub warm_up_epochs: usize,
    /// Training steps of an epoch: small tables are gone through as often as fits into them, larger ones once.
    pub epoch_steps: usize,
    /// Stops when the entropy of the belief, in nats, is below this. Training does not know it: any other threshold may
    /// be set afterwards.
    pub threshold: f64,
    /// Seed of weights, order, masks and noise.
    pub seed: u64,
    /// Bytes that tapes and gradients may take. A batch is never split: it is normalized as a whole.
    pub memory_budget: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            horizon: None,
            hidden: vec![128, 128],
            encoder: vec![20, 20],
            latent: 4,
            training_samples: 16,
            validation_samples: 8,
            samples: 100,
            beta: 5e-4,
            deterministic: false,
            batch: 128,
            rate: 1e-3,
            decay: 0.2,
            decays: 2,
            patience: 3,
            stage_epochs: 20,
            warm_up_epochs: 4,
            epoch_steps: 900,
            threshold: 0.2,
            seed: 0,
            memory_budget: 1 << 30,
        }
    }
}

impl Config {
    /// The default settings for a table: small ones get fewer steps an epoch.
    pub fn for_table(data: &Dataset) -> Self {
        let mut config = Self::default();
        config.epoch_steps = usual::epoch_steps(config.epoch_steps, config.batch, data);
        config
    }

    /// The horizon for a problem.
    pub fn steps(&self, problem: &Problem) -> usize {
        usual::steps(self.horizon, problem)
    }

    /// Samples that are taken where so many are set: without noise, they would all be the same.
    pub(super) fn taken(&self, samples: usize) -> usize {
        if self.deterministic { 1 } else { samples }
    }
}

/// More of these are a mistake, or a damaged file that must not ask for all memory.
const MOST_SAMPLES: usize = 1_000;
const MOST_LATENT: usize = 1_000;

impl Settings for Config {
    fn check(&self, problem: &Problem) -> Result<()> {
        usual::check_steps(self.steps(problem), problem)?;
        for (name, value, most) in [
            ("latent", self.latent, MOST_LATENT),
            ("training_samples", self.training_samples, MOST_SAMPLES),
            ("validation_samples", self.validation_samples, MOST_SAMPLES),
            ("samples", self.samples, MOST_SAMPLES),
        ] {
            if !(1..=most).contains(&value) {
                return Err(Error::Config(format!("{name} is {value}, but it must be 1 to {most}")));
            }
        }
        usual::check_hidden(&self.hidden)?;
        usual::check_widths("encoder", &self.encoder)?;
        range::check(&[
            ("batch", self.batch as f64, Rule::Count),
            ("patience", self.patience as f64, Rule::Count),
            ("epoch_steps", self.epoch_steps as f64, Rule::Count),
            ("stage_epochs", self.stage_epochs as f64, Rule::Count),
            ("beta", self.beta, Rule::NotNegative),
            ("rate", self.rate, Rule::Positive),
            ("decay", self.decay, Rule::Positive),
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
