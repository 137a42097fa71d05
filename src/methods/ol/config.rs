//! What a training run of OL is set to.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::methods::range::{self, Rule};
use crate::methods::usual;
use crate::problem::Problem;
use crate::train::Settings;
use serde::{Deserialize, Serialize};

/// What the values are values of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reward {
    /// −α c(a) for acquiring, minus the predictor's loss for stopping, which is an action.
    Loss,
    /// The original's: what an answer changes in the belief, a mean over samples of dropout, for its cost. There is no stop.
    Confidence,
}

/// Settings of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What a unit of cost is worth, in nats of loss. Not seen by the reward `confidence`.
    pub alpha: f64,
    /// What is rewarded: `loss` or `confidence`.
    pub reward: Reward,
    /// What a reward of the next step is worth now, γ.
    pub gamma: f64,
    /// Acquisitions at most; `None`: all features, at most 30.
    pub horizon: Option<usize>,
    /// Widths of the hidden layers of each branch.
    pub hidden: Vec<usize>,
    /// Probability that a hidden unit of the predicting branch is dropped in training.
    pub dropout: f64,
    /// Samples of dropout that a belief is the mean of, where the reward is `confidence`.
    pub samples: usize,
    /// Episodes of a training step, and transitions of an update.
    pub batch: usize,
    /// Updates of a training step.
    pub updates: usize,
    /// Episodes in the replay memory, rounded up to whole batches.
    pub replay: usize,
    /// Share of the newest weights in the target network's (Polyak averaging), which is evaluated and kept as well.
    pub polyak: f64,
    /// The learning rate.
    pub rate: f64,
    /// What it is multiplied by after the first half of the stages, and after each tenth from there on.
    pub decay: f64,
    /// The share of actions that are taken by chance, ε, in the first stage.
    pub epsilon: f64,
    /// The same in the last one; it falls geometrically.
    pub epsilon_end: f64,
    /// How many stages there are.
    pub epsilons: usize,
    /// Epochs of a stage.
    pub stage_epochs: usize,
    /// Epochs of the last stage without a better validation before the run ends.
    pub patience: usize,
    /// Epochs of the predicting branch alone, on masks of uniform cardinality (pretraining).
    pub warm_up_epochs: usize,
    /// Training steps of an epoch: small tables are gone through as often as fits into them, larger ones once.
    pub epoch_steps: usize,
    /// With the reward `confidence`: stops when the entropy of the belief, in nats, is below this. Training does not know
    /// it: any other threshold may be set afterwards.
    pub threshold: f64,
    /// Seed of weights, order, exploration, replay and dropout.
    pub seed: u64,
    /// Bytes that tapes and gradients may take; larger batches are split into micro-batches.
    pub memory_budget: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: 0.02,
            reward: Reward::Loss,
            gamma: 1.0,
            horizon: None,
            hidden: vec![128, 128],
            dropout: 0.1,
            samples: 10,
            batch: 128,
            updates: 8,
            replay: 4096,
            polyak: 0.005,
            rate: 1e-3,
            decay: 0.5,
            epsilon: 1.0,
            epsilon_end: 0.1,
            epsilons: 10,
            stage_epochs: 4,
            patience: 4,
            warm_up_epochs: 4,
            epoch_steps: 300,
            threshold: 0.0,
            seed: 0,
            memory_budget: 1 << 30,
        }
    }
}

impl Config {
    /// The default settings for a table: α follows from its classes and costs, small ones get fewer steps an epoch.
    pub fn for_table(data: &Dataset) -> Self {
        let mut config = Self::default();
        config.epoch_steps = usual::epoch_steps(config.epoch_steps, config.batch, data);
        config.alpha = usual::alpha(data.problem());
        config
    }

    /// The horizon for a problem.
    pub fn steps(&self, problem: &Problem) -> usize {
        usual::steps(self.horizon, problem)
    }

    /// Whether stopping is an action, with a value of its own.
    pub(super) fn stops(&self) -> bool {
        self.reward == Reward::Loss
    }

    /// What a unit of cost is worth: nothing, where the reward does not know.
    pub(super) fn price(&self) -> f64 {
        if self.stops() { self.alpha } else { 0.0 }
    }

    /// ε of a stage.
    pub(super) fn epsilon(&self, stage: usize) -> f64 {
        let share = stage as f64 / (self.epsilons.max(2) - 1) as f64;
        self.epsilon * (self.epsilon_end / self.epsilon).powf(share)
    }

    /// The learning rate of a stage.
    pub(super) fn rate(&self, stage: usize) -> f64 {
        let tenths = 10 * stage / self.epsilons.max(1);
        self.rate * self.decay.powi(tenths.saturating_sub(4) as i32)
    }
}

impl Settings for Config {
    fn check(&self, problem: &Problem) -> Result<()> {
        usual::check_steps(self.steps(problem), problem)?;
        usual::check_hidden(&self.hidden)?;
        range::check(&[
            ("alpha", self.alpha, Rule::NotNegative),
            ("gamma", self.gamma, Rule::Share),
            ("batch", self.batch as f64, Rule::Count),
            ("updates", self.updates as f64, Rule::Count),
            ("replay", self.replay as f64, Rule::Count),
            ("samples", self.samples as f64, Rule::Count),
            ("patience", self.patience as f64, Rule::Count),
            ("epoch_steps", self.epoch_steps as f64, Rule::Count),
            ("stage_epochs", self.stage_epochs as f64, Rule::Count),
            ("epsilons", self.epsilons as f64, Rule::Count),
            ("polyak", self.polyak, Rule::AboveZero),
            ("rate", self.rate, Rule::Positive),
            ("decay", self.decay, Rule::Positive),
            ("epsilon", self.epsilon, Rule::AboveZero),
            ("epsilon_end", self.epsilon_end, Rule::AboveZero),
            ("dropout", self.dropout, Rule::BelowOne),
            ("threshold", self.threshold, Rule::NotNegative),
        ])?;
        if self.reward == Reward::Confidence && self.dropout == 0.0 {
            return Err(Error::Config(
                "dropout is 0, but the reward `confidence` is what dropout says of a belief: it must be above 0".into(),
            ));
        }
        let episodes = (self.replay + self.batch).saturating_mul(self.steps(problem) + 1);
        if episodes > MOST_WORDS {
            return Err(Error::Config(format!(
                "replay is {}, but with {} steps of each episode it must be at most {}",
                self.replay,
                self.steps(problem),
                (MOST_WORDS / (self.steps(problem) + 1)).saturating_sub(self.batch)
            )));
        }
        Ok(())
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

/// Words of the replay memory, at most: what any device can bind.
const MOST_WORDS: usize = 1 << 25;
