//! What a method says about its training.

use super::batches::Batches;
use crate::data::{Dataset, Normalization};
use crate::engine::kernels::words::METRICS;
use crate::engine::plan::{BufferId, PlanBuilder, Section};
use crate::error::Result;
use crate::nn::{Network, Weights};
use crate::policy::Model;
use crate::policy::history::{Epoch, Evaluation, Means, Phase};
use crate::problem::Problem;
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

/// A method's settings.
pub trait Settings:
    Clone + std::fmt::Debug + PartialEq + Send + Serialize + DeserializeOwned + 'static
{
    /// Checks the settings against a problem.
    ///
    /// # Errors
    /// The first setting that is out of range.
    fn check(&self, problem: &Problem) -> Result<()>;
    /// Instances of a training step.
    fn batch(&self) -> usize;
    /// Seed of weights, order, noise and dropout.
    fn seed(&self) -> u64;
    /// Bytes that tapes and gradients may take; larger batches are split into micro-batches.
    fn memory_budget(&self) -> u64;
    /// Training steps of an epoch, for passes over the data of so many.
    fn epoch_steps(&self, pass: usize) -> usize;
}

/// What a method needs of the batches.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Acquisitions of an evaluated path.
    pub horizon: usize,
    /// Words of the settings buffer, the general ones included.
    pub settings: usize,
    /// Optimiser groups.
    pub groups: usize,
    /// Rows of an instance that must stay in one micro-batch.
    pub together: usize,
    /// One micro-batch for the whole batch, with one tape.
    pub whole: bool,
    /// Training rows get noise.
    pub input_noise: bool,
    /// Columns that tell the networks an instance's condition; 0: there is none.
    pub conditions: usize,
    /// Columns that tell the networks which features cannot be had.
    pub availability: bool,
    /// Passes over the validation rows, each under a condition of its own.
    pub passes: usize,
}

impl Demand {
    /// What most methods need: so many acquisitions and words, one optimiser group, one pass over the validation rows.
    pub fn plain(horizon: usize, settings: usize) -> Self {
        Self {
            horizon,
            settings,
            groups: 1,
            together: 1,
            whole: false,
            input_noise: false,
            conditions: 0,
            availability: false,
            passes: 1,
        }
    }
}

/// The next epoch of a run.
#[derive(Clone, Debug)]
pub struct EpochPlan<S> {
    /// Which part of the run.
    pub phase: Phase,
    /// What changes from epoch to epoch.
    pub stage: S,
    /// A training step.
    pub step: Section,
    /// How it is validated.
    pub validate: Validation,
}

/// A validation: a section that evaluates a chunk of the validation rows, and how often all of them are gone through.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Evaluates a chunk.
    pub section: Section,
    /// Passes over the rows.
    pub passes: usize,
    /// What a unit of cost is worth in the objective of each evaluation there is; 0 for a method whose training does
    /// not know.
    pub alphas: Vec<f64>,
}

/// How an epoch went.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// Which part of the run it was.
    pub phase: Phase,
    /// Means over its training instances.
    pub train: &'a Means,
    /// The validation rows: the mean of all evaluations.
    pub validation: &'a Evaluation,
    /// Each of them.
    pub evaluations: &'a [Evaluation],
    /// Whether its weights are the best so far.
    pub best: bool,
}

/// What follows from an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Then {
    /// Go back to the best weights so far.
    pub restore: bool,
    /// Begin Adam's moments anew.
    pub reset: bool,
    /// What later epochs are judged by cannot be compared with what it was so far: the next one is the best.
    pub judge_anew: bool,
}

