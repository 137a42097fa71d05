//! GSMRL as the trainer sees it: its settings as words, its schedule, its result.

use super::config::{Acquire, Config};
use super::kernels::hyper;
use super::plan::Gsmrl;
use super::policy;
use crate::data::Normalization;
use crate::engine::kernels::words::{METRICS, general};
use crate::engine::plan::{PlanBuilder, Section};
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
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// The learning rate of policy, critic and predictor.
    pub rate: f64,
    /// That of the surrogate, and of the predictor beside it.
    pub surrogate_rate: f64,
}

/// Where the schedule is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Epochs of the surrogate done.
    pub warm_up_done: usize,
    /// Which stage.
    pub stage: usize,
    /// Epochs done of it.
    pub stage_epoch: usize,
    /// Epochs since the best one.
    pub since_best: usize,
}

/// What the surrogate's rate falls to.
const LOWEST_RATE: f64 = 0.05;
/// Where the prior's initial weights are drawn from: behind any couplings.
const PRIOR: u32 = 1 << 16;

/// How many stages the policy has.
fn stages(config: &Config) -> usize {
    match config.acquire {
        Acquire::Policy => config.stages,
        Acquire::Information => 0,
    }
}

impl Gsmrl {
    fn validation(&self, section: Section, config: &Config) -> Validation {
        Validation { section, passes: 1, alphas: vec![config.one_alpha()] }
    }
}

impl Method for Gsmrl {
    const NAME: &'static str = super::NAME;
    const METRICS: [&'static str; METRICS] = [
        "objective",
        "surrogate_loss",
        "policy_entropy",
        "prediction_loss",
        "instances",
        "value_error",
        "loss_along",
        "",
    ];
    type Config = Config;
    type Stage = Stage;
    type State = State;

    fn demand(config: &Config, problem: &Problem, _: usize) -> Demand {
        Demand { groups: 4, ..Demand::plain(config.steps(problem), hyper::LEN) }
    }

    fn build(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        Gsmrl::new(b, batches, config)
    }

    fn weights(&self) -> Vec<Weights> {
        let l = &self.layout;
        [&l.prior, &l.predictor, &l.policy, &l.critic].map(|network| network.weights).to_vec()
    }

    fn networks(&self) -> Vec<(&'static str, &Network)> {
        let l = &self.layout;
        vec![("predictor", &l.predictor), ("policy", &l.policy), ("critic", &l.critic)]
    }

    fn init(&self, config: &Config) -> Vec<Vec<f64>> {
        let l = &self.layout;
        let couplings = l.flow.networks().zip(3..).map(|(n, which)| n.stack.init(config.seed, which));
        let surrogate = couplings.chain([l.prior.stack.init(config.seed, PRIOR)]).flatten().collect();
        let others = [(&l.policy, 0), (&l.predictor, 1), (&l.critic, 2)];
        let [policy, predictor, critic] = others.map(|(n, which)| n.stack.init(config.seed, which));
        vec![surrogate, predictor, policy, critic]
    }

    fn first_stage(config: &Config) -> Stage {
        Stage { rate: config.rate, surrogate_rate: config.surrogate_rate }
    }

    fn check_stage(_: &Config, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn settings(config: &Config, stage: &Stage) -> Vec<f64> {
        // The weights themselves are evaluated, and rows get no noise.
        let mut values = general(hyper::LEN, 1.0, 0.0);
        values[hyper::RATE] = stage.rate;
        values[hyper::SURROGATE_RATE] = stage.surrogate_rate;
        values[hyper::ALPHA] = config.one_alpha();
        values[hyper::LIKELIHOOD] = config.likelihood;
        values[hyper::INFORMATION] = config.information;
        values[hyper::DISCOUNT] = config.discount;
        values[hyper::TRACE] = config.trace;
        values[hyper::CLIP] = config.clip;
        values[hyper::BONUS] = config.bonus;
        values[hyper::NORM] = config.norm;
        values
    }

    fn noted(phase: Phase, stage: &Stage) -> BTreeMap<String, f64> {
        let rate = if phase == Phase::WarmUp { stage.surrogate_rate } else { stage.rate };
        BTreeMap::from([("rate".to_string(), rate)])
    }

    fn step(&self, _: &Config, _: &State, _: &Stage) -> Section {
        self.sections.step
    }

    fn evaluate(&self) -> [Section; 3] {
        self.sections.evaluate
    }

    fn alphas(config: &Config, _: &Stage) -> Vec<f64> {
        vec![config.one_alpha()]
    }

    fn next(&self, config: &Config, _: &Problem, state: &State, _: usize) -> Option<EpochPlan<Stage>> {
        if state.warm_up_done < config.warm_up_epochs {
            let turn = std::f64::consts::PI * state.warm_up_done as f64 / config.warm_up_epochs as f64;
            let surrogate_rate = config.surrogate_rate * usual::falling(turn, LOWEST_RATE);
            let stage = Stage { surrogate_rate, ..Self::first_stage(config) };
            let validate = self.validation(self.sections.random_masks, config);
            return Some(EpochPlan { phase: Phase::WarmUp, stage, step: self.sections.warm_up, validate });
        }
        (state.stage < stages(config)).then(|| EpochPlan {
            phase: Phase::Stage(state.stage),
            stage: Stage {
                rate: config.rate * config.decay.powi(state.stage as i32),
                ..Self::first_stage(config)
            },
            step: self.sections.step,
            validate: self.validation(self.sections.validate, config),
        })
    }

    fn follow(&self, config: &Config, _: &Problem, state: &mut State, outcome: &Outcome) -> Result<Then> {
        if outcome.phase == Phase::WarmUp {
            state.warm_up_done += 1;
            // The predictor goes on with an Adam that has seen nothing of where rollouts lead.
            return Ok(Then { reset: state.warm_up_done == config.warm_up_epochs, ..Then::default() });
        }
        state.stage_epoch += 1;
        state.since_best = if outcome.best { 0 } else { state.since_best + 1 };
        if state.stage_epoch < config.stage_epochs && state.since_best < config.patience {
            return Ok(Then::default());
        }
        (state.stage, state.stage_epoch, state.since_best) = (state.stage + 1, 0, 0);
        Ok(Then { restore: true, reset: true, ..Then::default() })
    }

    /// The objective of the policy; where there is none, the surrogate that has learned longest is the best.
    fn judge(&self, state: &State, outcome: &Outcome) -> Option<f64> {
        match (self.layout.acquire, outcome.phase) {
            (Acquire::Information, _) => Some(-(state.warm_up_done as f64)),
            (Acquire::Policy, Phase::WarmUp) => None,
            (Acquire::Policy, _) => Some(outcome.validation.objective),
        }
    }

    fn epochs_at_most(config: &Config) -> [usize; 2] {
        [config.warm_up_epochs, stages(config) * config.stage_epochs]
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
        let l = &self.layout;
        let of = |network: &Network, group: usize| {
            values.get(group).map(|values| network.stack.unpack(values)).unwrap_or_default()
        };
        let layers = policy::Layers {
            couplings: l.flow.networks().map(|network| of(network, 0)).collect(),
            prior: of(&l.prior, 0),
            predictor: of(&l.predictor, 1),
            policy: of(&l.policy, 2),
        };
        policy::model(problem.clone(), normalization.clone(), config.clone(), layers, history)
    }
}
