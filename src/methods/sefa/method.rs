//! SEFA as the trainer sees it: its settings as words, its schedule, its result.

use super::config::Config;
use super::kernels::hyper;
use super::plan::Sefa;
use super::{knots, policy};
use crate::data::{Dataset, Normalization};
use crate::engine::kernels::words::{METRICS, general};
use crate::engine::plan::{BufferId, PlanBuilder, Section};
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
    /// The learning rate.
    pub rate: f64,
}

/// Where the schedule is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Epochs done before the validation loss counts.
    pub warm_up_done: usize,
    /// Epochs done at this learning rate.
    pub stage_epoch: usize,
    /// The validation loss over all steps, and how often the rate has fallen.
    pub plateau: Plateau,
}

/// The place of the evaluation's further sum: the loss over all steps.
const ALONG: usize = 0;

impl Method for Sefa {
    const NAME: &'static str = super::NAME;
    const METRICS: [&'static str; METRICS] =
        ["objective", "divergence_price", "", "prediction_loss", "instances", "", "", ""];
    type Config = Config;
    type Stage = Stage;
    type State = State;

    fn demand(config: &Config, problem: &Problem, _: usize) -> Demand {
        Demand {
            horizon: config.steps(problem),
            settings: hyper::LEN,
            groups: 1,
            together: 1,
            // Batch norm is over all of it.
            whole: true,
            input_noise: false,
            conditions: 0,
            availability: false,
            passes: 1,
        }
    }

    fn build(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        Sefa::new(b, batches, config)
    }

    fn weights(&self) -> Vec<Weights> {
        vec![self.layout.weights]
    }

    fn networks(&self) -> Vec<(&'static str, &Network)> {
        self.layout.predictor.plain().map(|predictor| ("predictor", predictor)).into_iter().collect()
    }

    fn init(&self, config: &Config) -> Vec<Vec<f64>> {
        let (encoder, predictor) = (&self.layout.encoder.stack, &self.layout.predictor.stack);
        let mut values = [encoder.init(config.seed, 0), predictor.init(config.seed, 1)].concat();
        values.resize(self.layout.weights.len, 0.0);
        vec![values]
    }

    fn fit_to(&self, _: &Config, data: &Dataset, values: &mut [Vec<f64>]) {
        let tables = knots::tables(data);
        for values in values {
            values[self.layout.knots..][..tables.len()].copy_from_slice(&tables);
        }
    }

    fn constants(&self, config: &Config) -> Vec<(BufferId, Vec<f64>)> {
        let (samples, width) = (config.taken(config.validation_samples), self.layout.latents());
        let noise = policy::noise(config, samples, width).into_iter().map(f64::from).collect();
        vec![(self.layout.samples, noise)]
    }

    fn first_stage(config: &Config) -> Stage {
        Stage { rate: config.rate }
    }

    fn check_stage(_: &Config, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn settings(config: &Config, stage: &Stage) -> Vec<f64> {
        // The published method evaluates the weights themselves, and adds no noise to rows.
        let mut values = general(hyper::LEN, 1.0, 0.0);
        values[hyper::RATE] = stage.rate;
        values[hyper::PRICE] = config.beta;
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

    fn alphas(_: &Config, _: &Stage) -> Vec<f64> {
        vec![0.0]
    }

    fn next(&self, config: &Config, _: &Problem, state: &State, _: usize) -> Option<EpochPlan<Stage>> {
        let stage = state.plateau.decays;
        let warm = state.warm_up_done >= config.warm_up_epochs;
        (stage <= config.decays).then(|| EpochPlan {
            phase: if warm { Phase::Stage(stage) } else { Phase::WarmUp },
            stage: Stage { rate: state.plateau.rate(config.rate, config.decay) },
            step: self.sections.step,
            validate: Validation { section: self.sections.validate, passes: 1, alphas: vec![0.0] },
        })
    }

    /// A stage is a learning rate: it is over when the loss rests, or after so many epochs.
    fn follow(&self, config: &Config, _: &Problem, state: &mut State, outcome: &Outcome) -> Result<Then> {
        if outcome.phase == Phase::WarmUp {
            state.warm_up_done += 1;
            return Ok(Then::default());
        }
        let stage = state.plateau.decays;
        state.stage_epoch += 1;
        state.plateau.is_over(outcome.validation.extra[ALONG], config.patience, config.decays);
        if state.plateau.decays == stage && state.stage_epoch == config.stage_epochs {
            state.plateau.decays += 1;
        }
        if state.plateau.decays > stage {
            (state.stage_epoch, state.plateau.since_best) = (0, 0);
        }
        Ok(Then::default())
    }

    /// The loss over all steps: what a run to any number of features has in common.
    fn judge(&self, _: &State, outcome: &Outcome) -> Option<f64> {
        (outcome.phase != Phase::WarmUp).then_some(outcome.validation.extra[ALONG])
    }

    fn epochs_at_most(config: &Config) -> [usize; 2] {
        [config.warm_up_epochs, (config.decays + 1) * config.stage_epochs]
    }

    fn epochs_behind(config: &Config, state: &State) -> usize {
        state.warm_up_done + state.plateau.decays * config.stage_epochs + state.stage_epoch
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
        let layers = policy::Layers {
            encoder: self.layout.encoder.stack.unpack_folded(group),
            predictor: self.layout.predictor.stack.unpack_folded(group),
            knots: group[self.layout.knots..][..2 * knots::KNOTS * problem.columns()].to_vec(),
        };
        super::model(problem.clone(), normalization.clone(), config.clone(), layers, history)
    }
}
