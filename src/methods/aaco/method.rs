//! AACO's predictor as the general trainer sees it: its settings as words, its schedule, its result. Between two rounds
//! the schedule waits for rollouts, which are the host's ([`super::Trainer`]).

use super::config::Config;
use super::kernels::hyper;
use super::plan::Aaco;
use super::policy;
use super::rows::Rows;
use crate::data::Normalization;
use crate::engine::kernels::words::{METRICS, general};
use crate::engine::plan::{BufferId, PlanBuilder, Section};
use crate::error::Result;
use crate::methods::usual;
use crate::nn::{Network, Weights};
use crate::policy::history::{Epoch, Phase};
use crate::policy::{AlphaRange, Model};
use crate::problem::Problem;
use crate::train::{Batches, Demand, EpochPlan, Method, Outcome, Then, Validation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What changes from epoch to epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The learning rate.
    pub rate: f64,
    /// Share of the training rows that see what the search has visited.
    pub visited: f64,
    /// What a unit of cost is worth in the validation's objective.
    pub alpha: f64,
}

/// Where the schedule is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Pretraining epochs done.
    pub warm_up_done: usize,
    /// Rounds done.
    pub round: usize,
    /// Rounds whose rollouts are there.
    pub rolled: usize,
    /// Epochs done of the round, those that early stopping skipped included.
    pub stage_epoch: usize,
    /// Epochs since the best of them.
    pub since_best: usize,
    /// The trade-offs, if there are several and they are known.
    pub range: Option<AlphaRange>,
}

/// What the rate falls to.
const LOWEST_RATE: f64 = 0.05;

/// Along a cosine, from 1 to the least.
fn falling(done: usize, of: usize) -> f64 {
    usual::falling(std::f64::consts::PI * done as f64 / of.max(1) as f64, LOWEST_RATE)
}

impl State {
    /// Whether the next epoch needs rollouts that are not there yet.
    pub(super) fn waits(&self, config: &Config) -> bool {
        self.warm_up_done >= config.warm_up_epochs && self.has_rounds(config) && self.rolled == self.round
    }

    fn has_rounds(&self, config: &Config) -> bool {
        config.stage_epochs > 0 && self.round < config.rounds
    }

    /// The one α there is, or the middle of the range.
    pub(super) fn alpha(&self, config: &Config) -> f64 {
        config.alpha.one().or(self.range.map(|range| range.middle())).unwrap_or(0.0)
    }
}

