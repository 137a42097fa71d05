//! What a training run of AACO, and the search of its model, are set to.

use super::rows;
use super::search::Pick;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::methods::alpha::Alpha;
use crate::methods::range::{self, Rule};
use crate::methods::usual;
use crate::problem::Problem;
use crate::train::Settings;
use serde::{Deserialize, Serialize};

/// Settings of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What a unit of cost is worth. The search asks for it, the pretraining does not: a model serves any. It is drawn
    /// from a range in the rollouts; `"auto"` finds the range that makes a difference.
    pub alpha: Alpha,
    /// Acquisitions at most; `None`: all features, at most 30.
    pub horizon: Option<usize>,
    /// Widths of the predictor's hidden layers.
    pub hidden: Vec<usize>,
    /// Probability that a hidden unit is dropped in training.
    pub dropout: f64,
    /// Instances of a training step.
    pub batch: usize,
    /// The learning rate of the pretraining; it falls along a cosine.
    pub rate: f64,
    /// The learning rate on the visited masks; it falls likewise.
    pub visited_rate: f64,
    /// Epochs on masks of uniform cardinality (pretraining).
    pub warm_up_epochs: usize,
    /// Epochs on the visited masks, at most; 0: the pretrained predictor is the last word, and nothing is rolled out.
    pub stage_epochs: usize,
    /// Such epochs without a better validation objective that end them.
    pub patience: usize,
    /// Training steps of an epoch: small tables are gone through as often as fits into them, larger ones once.
    pub epoch_steps: usize,
    /// How often the search is rolled out, each time with the predictor trained since, and followed by `stage_epochs`.
    pub rounds: usize,
    /// Training rows that the search is rolled out on, at most; of the validation rows a quarter as many. Other rows
    /// borrow the path of one of these.
    pub rollouts: usize,
    /// Share of the training rows of a batch that see a mask of the rollouts; the others see random ones.
    pub visited: f64,
    /// Nearest training rows that a set of features is tried on.
    pub neighbours: usize,
    /// Training rows that take their place as long as nothing is known, when all are equally near; fewer where there are
    /// so many features that their contributions to the first layer would be more than 64 MiB.
    pub start_rows: usize,
    /// Sets of features that are tried at each step, at most.
    pub candidates: usize,
    /// Which feature of the best set is acquired: `"alone"`, the one of the least mean loss alone, as published, or
    /// `"needed"`, the one without which the set would lose most.
    pub pick: Pick,
    /// What is known is taken from the neighbour too, as in the public code, instead of from the case itself.
    pub whole_neighbours: bool,
    /// Training rows that go into the model, at most: chosen by chance where there are more. `None`: all.
    pub rows: Option<usize>,
    /// Seed of weights, order, masks, dropout, candidate sets and rollouts.
    pub seed: u64,
    /// Bytes that tapes and gradients may take; larger batches are split into micro-batches.
    pub memory_budget: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: Alpha::Auto,
            horizon: None,
            hidden: vec![128, 128],
            dropout: 0.3,
            batch: 128,
            rate: 1e-3,
            visited_rate: 3e-4,
            warm_up_epochs: 20,
            stage_epochs: 10,
            patience: 4,
            epoch_steps: 900,
            rounds: 1,
            rollouts: 4_000,
            visited: 0.5,
            neighbours: 10,
            start_rows: 500,
            candidates: 1_000,
            pick: Pick::Alone,
            whole_neighbours: false,
            rows: None,
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

    /// Training rows of a table that go into the model.
    pub fn kept_rows(&self, rows: usize) -> usize {
        self.rows.map_or(rows, |most| rows.min(most))
    }

    /// Checks the settings against a table: its training rows have to travel with the model.
    ///
    /// # Errors
    /// The first setting that is out of range, or more rows than a model may hold.
    pub fn check_table(&self, data: &Dataset) -> Result<()> {
        self.check(data.problem())?;
        rows::check_size(self.kept_rows(data.sizes()[0]), data.problem().columns())
    }

    /// How many rollouts there are of so many training and validation rows.
    pub(super) fn rolled(&self, [training, validation]: [usize; 2]) -> [usize; 2] {
        if self.rounds == 0 || self.stage_epochs == 0 {
            return [0, 0];
        }
        [training.min(self.rollouts), validation.min(self.rollouts.div_ceil(4))]
    }
}

/// Neighbours, candidate sets and rounds at most: beyond this a search would take hours, or more memory than there is.
const MOST: usize = 1 << 20;

impl Settings for Config {
    fn check(&self, problem: &Problem) -> Result<()> {
        usual::check_steps(self.steps(problem), problem)?;
        usual::check_hidden(&self.hidden)?;
        self.alpha.check()?;
        for (name, value) in
            [("neighbours", self.neighbours), ("candidates", self.candidates), ("rounds", self.rounds)]
        {
            if value > MOST {
                return Err(Error::Config(format!("{name} is {value}, but it must be at most {MOST}")));
            }
        }
        range::check(&[
            ("batch", self.batch as f64, Rule::Count),
            ("patience", self.patience as f64, Rule::Count),
            ("epoch_steps", self.epoch_steps as f64, Rule::Count),
            ("warm_up_epochs", self.warm_up_epochs as f64, Rule::Count),
            ("rollouts", self.rollouts as f64, Rule::Count),
            ("neighbours", self.neighbours as f64, Rule::Count),
            ("start_rows", self.start_rows as f64, Rule::Count),
            ("candidates", self.candidates as f64, Rule::Count),
            ("rows", self.rows.unwrap_or(1) as f64, Rule::Count),
            ("rate", self.rate, Rule::Positive),
            ("visited_rate", self.visited_rate, Rule::Positive),
            ("visited", self.visited, Rule::Share),
            ("dropout", self.dropout, Rule::BelowOne),
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
