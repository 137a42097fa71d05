//! A fixed list as the trainer sees it: its settings as words, its schedule, its result.

use super::config::Config;
use super::kernels::hyper;
use super::plan::Fixed;
use crate::data::Normalization;
use crate::engine::kernels::words::{METRICS, general};
use crate::engine::plan::{BufferId, PlanBuilder, Section};
use crate::error::Result;
use crate::methods::usual;
use crate::nn::{Network, Weights};
use crate::policy::Model;
use crate::policy::history::{Epoch, Phase};
use crate::problem::Problem;
use crate::train::{Batches, Demand, EpochPlan, Method, Outcome, Then, Validation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What changes from epoch to epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The learning rate.
    pub rate: f64,
    /// How many features are in the list.
    pub chosen: usize,
    /// Share of the rows that see the beginning of the list.
    pub listed: f64,
    /// Whether those see a feature by chance besides, as the next choice will be tried with one.
    pub more: bool,
}

/// Where the schedule is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Pretraining epochs done.
    pub warm_up_done: usize,
    /// Features chosen.
    pub chosen: usize,
    /// Epochs done on the finished list, those that early stopping skipped included.
    pub stage_epoch: usize,
    /// Epochs since the best of them.
    pub since_best: usize,
}

/// The stages: choosing, and training on what was chosen.
const CHOOSING: Phase = Phase::Stage(0);
const LIST: Phase = Phase::Stage(1);
/// Share of the rows that see the beginning of the list while it is being chosen: the others keep the predictor able to
/// say what any feature is worth.
const LISTED: f64 = 0.5;
/// What the rate falls to on the finished list.
const LOWEST_RATE: f64 = 0.05;

impl Method for Fixed {
    const NAME: &'static str = super::NAME;
    const METRICS: [&'static str; METRICS] =
        ["objective", "accuracy", "", "prediction_loss", "instances", "", "", ""];
    type Config = Config;
    type Stage = Stage;
    type State = State;

    fn demand(config: &Config, problem: &Problem, _: usize) -> Demand {
        Demand { groups: 2, ..Demand::plain(config.steps(problem), hyper::LEN) }
    }

    fn build(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        Fixed::new(b, batches, config)
    }

    fn weights(&self) -> Vec<Weights> {
        vec![self.layout.lesson.predictor.weights, self.layout.list]
    }

    fn networks(&self) -> Vec<(&'static str, &Network)> {
        vec![("predictor", &self.layout.lesson.predictor)]
    }

    /// The next choice is made after the epoch whose validation has scored the candidates.
    fn state(&self) -> Vec<BufferId> {
        vec![self.layout.candidates, self.layout.scores]
    }

    fn init(&self, config: &Config) -> Vec<Vec<f64>> {
        let sizes = &self.layout.batches.sizes;
        vec![
            self.layout.lesson.predictor.stack.init(config.seed, 0),
            vec![sizes.features as f64; self.layout.list.len],
        ]
    }

    fn first_stage(config: &Config) -> Stage {
        Stage { rate: config.rate, chosen: 1, listed: LISTED, more: true }
    }

    fn check_stage(_: &Config, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn settings(_: &Config, stage: &Stage) -> Vec<f64> {
        // The weights themselves are evaluated, and rows get no noise.
        let mut values = general(hyper::LEN, 1.0, 0.0);
        values[hyper::RATE] = stage.rate;
        values[hyper::CHOSEN] = stage.chosen as f64;
        values[hyper::LISTED] = stage.listed;
        values[hyper::MORE] = f64::from(u8::from(stage.more));
        values
    }

    fn noted(_: Phase, stage: &Stage) -> BTreeMap<String, f64> {
        BTreeMap::from([("rate".to_string(), stage.rate), ("chosen".to_string(), stage.chosen as f64)])
    }

    fn step(&self, _: &Config, _: &State, _: &Stage) -> Section {
        self.sections.step
    }

    fn evaluate(&self) -> [Section; 3] {
        self.sections.evaluate
    }

    /// Costs decide what comes first; that there is a price for asking at all, training does not know.
    fn alphas(_: &Config, _: &Stage) -> Vec<f64> {
        vec![0.0]
    }

    fn next(&self, config: &Config, _: &Problem, state: &State, _: usize) -> Option<EpochPlan<Stage>> {
        let (rate, all) = (config.rate, self.layout.batches.sizes.horizon);
        let (phase, stage) = if state.warm_up_done < config.warm_up_epochs {
            (Phase::WarmUp, Stage { rate, chosen: 0, listed: 0.0, more: false })
        } else if state.chosen < all {
            (CHOOSING, Stage { rate, chosen: state.chosen + 1, listed: LISTED, more: true })
        } else if state.stage_epoch < config.stage_epochs {
            let progress = state.stage_epoch as f64 / config.stage_epochs as f64;
            let rate = rate * usual::falling(std::f64::consts::PI * progress, LOWEST_RATE);
            (LIST, Stage { rate, chosen: all, listed: 1.0, more: false })
        } else {
            return None;
        };
        let validate = Validation { section: self.sections.validate, passes: 1, alphas: vec![0.0] };
        Some(EpochPlan { phase, stage, step: self.sections.step, validate })
    }

    fn follow(&self, config: &Config, _: &Problem, state: &mut State, outcome: &Outcome) -> Result<Then> {
        match outcome.phase {
            Phase::WarmUp => state.warm_up_done += 1,
            CHOOSING => state.chosen += 1,
            Phase::Stage(_) => {
                state.stage_epoch += 1;
                state.since_best = if outcome.best { 0 } else { state.since_best + 1 };
                if state.since_best >= config.patience {
                    state.stage_epoch = config.stage_epochs;
                }
            }
        }
        Ok(Then::default())
    }

    /// The loss over all beginnings of the finished list: what runs to any number of questions have in common.
    fn judge(&self, _: &State, outcome: &Outcome) -> Option<f64> {
        (outcome.phase == LIST).then_some(outcome.validation.extra[0])
    }

    fn epochs_at_most(config: &Config) -> [usize; 2] {
        [config.warm_up_epochs, config.horizon.unwrap_or(usual::HORIZON) + config.stage_epochs]
    }

    fn epochs_behind(config: &Config, state: &State) -> usize {
        // Where the horizon is that of a small table, the epochs it does without are behind with the list.
        let listed =
            if state.stage_epoch > 0 { config.horizon.unwrap_or(usual::HORIZON) } else { state.chosen };
        state.warm_up_done + listed + state.stage_epoch
    }

    fn model(
        &self,
        config: &Config,
        _: &State,
        problem: &Problem,
        normalization: &Normalization,
        values: Vec<Vec<f64>>,
        history: Vec<Epoch>,
    ) -> Result<Model> {
        let [predictor, list] = [0, 1].map(|group| values.get(group).map_or(&[][..], Vec::as_slice));
        let predictor = self.layout.lesson.predictor.stack.unpack(predictor);
        super::model(problem.clone(), normalization.clone(), config.clone(), list, predictor, history)
    }
}