/// A method that learns in training steps: its plan, its settings, its schedule. One is made for each run.
pub trait Method: Sized + Send + 'static {
    /// Its name.
    const NAME: &'static str;
    /// What the words of the training metrics are.
    const METRICS: [&'static str; METRICS];
    /// Its settings.
    type Config: Settings;
    /// What changes from epoch to epoch.
    type Stage: Clone + std::fmt::Debug + PartialEq + Send + Serialize + DeserializeOwned;
    /// Where a run's schedule is: what a checkpoint holds besides the device's state.
    type State: Clone + std::fmt::Debug + Default + PartialEq + Send + Serialize + DeserializeOwned;

    /// What it needs, for passes over the data of so many steps.
    fn demand(config: &Self::Config, problem: &Problem, pass: usize) -> Demand;
    /// Declares its buffers and writes its sections. Called again with smaller micro-batches until it fits.
    fn build(b: &mut PlanBuilder, batches: &Batches, config: &Self::Config) -> Self;
    /// The optimiser groups: kept, restored, averaged and saved, by name.
    fn weights(&self) -> Vec<Weights>;
    /// The networks in them, by name, for hosts that look at them.
    fn networks(&self) -> Vec<(&'static str, &Network)>;
    /// Further buffers that outlive a step.
    fn state(&self) -> Vec<BufferId> {
        Vec::new()
    }
    /// What is wrong with words of them that are places, if anything is: a checkpoint's are looked at before a kernel goes
    /// there.
    fn spoilt(&self, _words: &dyn Fn(BufferId) -> Vec<u32>) -> Option<String> {
        None
    }
    /// The initial values of each group.
    fn init(&self, config: &Self::Config) -> Vec<Vec<f64>>;
    /// What of them is known from the table.
    fn fit_to(&self, _config: &Self::Config, _data: &Dataset, _values: &mut [Vec<f64>]) {}
    /// Buffers that are written once, before everything else.
    fn constants(&self, _config: &Self::Config) -> Vec<(BufferId, Vec<f64>)> {
        Vec::new()
    }
    /// Changes to them that only a whole run makes, not a single step that is replayed.
    fn prepare(&self, _config: &Self::Config, _values: &mut [Vec<f64>]) {}

    /// What is set before anything else is said.
    fn first_stage(config: &Self::Config) -> Self::Stage;
    /// What is set in the middle of a run: the steps that most of it consists of, to see how long one takes.
    fn middle_stage(config: &Self::Config, problem: &Problem) -> Self::Stage {
        let _ = problem;
        Self::first_stage(config)
    }
    /// Checks a stage against the settings the plan was made with.
    ///
    /// # Errors
    /// A value out of range, or one that the plan has no calls for.
    fn check_stage(config: &Self::Config, stage: &Self::Stage) -> Result<()>;
    /// The stage's words of the settings buffer, the general ones included.
    fn settings(config: &Self::Config, stage: &Self::Stage) -> Vec<f64>;
    /// Rows of an instance in a batch, one after the other.
    fn copies(stage: &Self::Stage) -> u32 {
        let _ = stage;
        1
    }
    /// What is worth noting of a stage in the history, by name.
    fn noted(phase: Phase, stage: &Self::Stage) -> BTreeMap<String, f64>;

    /// A training step of a stage.
    fn step(&self, config: &Self::Config, state: &Self::State, stage: &Self::Stage) -> Section;
    /// Evaluates a chunk of the training, validation or test rows.
    fn evaluate(&self) -> [Section; 3];
    /// What a unit of cost is worth in each of the [`Demand::passes`] of an evaluation.
    fn alphas(config: &Self::Config, stage: &Self::Stage) -> Vec<f64>;

    /// Where a run begins.
    fn begin(&self, config: &Self::Config) -> Self::State {
        let _ = config;
        Self::State::default()
    }
    /// The next epoch; `None` when the run is over.
    fn next(
        &self,
        config: &Self::Config,
        problem: &Problem,
        state: &Self::State,
        pass: usize,
    ) -> Option<EpochPlan<Self::Stage>>;
    /// Moves the schedule on after an epoch.
    ///
    /// # Errors
    /// The run cannot go on: what it found leaves nothing to learn.
    fn follow(
        &self,
        config: &Self::Config,
        problem: &Problem,
        state: &mut Self::State,
        outcome: &Outcome,
    ) -> Result<Then>;
    /// What the best weights are chosen by: the lower the better; `None` if an epoch is no candidate.
    fn judge(&self, state: &Self::State, outcome: &Outcome) -> Option<f64> {
        let _ = state;
        // A policy that has not been trained is not worth keeping, whatever it scores.
        matches!(outcome.phase, Phase::Stage(_)).then_some(outcome.validation.objective)
    }
    /// Epochs of a whole run at most, those of the warm-up and those behind it: early stopping may make them fewer.
    fn epochs_at_most(config: &Self::Config) -> [usize; 2];
    /// Epochs that are behind, those that early stopping skipped included.
    fn epochs_behind(config: &Self::Config, state: &Self::State) -> usize;

    /// What was trained, from the groups' values.
    ///
    /// # Errors
    /// Values that are not finite.
    fn model(
        &self,
        config: &Self::Config,
        state: &Self::State,
        problem: &Problem,
        normalization: &Normalization,
        values: Vec<Vec<f64>>,
        history: Vec<Epoch>,
    ) -> Result<Model>;
}
