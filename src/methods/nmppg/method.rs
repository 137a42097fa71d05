//! NM-PPG as the trainer sees it: its settings as words, its schedule, its result.

use super::config::Config;
use super::kernels::hyper;
use super::plan::NmPpg;
use super::schedule::Position;
use super::stage::Stage;
use crate::data::Normalization;
use crate::engine::kernels::words::{METRICS, general, settings};
use crate::engine::plan::{PlanBuilder, Section};
use crate::error::{Error, Result};
use crate::methods::alpha::{self, Alpha, Survey, narrowed, within};
use crate::nn::{Network, Weights};
use crate::policy::history::{Epoch, Phase};
use crate::policy::{Model, Tradeoffs, tradeoff};
use crate::problem::Problem;
use crate::train::{Batches, Demand, EpochPlan, Method, Outcome, Settings, Then, Validation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which random stream the initial weights of the two networks are drawn from.
const POLICY_STREAM: u32 = 0;
const PREDICTOR_STREAM: u32 = 1;

/// Where the staged procedure is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Warm-up epochs done.
    pub warm_up_done: usize,
    /// Which temperature.
    pub stage: usize,
    /// Epochs done of this stage.
    pub stage_epoch: usize,
    /// Epochs since the best one.
    pub since_best: usize,
    /// Acquisitions of the next epoch's rollouts.
    pub horizon: usize,
    /// With a range of α: what there is to gain, known after the warm-up.
    pub survey: Option<Survey>,
    /// With a range of α: those that the policy is trained for.
    pub tradeoffs: Option<Tradeoffs>,
}

impl Settings for Config {
    fn check(&self, problem: &Problem) -> Result<()> {
        Config::check(self, problem)
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
        self.whole_passes(pass)
    }
}

impl NmPpg {
    /// Whether a stage's training steps are those without the relaxed gradient.
    fn is_reinforced(&self, stage: &Stage) -> bool {
        self.layout.shape.reinforced && stage.reinforce == 1.0 && stage.exact_stop
    }

    /// The horizon for the next epoch: the shortest beyond which less than `tail` was asked in the last
    /// one, or the next longer than the current one if more than twice that went on at its end.
    fn next_horizon(&self, horizon: usize, still_asking: [f64; 3], tail: f64) -> usize {
        let there = self.layout.shape.marks.into_iter().zip(still_asking).filter(|&(mark, _)| mark > 0);
        let mut within = there.clone().filter(|&(mark, _)| mark <= horizon);
        if let Some((_, mass)) = within.clone().find(|&(mark, _)| mark == horizon)
            && mass > 2.0 * tail
        {
            return there
                .map(|(mark, _)| mark)
                .find(|&mark| mark > horizon)
                .unwrap_or(self.layout.shape.steps);
        }
        within.find(|&(_, mass)| mass < tail).map_or(horizon, |(mark, _)| mark)
    }
}

impl Method for NmPpg {
    const NAME: &'static str = super::NAME;
    const METRICS: [&'static str; METRICS] = [
        "objective",
        "loss_and_cost",
        "entropy",
        "prediction_loss",
        "instances",
        "still_asking.0",
        "still_asking.1",
        "still_asking.2",
    ];
    type Config = Config;
    type Stage = Stage;
    type State = State;

    fn demand(config: &Config, problem: &Problem, pass: usize) -> Demand {
        Demand {
            horizon: config.steps(problem),
            settings: hyper::LEN,
            groups: 2,
            together: config.most_rollouts(),
            whole: false,
            input_noise: config.input_noise_for(pass) > 0.0,
            conditions: if config.alpha.one().is_some() { 0 } else { tradeoff::COLUMNS },
            availability: config.unavailable > 0.0,
            passes: config.passes(),
        }
    }

    fn build(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        NmPpg::new(b, batches, config)
    }

    fn weights(&self) -> Vec<Weights> {
        vec![self.layout.policy.weights, self.layout.predictor.weights]
    }

    fn networks(&self) -> Vec<(&'static str, &Network)> {
        vec![("policy", &self.layout.policy), ("predictor", &self.layout.predictor)]
    }

    fn init(&self, config: &Config) -> Vec<Vec<f64>> {
        [(&self.layout.policy, POLICY_STREAM), (&self.layout.predictor, PREDICTOR_STREAM)]
            .map(|(network, which)| network.stack.init(config.seed, which))
            .to_vec()
    }

    /// Sets the stop's bias so that, before anything is learned, a policy stops with the configured
    /// probability. With many features the initial weights would nearly always go on, a habit that is
    /// hard to unlearn: a decision that is never taken gets no gradient.
    fn prepare(&self, config: &Config, values: &mut [Vec<f64>]) {
        let Some(stop) = config.exploration.initial_stop else { return };
        let features = self.layout.batches.sizes.features;
        let bias = (features as f64 * stop / (1.0 - stop)).ln();
        let last = self.layout.policy.stack.layers[self.layout.policy.stack.layers.len() - 1];
        values[0][last.bias + features] = f64::from(bias as f32);
    }

