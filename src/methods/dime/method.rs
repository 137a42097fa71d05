//! DIME as the trainer sees it: its settings as words, its schedule, its result.

use super::config::Config;
use super::kernels::hyper;
use super::plan::Dime;
use crate::data::Normalization;
use crate::engine::kernels::words::{METRICS, general};
use crate::engine::plan::{PlanBuilder, Section};
use crate::error::Result;
use crate::nn::{Network, Weights};
use crate::policy::Model;
use crate::policy::history::{Epoch, Phase};
use crate::problem::Problem;
use crate::train::{Batches, Demand, EpochPlan, Method, Outcome, Plateau, Then, Validation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What changes from epoch to epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The share of choices that are made by chance.
    pub epsilon: f64,
    /// The learning rate.
    pub rate: f64,
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
    /// The validation loss over all steps; the best of every ε so far.
    pub plateau: Plateau,
}

/// The place of the evaluation's further sum: the loss over all steps.
const ALONG: usize = 0;

impl Dime {
    fn validation(&self) -> Validation {
        Validation { section: self.sections.validate, passes: 1, alphas: vec![0.0] }
    }
}

impl Method for Dime {
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
        Dime::new(b, batches, config)
    }

    fn weights(&self) -> Vec<Weights> {
        vec![self.layout.network.weights]
    }

    fn networks(&self) -> Vec<(&'static str, &Network)> {
        vec![("network", &self.layout.network)]
    }

    fn init(&self, config: &Config) -> Vec<Vec<f64>> {
        vec![self.layout.network.stack.init(config.seed, 0)]
    }

    fn first_stage(config: &Config) -> Stage {
        Stage { epsilon: config.epsilon, rate: config.rate }
    }

    fn check_stage(_: &Config, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn settings(config: &Config, stage: &Stage) -> Vec<f64> {
        // The published method evaluates the weights themselves, and adds no noise to rows.
        let mut values = general(hyper::LEN, 1.0, 0.0);
        values[hyper::RATE] = stage.rate;
        values[hyper::EXPLORE] = stage.epsilon;
        values[hyper::RATIO] = f64::from(u8::from(config.price.is_none()));
        values[hyper::PRICE] = config.price.unwrap_or(0.0);
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

    fn alphas(_: &Config, _: &Stage) -> Vec<f64> {
        vec![0.0]
    }

    fn next(&self, config: &Config, _: &Problem, state: &State, _: usize) -> Option<EpochPlan<Stage>> {
        if state.warm_up_done < config.warm_up_epochs {
            let stage = Self::first_stage(config);
            let (step, validate) = (self.sections.warm_up, self.validation());
            return Some(EpochPlan { phase: Phase::WarmUp, stage, step, validate });
        }
        (state.stage < config.epsilons).then(|| EpochPlan {
            phase: Phase::Stage(state.stage),
            stage: Stage {
                epsilon: config.epsilon * config.epsilon_decay.powi(state.stage as i32),
                rate: state.plateau.rate(config.rate, config.decay),
            },
            step: self.sections.step,
            validate: self.validation(),
        })
    }

    fn follow(&self, config: &Config, _: &Problem, state: &mut State, outcome: &Outcome) -> Result<Then> {
        if outcome.phase == Phase::WarmUp {
            state.warm_up_done += 1;
            // The values begin with an Adam that has seen nothing.
            return Ok(Then { reset: state.warm_up_done == config.warm_up_epochs, ..Then::default() });
        }
        state.stage_epoch += 1;
        let along = outcome.validation.extra[ALONG];
        let rests = state.plateau.is_over(along, config.patience, config.decays);
        if !rests && state.stage_epoch < config.stage_epochs {
            return Ok(Then::default());
        }
        (state.stage, state.stage_epoch) = (state.stage + 1, 0);
        state.plateau = Plateau { best: state.plateau.best, ..Plateau::default() };
        Ok(Then { restore: true, reset: true, ..Then::default() })
    }

    /// The loss over all steps: what a run to any number of features has in common.
    fn judge(&self, _: &State, outcome: &Outcome) -> Option<f64> {
        (outcome.phase != Phase::WarmUp).then_some(outcome.validation.extra[ALONG])
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
