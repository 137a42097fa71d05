//! GDFS as the trainer sees it: its settings as words, its schedule, its result.

use super::config::Config;
use super::kernels::hyper;
use super::plan::Gdfs;
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
    /// Gumbel-softmax temperature.
    pub temperature: f64,
    /// The learning rate.
    pub rate: f64,
}

/// Where the schedule is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Pretraining epochs done.
    pub warm_up_done: usize,
    /// Which temperature.
    pub stage: usize,
    /// Epochs done of it.
    pub stage_epoch: usize,
    /// Its soft validation loss.
    #[serde(flatten)]
    pub plateau: Plateau,
}

/// Places of the evaluation's further sums.
const HARD: usize = 0;
const SOFT: usize = 1;

impl Gdfs {
    fn validation(&self) -> Validation {
        Validation { section: self.sections.validate, passes: 1, alphas: vec![0.0] }
    }
}

impl Method for Gdfs {
    const NAME: &'static str = super::NAME;
    const METRICS: [&'static str; METRICS] =
        ["objective", "", "", "prediction_loss", "instances", "", "", ""];
    type Config = Config;
    type Stage = Stage;
    type State = State;

    fn demand(config: &Config, problem: &Problem, _: usize) -> Demand {
        Demand {
            horizon: config.steps(problem),
            settings: hyper::LEN,
            groups: 1,
            together: 1,
            whole: false,
            input_noise: false,
            conditions: 0,
            availability: false,
            passes: 1,
        }
    }

    fn build(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        Gdfs::new(b, batches, config)
    }

    fn weights(&self) -> Vec<Weights> {
        vec![self.layout.predictor.weights]
    }

    fn networks(&self) -> Vec<(&'static str, &Network)> {
        vec![("selector", &self.layout.selector), ("predictor", &self.layout.predictor)]
    }

    fn init(&self, config: &Config) -> Vec<Vec<f64>> {
        let stacks = [&self.layout.selector.stack, &self.layout.predictor.stack];
        vec![stacks.iter().zip(0..).flat_map(|(stack, which)| stack.init(config.seed, which)).collect()]
    }

    fn first_stage(config: &Config) -> Stage {
        Stage { temperature: config.temperature(0), rate: config.rate }
    }

    fn check_stage(_: &Config, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn settings(config: &Config, stage: &Stage) -> Vec<f64> {
        // The published method evaluates the weights themselves, and adds no noise to rows.
        let mut values = general(hyper::LEN, 1.0, 0.0);
        values[hyper::TEMPERATURE] = stage.temperature;
        values[hyper::GAMMA] = config.gamma;
        values[hyper::RATE] = stage.rate;
        values
    }

    fn noted(phase: Phase, stage: &Stage) -> BTreeMap<String, f64> {
        let mut noted = BTreeMap::from([("rate".to_string(), stage.rate)]);
        if phase != Phase::WarmUp {
            noted.insert("tau_soft".into(), stage.temperature);
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
        (state.stage < config.temperatures).then(|| EpochPlan {
            phase: Phase::Stage(state.stage),
            stage: Stage {
                temperature: config.temperature(state.stage),
                rate: state.plateau.rate(config.rate, config.decay),
            },
            step: self.sections.step,
            validate: self.validation(),
        })
    }

    fn follow(&self, config: &Config, _: &Problem, state: &mut State, outcome: &Outcome) -> Result<Then> {
        if outcome.phase == Phase::WarmUp {
            state.warm_up_done += 1;
            // The selector begins with an Adam that has seen nothing.
            return Ok(Then { reset: state.warm_up_done == config.warm_up_epochs, ..Then::default() });
        }
        let soft = outcome.validation.extra[SOFT];
        state.stage_epoch += 1;
        let rests = state.plateau.is_over(soft, config.patience, config.decays);
        if !rests && state.stage_epoch < config.stage_epochs {
            return Ok(Then::default());
        }
        let done = State { warm_up_done: state.warm_up_done, stage: state.stage + 1, ..State::default() };
        *state = done;
        Ok(Then { restore: true, reset: true, ..Then::default() })
    }

    /// The loss over all steps under hard masks: what a run to any number of features has in common.
    fn judge(&self, _: &State, outcome: &Outcome) -> Option<f64> {
        (outcome.phase != Phase::WarmUp).then_some(outcome.validation.extra[HARD])
    }

    fn epochs_at_most(config: &Config) -> usize {
        config.warm_up_epochs + config.temperatures * config.stage_epochs
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
        let [selector, predictor] =
            [&self.layout.selector, &self.layout.predictor].map(|network| network.stack.unpack(group));
        super::model(problem.clone(), normalization.clone(), config.clone(), selector, predictor, history)
    }
}