    fn first_stage(config: &Config) -> Stage {
        Stage {
            alpha: config.alpha.one().unwrap_or(1.0),
            policy_rate: config.schedule.policy_rate,
            predictor_rate: config.schedule.predictor_rate,
            ..Stage::default()
        }
    }

    fn middle_stage(config: &Config, problem: &Problem) -> Stage {
        let at = Position { stage: config.schedule.temperatures.len() / 2, epoch: 0 };
        config.stage(problem, at, config.alpha.given(), 1)
    }

    fn check_stage(config: &Config, stage: &Stage) -> Result<()> {
        stage.check()?;
        let planned = [
            ("submasks", stage.submasks, config.predictor.submasks),
            ("input_noise", stage.input_noise, config.predictor.input_noise),
            ("unavailable", stage.unavailable, config.unavailable),
        ];
        for (name, stage, config) in planned {
            if stage > 0.0 && config == 0.0 {
                return Err(Error::Config(format!(
                    "{name} is {stage} in the stage, but 0 in the configuration: its plan has no such step"
                )));
            }
        }
        let (wanted, most) = (stage.rollouts, config.gradient.rollouts);
        if stage.reinforce > 0.0 && !most.is_multiple_of(wanted) {
            return Err(Error::Config(format!(
                "rollouts is {wanted} in the stage, but {most} in the configuration: its plan keeps so many of an \
                 instance together, or a part of them that goes into it"
            )));
        }
        Ok(())
    }

    fn settings(config: &Config, stage: &Stage) -> Vec<f64> {
        let mut values = general(hyper::LEN, stage.ema, stage.input_noise);
        if let Some(Tradeoffs { scale, trained }) = stage.tradeoffs {
            let [from, to] = [trained.from(), trained.to()].map(|alpha| scale.place(alpha));
            values[settings::CONDITION_FROM] = from;
            values[settings::CONDITION_TO] = to;
            values[settings::CONDITION_MARGIN] =
                (alpha::MARGIN * (to - from)).min(from).min(1.0 - to).max(0.0);
            values[settings::CONDITION_UNIT] = 0.5 * (from + to);
            values[settings::CONDITION_SPAN] = scale.span();
        }
        values[settings::RESTRICTED] = stage.unavailable;
        values[hyper::ALPHA] = stage.alpha;
        values[hyper::TAU_HARD] = config.gradient.tau_hard;
        values[hyper::TAU_SOFT] = stage.tau_soft;
        values[hyper::LAMBDA] = stage.lambda;
        values[hyper::RATE_POLICY] = stage.policy_rate;
        values[hyper::RATE_PREDICTOR] = stage.predictor_rate;
        values[hyper::LURE] = stage.lure;
        values[hyper::GUARD] = stage.guard;
        values[hyper::EXACT_STOP] = f64::from(u8::from(stage.exact_stop));
        values[hyper::HAZARD] = stage.hazard;
        values[hyper::REINFORCE] = stage.reinforce;
        values[hyper::ROLLOUTS] = stage.rollouts as f64;
        values[hyper::FOCUS] = stage.focus;
        values[hyper::SUBMASKS] = stage.submasks;
        values
    }

    fn copies(stage: &Stage) -> u32 {
        stage.rollouts as u32
    }

    fn noted(phase: Phase, stage: &Stage) -> BTreeMap<String, f64> {
        let noted = [("tau_soft", stage.tau_soft), ("lambda", stage.lambda)];
        let is_staged = matches!(phase, Phase::Stage(_));
        noted.into_iter().filter(|_| is_staged).map(|(name, value)| (name.to_string(), value)).collect()
    }

    fn step(&self, _: &Config, state: &State, stage: &Stage) -> Section {
        self.sections.step(state.horizon, self.is_reinforced(stage)).section
    }

    fn evaluate(&self) -> [Section; 3] {
        self.sections.evaluate
    }

    fn alphas(config: &Config, stage: &Stage) -> Vec<f64> {
        match stage.tradeoffs {
            Some(tradeoffs) => tradeoffs.trained.grid(config.passes()),
            // The configuration's: that of the stage may still be on its way there.
            None => vec![config.alpha.one().unwrap_or(stage.alpha); config.passes()],
        }
    }

    fn begin(&self, config: &Config) -> State {
        State { horizon: self.layout.shape.steps, tradeoffs: config.alpha.given(), ..State::default() }
    }