impl Method for Aaco {
    const NAME: &'static str = super::NAME;
    const METRICS: [&'static str; METRICS] =
        ["objective", "accuracy", "", "prediction_loss", "instances", "", "", ""];
    type Config = Config;
    type Stage = Stage;
    type State = State;

    fn demand(config: &Config, problem: &Problem, _: usize) -> Demand {
        Demand::plain(config.steps(problem), hyper::LEN)
    }

    fn build(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        Aaco::new(b, batches, config)
    }

    fn weights(&self) -> Vec<Weights> {
        vec![self.layout.lesson.predictor.weights]
    }

    fn networks(&self) -> Vec<(&'static str, &Network)> {
        vec![("predictor", &self.layout.lesson.predictor)]
    }

    /// The rollouts: a run that goes on does not make them again.
    fn state(&self) -> Vec<BufferId> {
        vec![self.layout.slots, self.layout.visited]
    }

    fn spoilt(&self, words: &dyn Fn(BufferId) -> Vec<u32>) -> Option<String> {
        let sizes = &self.layout.batches.sizes;
        let visited = words(self.layout.visited);
        let rolled = visited.len() / sizes.horizon;
        if let Some(slot) = words(self.layout.slots).into_iter().find(|&slot| slot as usize > rolled) {
            return Some(format!("a row has rollout {slot} of {rolled}"));
        }
        let asked = visited.into_iter().find(|&asked| asked as usize > sizes.features)?;
        Some(format!("a rollout asks for feature {asked} of {}", sizes.features))
    }

    fn init(&self, config: &Config) -> Vec<Vec<f64>> {
        vec![self.layout.lesson.predictor.stack.init(config.seed, 0)]
    }

    fn first_stage(config: &Config) -> Stage {
        Stage { rate: config.rate, visited: config.visited, alpha: config.alpha.one().unwrap_or(0.0) }
    }

    fn check_stage(_: &Config, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn settings(_: &Config, stage: &Stage) -> Vec<f64> {
        // The weights themselves are evaluated, and rows get no noise.
        let mut values = general(hyper::LEN, 1.0, 0.0);
        values[hyper::RATE] = stage.rate;
        values[hyper::VISITED] = stage.visited;
        values
    }

    fn noted(_: Phase, stage: &Stage) -> BTreeMap<String, f64> {
        BTreeMap::from([("rate".to_string(), stage.rate)])
    }

    fn step(&self, _: &Config, _: &State, _: &Stage) -> Section {
        self.sections.step
    }

    fn evaluate(&self) -> [Section; 3] {
        self.sections.evaluate
    }

    fn alphas(_: &Config, stage: &Stage) -> Vec<f64> {
        vec![stage.alpha]
    }

    fn next(&self, config: &Config, _: &Problem, state: &State, _: usize) -> Option<EpochPlan<Stage>> {
        let alpha = state.alpha(config);
        let (phase, rate) = if state.warm_up_done < config.warm_up_epochs {
            (Phase::WarmUp, config.rate * falling(state.warm_up_done, config.warm_up_epochs))
        } else if state.has_rounds(config) && !state.waits(config) {
            let rate = config.visited_rate * falling(state.stage_epoch, config.stage_epochs);
            (Phase::Stage(state.round), rate)
        } else {
            return None;
        };
        let stage = Stage { rate, visited: config.visited, alpha };
        let validate = Validation { section: self.sections.validate, passes: 1, alphas: vec![alpha] };
        Some(EpochPlan { phase, stage, step: self.sections.step, validate })
    }

    fn follow(&self, config: &Config, _: &Problem, state: &mut State, outcome: &Outcome) -> Result<Then> {
        let over = if outcome.phase == Phase::WarmUp {
            state.warm_up_done += 1;
            state.warm_up_done == config.warm_up_epochs
        } else {
            state.stage_epoch += 1;
            state.since_best = if outcome.best { 0 } else { state.since_best + 1 };
            let over = state.stage_epoch >= config.stage_epochs || state.since_best >= config.patience;
            if over {
                (state.round, state.stage_epoch, state.since_best) = (state.round + 1, 0, 0);
            }
            over
        };
        // Other masks count from here on, and the best weights for the old ones are what it goes on from.
        let goes_on = over && state.has_rounds(config);
        Ok(Then { restore: over, reset: goes_on, judge_anew: goes_on })
    }

    /// The pretraining by its loss on random masks, what follows by what the visited paths come to.
    fn judge(&self, _: &State, outcome: &Outcome) -> Option<f64> {
        Some(match outcome.phase {
            Phase::WarmUp => outcome.validation.extra[0],
            Phase::Stage(_) => outcome.validation.objective,
        })
    }

    fn epochs_at_most(config: &Config) -> [usize; 2] {
        [config.warm_up_epochs, config.rounds * config.stage_epochs]
    }

    fn epochs_behind(config: &Config, state: &State) -> usize {
        state.warm_up_done + state.round * config.stage_epochs + state.stage_epoch
    }

    /// Without rows, which only the host has: it stops at once until [`super::Trainer`] has given it some.
    fn model(
        &self,
        config: &Config,
        state: &State,
        problem: &Problem,
        normalization: &Normalization,
        values: Vec<Vec<f64>>,
        history: Vec<Epoch>,
    ) -> Result<Model> {
        let predictor = self.layout.lesson.predictor.stack.unpack(values.first().map_or(&[], Vec::as_slice));
        let what = (problem.clone(), normalization.clone());
        policy::model_of(what, config, state.range, &predictor, Rows::default(), history)
    }
}
