//! GDFS as the trainer sees it: its settings as words, its schedule, its result.

use super::config::Config;
use crate::data::Normalization;
use crate::engine::kernels::words::{METRICS, general};
use crate::engine::plan::{PlanBuilder, Section};
use crate::error::Result;
use crate::methods::myopic::State;
use crate::methods::myopic::kernels::hyper;
use crate::methods::myopic::plan::{Pair, Setup, Successor};
use crate::nn::{Network, Weights};
use crate::policy::Model;
use crate::policy::history::{Epoch, Phase};
use crate::problem::Problem;
use crate::train::{Batches, Demand, EpochPlan, Method, Outcome, Then};
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

/// The method in a plan.
#[derive(Clone, Debug)]
pub struct Gdfs {
    pair: Pair,
}

/// Places of the evaluation's further sums.
const HARD: usize = 0;
const SOFT: usize = 1;

impl Method for Gdfs {
    const NAME: &'static str = super::NAME;
    const METRICS: [&'static str; METRICS] =
        ["objective", "", "", "prediction_loss", "instances", "", "", ""];
    type Config = Config;
    type Stage = Stage;
    type State = State;

    fn demand(config: &Config, problem: &Problem, _: usize) -> Demand {
        Demand::plain(config.steps(problem), hyper::LEN)
    }

    fn build(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        // One loss, one Adam: both networks are in one group.
        let group = Some(super::NAME);
        let Config { hidden, dropout, .. } = config;
        let setup = Setup { hidden, dropout: *dropout, successor: Successor::Relaxed, group };
        Gdfs { pair: Pair::new(b, batches, setup) }
    }

    fn weights(&self) -> Vec<Weights> {
        self.pair.weights()
    }

    fn networks(&self) -> Vec<(&'static str, &Network)> {
        self.pair.networks()
    }

    fn init(&self, config: &Config) -> Vec<Vec<f64>> {
        self.pair.init(config.seed)
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
        self.pair.sections.step
    }

    fn evaluate(&self) -> [Section; 3] {
        self.pair.sections.evaluate
    }

    fn alphas(_: &Config, _: &Stage) -> Vec<f64> {
        vec![0.0]
    }

    fn next(&self, config: &Config, _: &Problem, state: &State, _: usize) -> Option<EpochPlan<Stage>> {
        let (phase, validate) = (config.schedule().phase(state)?, self.pair.validation());
        let Phase::Stage(stage) = phase else {
            let (stage, step) = (Self::first_stage(config), self.pair.sections.warm_up);
            return Some(EpochPlan { phase, stage, step, validate });
        };
        let stage = Stage {
            temperature: config.temperature(stage),
            rate: state.plateau.rate(config.rate, config.decay),
        };
        Some(EpochPlan { phase, stage, step: self.pair.sections.step, validate })
    }

    /// The relaxed choice decides when a temperature is over.
    fn follow(&self, config: &Config, _: &Problem, state: &mut State, outcome: &Outcome) -> Result<Then> {
        Ok(config.schedule().follow(state, outcome.phase, outcome.validation.extra[SOFT]))
    }

    /// The loss over all steps under hard masks: what a run to any number of features has in common.
    fn judge(&self, _: &State, outcome: &Outcome) -> Option<f64> {
        (outcome.phase != Phase::WarmUp).then_some(outcome.validation.extra[HARD])
    }

    fn epochs_at_most(config: &Config) -> [usize; 2] {
        config.schedule().epochs_at_most()
    }

    fn epochs_behind(config: &Config, state: &State) -> usize {
        config.schedule().epochs_behind(state)
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
        let [selector, predictor] = self.pair.unpack(&values);
        super::model(problem.clone(), normalization.clone(), config.clone(), selector, predictor, history)
    }
}