    fn next(
        &self,
        config: &Config,
        problem: &Problem,
        state: &State,
        pass: usize,
    ) -> Option<EpochPlan<Stage>> {
        if state.warm_up_done < config.schedule.warm_up_epochs {
            let stage = config.warm_up_stage(state.warm_up_done, pass);
            let step = self.sections.warm_up;
            let validate = match config.alpha.one() {
                Some(alpha) => Validation { section: self.sections.validate, passes: 1, alphas: vec![alpha] },
                None => Validation { section: self.sections.survey, passes: 1, alphas: vec![0.0; 2] },
            };
            return Some(EpochPlan { phase: Phase::WarmUp, stage, step, validate });
        }
        if state.stage == config.schedule.temperatures.len() {
            return None;
        }
        let at = Position { stage: state.stage, epoch: state.stage_epoch };
        let stage = config.stage(problem, at, state.tradeoffs, pass);
        let step = self.step(config, state, &stage);
        let alphas = Self::alphas(config, &stage);
        let validate = Validation { section: self.sections.validate, passes: alphas.len(), alphas };
        Some(EpochPlan { phase: Phase::Stage(state.stage), stage, step, validate })
    }

    fn judge(&self, state: &State, outcome: &Outcome) -> Option<f64> {
        let Phase::Stage(_) = outcome.phase else { return None };
        let (Some(survey), Some(tradeoffs)) = (state.survey, state.tradeoffs) else {
            return Some(outcome.validation.objective);
        };
        // Each α relative to what one pays there without a policy, so that no part of the range decides alone.
        let alphas = tradeoffs.trained.grid(outcome.evaluations.len());
        let relative = outcome
            .evaluations
            .iter()
            .zip(alphas)
            .map(|(e, alpha)| e.objective / survey.without_policy(alpha));
        Some(relative.sum::<f64>() / outcome.evaluations.len() as f64)
    }

    fn follow(
        &self,
        config: &Config,
        problem: &Problem,
        state: &mut State,
        outcome: &Outcome,
    ) -> Result<Then> {
        if outcome.phase == Phase::WarmUp {
            state.warm_up_done += 1;
            if let [nothing, everything] = outcome.evaluations
                && state.warm_up_done == config.schedule.warm_up_epochs
            {
                let horizon = config.steps(problem);
                let survey = Survey::new(problem, horizon, [nothing.loss, everything.loss]);
                if config.alpha == Alpha::Auto {
                    let range = survey.range(problem, horizon, config.schedule.range_from)?;
                    state.tradeoffs = Some(within(range));
                }
                state.survey = Some(survey);
            }
            return Ok(Then::default());
        }
        if config.schedule.tail > 0.0 {
            let still = [0, 1, 2].map(|mark| outcome.train[&*format!("still_asking.{mark}")]);
            state.horizon = self.next_horizon(state.horizon, still, config.schedule.tail);
        }
        state.stage_epoch += 1;
        state.since_best = if outcome.best { 0 } else { state.since_best + 1 };
        let mut judge_anew = false;
        // The next stage begins from the best weights.
        let is_over =
            state.stage_epoch == config.schedule.stage_epochs || state.since_best >= config.schedule.patience;
        if is_over {
            if let (Alpha::Auto, Some(tradeoffs)) = (config.alpha, &mut state.tradeoffs)
                && state.stage == 0
                && config.schedule.temperatures.len() > 1
            {
                let seen: Vec<(f64, f64)> =
                    outcome.evaluations.iter().map(|e| (e.cost, e.acquisitions)).collect();
                tradeoffs.trained = narrowed(tradeoffs.trained, &seen);
                judge_anew = true;
            }
            state.stage += 1;
            (state.stage_epoch, state.since_best) = (0, 0);
        }
        Ok(Then { restore: is_over, judge_anew, ..Then::default() })
    }

    fn epochs_at_most(config: &Config) -> [usize; 2] {
        let schedule = &config.schedule;
        [schedule.warm_up_epochs, schedule.temperatures.len() * schedule.stage_epochs]
    }

    fn epochs_behind(config: &Config, state: &State) -> usize {
        state.warm_up_done + state.stage * config.schedule.stage_epochs + state.stage_epoch
    }

    fn model(
        &self,
        config: &Config,
        state: &State,
        problem: &Problem,
        normalization: &Normalization,
        values: Vec<Vec<f64>>,
        history: Vec<Epoch>,
    ) -> Result<Model> {
        let tensors = |network: &Network, values: Option<&Vec<f64>>| {
            values.map(|values| network.stack.unpack(values)).unwrap_or_default()
        };
        let networks =
            [tensors(&self.layout.policy, values.first()), tensors(&self.layout.predictor, values.get(1))];
        let config = (config.clone(), state.tradeoffs);
        super::policy::model_of(problem.clone(), normalization.clone(), config, networks, history)
    }
}
