//! OL as the trainer sees it: its settings as words, its schedule, its result.

use super::config::Config;
use super::kernels::hyper;
use super::plan::Ol;
use crate::data::Normalization;
use crate::engine::kernels::words::{METRICS, general};
use crate::engine::plan::{BufferId, PlanBuilder, Section};
use crate::error::Result;
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
    /// The share of actions that are taken by chance.
    pub epsilon: f64,
    /// The learning rate.
    pub rate: f64,
    /// Share of the newest weights in the target network's.
    pub polyak: f64,
}

/// Where the schedule is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Pretraining epochs done.
    pub warm_up_done: usize,
    /// Which ε.
    pub stage: usize,
    /// Epochs done of it.
    pub stage_epoch: usize,
    /// Epochs since the best one.
    pub since_best: usize,
}

/// The place of the evaluation's further sum: the loss over all steps.
const ALONG: usize = 0;

impl Method for Ol {
    const NAME: &'static str = super::NAME;
    const METRICS: [&'static str; METRICS] =
        ["objective", "value_error", "", "prediction_loss", "instances", "", "", ""];
    type Config = Config;
    type Stage = Stage;
    type State = State;

    fn demand(config: &Config, problem: &Problem, _: usize) -> Demand {
        Demand::plain(config.steps(problem), hyper::LEN)
    }

    fn build(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        Ol::new(b, batches, config)
    }

    fn weights(&self) -> Vec<Weights> {
        vec![self.layout.network.weights]
    }

    fn networks(&self) -> Vec<(&'static str, &Network)> {
        vec![("network", &self.layout.network)]
    }

    fn state(&self) -> Vec<BufferId> {
        self.layout.replay.state()
    }

    fn spoilt(&self, words: &dyn Fn(BufferId) -> Vec<u32>) -> Option<String> {
        self.layout.replay.spoilt(&self.layout.batches, words)
    }

    fn init(&self, config: &Config) -> Vec<Vec<f64>> {
        vec![self.layout.lateral.init(config.seed, 0)]
    }

    fn first_stage(config: &Config) -> Stage {
        Stage { epsilon: config.epsilon(0), rate: config.rate, polyak: config.polyak }
    }

    fn check_stage(_: &Config, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn settings(config: &Config, stage: &Stage) -> Vec<f64> {
        // The target network is the moving average of the weights.
        let mut values = general(hyper::LEN, stage.polyak, 0.0);
        values[hyper::RATE] = stage.rate;
        values[hyper::EXPLORE] = stage.epsilon;
        values[hyper::ALPHA] = config.price();
        values[hyper::GAMMA] = config.gamma;
        values
    }

    fn noted(phase: Phase, stage: &Stage) -> BTreeMap<String, f64> {
        let mut noted = BTreeMap::from([("rate".to_string(), stage.rate)]);
        if phase != Phase::WarmUp {
            noted.insert("epsilon".into(), stage.epsilon);
        }
        noted
    }

    fn step(&self, _: &Config, _: &State, _: &Stage) -> Section {
        self.sections.step
    }

    fn evaluate(&self) -> [Section; 3] {
        self.sections.evaluate
    }

    fn alphas(config: &Config, _: &Stage) -> Vec<f64> {
        vec![config.price()]
    }

    fn next(&self, config: &Config, _: &Problem, state: &State, _: usize) -> Option<EpochPlan<Stage>> {
        let alphas = vec![config.price()];
        let validate = Validation { section: self.sections.validate, passes: 1, alphas };
        if state.warm_up_done < config.warm_up_epochs {
            // There are no values yet to be slow about.
            let stage = Stage { polyak: 1.0, ..Self::first_stage(config) };
            let step = self.sections.warm_up;
            return Some(EpochPlan { phase: Phase::WarmUp, stage, step, validate });
        }
        (state.stage < config.epsilons).then(|| EpochPlan {
            phase: Phase::Stage(state.stage),
            stage: Stage {
                epsilon: config.epsilon(state.stage),
                rate: config.rate(state.stage),
                polyak: config.polyak,
            },
            step: self.sections.step,
            validate,
        })
    }

    fn follow(&self, config: &Config, _: &Problem, state: &mut State, outcome: &Outcome) -> Result<Then> {
        if outcome.phase == Phase::WarmUp {
            state.warm_up_done += 1;
            // The values begin with an Adam that has seen nothing.
            return Ok(Then { reset: state.warm_up_done == config.warm_up_epochs, ..Then::default() });
        }
        state.stage_epoch += 1;
        state.since_best = if outcome.best { 0 } else { state.since_best + 1 };
        let is_last = state.stage + 1 == config.epsilons;
        let rests = is_last && state.stage_epoch >= config.patience && state.since_best >= config.patience;
        if rests || state.stage_epoch >= config.stage_epochs {
            (state.stage, state.stage_epoch) = (state.stage + 1, 0);
        }
        Ok(Then::default())
    }

    /// The loss with what was asked and its price or, where stopping is no action, the loss over all steps: what a run to any
    /// number of features has in common.
    fn judge(&self, _: &State, outcome: &Outcome) -> Option<f64> {
        let judged =
            if self.layout.stops { outcome.validation.objective } else { outcome.validation.extra[ALONG] };
        (outcome.phase != Phase::WarmUp).then_some(judged)
    }

    fn epochs_at_most(config: &Config) -> [usize; 2] {
        [config.warm_up_epochs, config.epsilons * config.stage_epochs]
    }

    fn epochs_behind(config: &Config, state: &State) -> usize {
        state.warm_up_done + state.stage * config.stage_epochs + state.stage_epoch
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
        let group = values.first().map_or(&[][..], Vec::as_slice);
        let layers = self.layout.network.stack.unpack(group);
        super::model(problem.clone(), normalization.clone(), config.clone(), layers, history)
    }
}
