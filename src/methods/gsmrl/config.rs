//! What a training run of GSMRL is set to.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::methods::alpha::Alpha;
use crate::methods::range::{self, Rule};
use crate::methods::usual;
use crate::problem::Problem;
use crate::train::Settings;
use serde::{Deserialize, Serialize};

/// What chooses the next feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Acquire {
    /// A policy that is trained for it.
    #[default]
    Policy,
    /// The surrogate alone: the feature that is expected to lower the doubt of its belief most, less its price.
    Information,
}

/// Settings of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What a unit of cost is worth in nats of loss, α: a single one.
    pub alpha: Alpha,
    /// What chooses the next feature; with `information` no policy is trained.
    pub acquire: Acquire,
    /// Acquisitions at most; `None`: all features, at most 30.
    pub horizon: Option<usize>,
    /// Widths of the hidden layers of policy, critic and predictor.
    pub hidden: Vec<usize>,
    /// Those of each network of the surrogate.
    pub surrogate_hidden: Vec<usize>,
    /// Couplings of the surrogate's flow, of one half of the columns each, besides its base.
    pub couplings: usize,
    /// Probability that a hidden unit of the predictor is dropped in training.
    pub dropout: f64,
    /// Instances of a training step.
    pub batch: usize,
    /// The learning rate of the surrogate, and of the predictor in its pretraining; it falls along a cosine.
    pub surrogate_rate: f64,
    /// The learning rate of policy, critic and predictor in the first stage.
    pub rate: f64,
    /// What the rate is multiplied by from a stage to the next, which begins from the best weights.
    pub decay: f64,
    /// How many stages there are.
    pub stages: usize,
    /// Epochs of a stage, at most.
    pub stage_epochs: usize,
    /// Epochs without a better validation objective that end a stage.
    pub patience: usize,
    /// Epochs of the surrogate, and of the predictor alone, on masks of uniform cardinality.
    pub warm_up_epochs: usize,
    /// Training steps of an epoch: small tables are gone through as often as fits into them, larger ones once.
    pub epoch_steps: usize,
    /// Updates of policy and critic on the steps of each batch.
    pub passes: usize,
    /// The weight of the surrogate's likelihood beside its two cross-entropies.
    pub likelihood: f64,
    /// The weight of what an acquisition lowers the entropy of the surrogate's belief by, in its reward.
    pub information: f64,
    /// The discount of later rewards, γ.
    pub discount: f64,
    /// The decay of later errors in the advantages (λ of GAE).
    pub trace: f64,
    /// How far the probability of a choice may move from what it was, as a share, before its gradient ends.
    pub clip: f64,
    /// The weight of the choices' entropy.
    pub bonus: f64,
    /// The norm that gradients are clipped to.
    pub norm: f64,
    /// Seed of weights, order, masks, choices and dropout.
    pub seed: u64,
    /// Bytes that tapes and gradients may take; larger batches are split into micro-batches.
    pub memory_budget: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: Alpha::One(0.02),
            acquire: Acquire::Policy,
            horizon: None,
            hidden: vec![128, 128],
            surrogate_hidden: vec![64],
            couplings: 4,
            dropout: 0.0,
            batch: 256,
            surrogate_rate: 1e-3,
            rate: 1e-3,
            decay: 0.3,
            stages: 2,
            stage_epochs: 12,
            patience: 4,
            warm_up_epochs: 20,
            epoch_steps: 150,
            passes: 4,
            likelihood: 0.1,
            information: 1.0,
            discount: 0.99,
            trace: 0.95,
            clip: 0.2,
            bonus: 0.01,
            norm: 1.0,
            seed: 0,
            memory_budget: 1 << 30,
        }
    }
}

/// What small tables get.
const DROPOUT: f64 = 0.3;

impl Config {
    /// The default settings for a table: small ones get dropout and fewer steps an epoch.
    pub fn for_table(data: &Dataset, alpha: f64) -> Self {
        let mut config = Self { alpha: Alpha::One(alpha), ..Self::default() };
        config.epoch_steps = usual::epoch_steps(config.epoch_steps, config.batch, data);
        if data.sizes()[0] < usual::FEW_ROWS {
            config.dropout = DROPOUT;
        }
        config
    }

    /// The horizon for a problem.
    pub fn steps(&self, problem: &Problem) -> usize {
        usual::steps(self.horizon, problem)
    }

    /// What a unit of cost is worth.
    pub(super) fn one_alpha(&self) -> f64 {
        self.alpha.one().unwrap_or(0.0)
    }
}

/// More of them are a mistake, or a damaged file that must not ask for all memory.
const MOST_COUPLINGS: usize = 1_000;

impl Settings for Config {
    fn check(&self, problem: &Problem) -> Result<()> {
        usual::check_steps(self.steps(problem), problem)?;
        usual::check_hidden(&self.hidden)?;
        usual::check_widths("surrogate_hidden", &self.surrogate_hidden)?;
        if self.couplings > MOST_COUPLINGS {
            return Err(Error::Config(format!(
                "couplings is {}, but it must be 1 to {MOST_COUPLINGS}",
                self.couplings
            )));
        }
        self.alpha.check()?;
        if self.alpha.one().is_none() {
            return Err(Error::Config(format!(
                "alpha is {}, but GSMRL is trained for one α: give one (--alpha 0.02), or several, which are trained one \
                 after the other (--alphas 0.01,0.02)",
                self.alpha
            )));
        }
        range::check(&[
            ("batch", self.batch as f64, Rule::Count),
            ("couplings", self.couplings as f64, Rule::Count),
            ("stages", self.stages as f64, Rule::Count),
            ("stage_epochs", self.stage_epochs as f64, Rule::Count),
            ("patience", self.patience as f64, Rule::Count),
            ("warm_up_epochs", self.warm_up_epochs as f64, Rule::Count),
            ("epoch_steps", self.epoch_steps as f64, Rule::Count),
            ("passes", self.passes as f64, Rule::Count),
            ("surrogate_rate", self.surrogate_rate, Rule::Positive),
            ("rate", self.rate, Rule::Positive),
            ("decay", self.decay, Rule::Positive),
            ("dropout", self.dropout, Rule::BelowOne),
            ("likelihood", self.likelihood, Rule::NotNegative),
            ("information", self.information, Rule::NotNegative),
            ("discount", self.discount, Rule::Share),
            ("trace", self.trace, Rule::Share),
            ("clip", self.clip, Rule::Inside),
            ("bonus", self.bonus, Rule::NotNegative),
            ("norm", self.norm, Rule::Positive),
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
