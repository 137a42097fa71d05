//! What a training run is set to.

use crate::error::{Error, Result};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// Which masks the networks see during training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rollout {
    /// Hard masks forward, relaxed ones backward: what inference will meet.
    StraightThrough,
    /// Relaxed masks both ways: an ablation, and a test of correctness, as its gradient is exact.
    Soft,
}

/// What changes from stage to stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// What one unit of cost is worth in nats of loss, α.
    pub alpha: f64,
    /// Temperature of the relaxation, τs.
    pub tau_soft: f64,
    /// Weight of the entropy bonus, λ.
    pub lambda: f64,
    /// The policy's learning rate.
    pub policy_rate: f64,
    /// The predictor's learning rate.
    pub predictor_rate: f64,
    /// Share of the entropy bonus that counts as value: 1 as published; 0 for a bonus that makes the
    /// policy try things but does not reward asking on.
    pub lure: f64,
    /// Weight of the guard that keeps stopping and going on both possible; 0 as published.
    pub guard: f64,
    /// Share of the newest weights in the moving average that evaluation uses; 1: no averaging.
    pub average: f64,
    /// The stop's share is its probability itself, not a relaxed sample of it; `false` as published.
    pub exact_stop: bool,
    /// Chance that a run is cut short at a step, whatever the policy wants; 0 as published.
    pub hazard: f64,
    /// Share of the score-function gradient in that of the choice between features; 0 as published.
    pub score: f64,
    /// Rollouts of each instance in a batch: each is the others' baseline; 1 as published.
    pub twins: usize,
    /// Share of the predictor's loss that counts where the policy stops; 0 as published.
    pub focus: f64,
    /// Share of the predictor's loss on random parts of what was asked; 0 as published.
    pub parts: f64,
    /// Noise on the training rows, in standard deviations of each column; 0 as published.
    pub blur: f64,
}

impl Default for Stage {
    fn default() -> Self {
        Self {
            alpha: 0.02,
            tau_soft: 0.5,
            lambda: 0.0,
            policy_rate: 1e-3,
            predictor_rate: 1e-4,
            lure: 1.0,
            guard: 0.0,
            average: 1.0,
            exact_stop: false,
            hazard: 0.0,
            score: 0.0,
            twins: 1,
            focus: 0.0,
            parts: 0.0,
            blur: 0.0,
        }
    }
}

/// The horizon where none is given: gradients flow through at most so many acquisitions.
const DEFAULT_HORIZON: usize = 30;

/// Settings of a training run. Every field has a default ([`Config::new`]) that was measured on the
/// synthetic tasks: `docs/training.md` shows each choice's effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What one unit of cost is worth in nats of loss, α.
    pub alpha: f64,
    /// Acquisitions at most; `None`: all features, at most 30.
    pub horizon: Option<usize>,
    /// Widths of the policy's hidden layers.
    pub policy_hidden: [usize; 2],
    /// Widths of the predictor's hidden layers.
    pub predictor_hidden: [usize; 2],
    /// Instances of a training step.
    pub batch: usize,
    /// The policy's learning rate, at its largest.
    pub policy_rate: f64,
    /// The predictor's learning rate, at its largest.
    pub predictor_rate: f64,
    /// Whether rates and bonuses fall over the run (rates along a half cosine).
    pub decay: bool,
    /// Probability that a hidden unit of the predictor is dropped in training.
    pub dropout: f64,
    /// Temperature of the policy, τh.
    pub tau_hard: f64,
    /// Temperature of the relaxation, τs, stage by stage.
    pub temperatures: Vec<f64>,
    /// Epochs of the warm-up, in which the predictor learns alone on random masks.
    pub warm_up_epochs: usize,
    /// Epochs of a stage, at most.
    pub stage_epochs: usize,
    /// A stage ends after so many epochs without a better validation objective.
    pub patience: usize,
    /// Training steps of an epoch: small tables are gone through as often as fits into them, larger ones
    /// once.
    pub epoch_steps: usize,
    /// Weight of the entropy bonus, λ, throughout; `None`: `lambda_share` decides.
    pub lambda: Option<f64>,
    /// λ as a share of what one question costs: 1 is a bonus that pays for the cheapest question of a
    /// policy that knows nothing.
    pub lambda_share: f64,
    /// Share of the bonus that counts as value (see [`Stage::lure`]).
    pub lure: f64,
    /// Weight, in units of α, of the guard that keeps stopping and going on both possible.
    pub guard: f64,
    /// Share of the run after which the entropy bonus and the guard have faded away.
    pub bonus_end: f64,
    /// Probability of stopping at the first step before anything is learned; `None`: as initialised.
    pub initial_stop: Option<f64>,
    /// α at the start of the first stage, as a share of α.
    pub alpha_start: f64,
    /// Share of the run after which α has its full value.
    pub alpha_ramp: f64,
    /// Share of the newest weights in the moving average that is evaluated and kept; 1: no averaging.
    pub average: f64,
    /// The stop's share is its probability itself, not a relaxed sample of it.
    pub exact_stop: bool,
    /// Chance, at the start of the first stage, that a run is cut short at a step, whatever the policy
    /// wants. It fades away over the run.
    pub hazard: f64,
    /// Share of the run after which the choice between features follows the score-function gradient
    /// instead of the relaxed one; 1: never.
    pub score_from: f64,
    /// Rollouts of each instance in a batch from then on: each is the others' baseline.
    pub twins: usize,
    /// Share of the predictor's loss that counts where the policy stops; it rises to this value over the
    /// first half of the run.
    pub focus: f64,
    /// Share of the predictor's loss on random parts of what was asked.
    pub parts: f64,
    /// Noise on the training rows of a small table, in standard deviations of each column: what a table
    /// that is gone through n times an epoch gets is 1 − 1/n of it.
    pub blur: f64,
    /// Rollouts of the next epoch end after a quarter, a half or three quarters of the horizon if less
    /// than this mass would go on there; 0: always after all of it. Evaluation always has all of it.
    pub tail: f64,
    /// Which masks the networks see.
    pub rollout: Rollout,
    /// Seed of weights, order, noise and dropout.
    pub seed: u64,
    /// Bytes that tapes and gradients may take; larger batches are split into micro-batches.
    pub memory_budget: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: 0.02,
            horizon: None,
            policy_hidden: [256, 128],
            predictor_hidden: [128, 128],
            batch: 128,
            policy_rate: 1e-3,
            predictor_rate: 1e-3,
            decay: true,
            dropout: 0.0,
            tau_hard: 1.0,
            temperatures: TEMPERATURES.to_vec(),
            warm_up_epochs: 3,
            stage_epochs: 5,
            patience: 5,
            epoch_steps: 900,
            lambda: None,
            lambda_share: 0.2,
            lure: 0.0,
            guard: 0.2,
            bonus_end: 1.0,
            initial_stop: Some(0.2),
            alpha_start: 0.2,
            alpha_ramp: 0.2,
            average: 0.0025,
            exact_stop: true,
            hazard: 0.05,
            score_from: 0.2,
            twins: 2,
            focus: 0.5,
            parts: 0.8,
            blur: 0.35,
            tail: 0.005,
            rollout: Rollout::StraightThrough,
            seed: 0,
            memory_budget: 1 << 30,
        }
    }
}

/// Checks that shares of something are shares, and leave something over.
fn check_shares(shares: &[(&str, f64)]) -> Result<()> {
    match shares.iter().find(|(_, value)| !(0.0..1.0).contains(value)) {
        None => Ok(()),
        Some((name, value)) => {
            Err(Error::Config(format!("{name} is {value}, but it must be at least 0 and below 1")))
        }
    }
}

/// The published temperatures.
const TEMPERATURES: [f64; 5] = [0.8, 0.5, 0.2, 0.05, 0.02];

impl Config {
    /// The default settings for a trade-off α between loss and cost.
    pub fn new(alpha: f64) -> Self {
        Self { alpha, ..Self::default() }
    }

    /// The published settings, taken literally: λ = 0.5 and τh = 1, up to 2000 epochs a stage with a
    /// patience of 100, constant rates of 1e-3 and 1e-4, dropout 0.3, and nothing that we added.
    pub fn paper(alpha: f64) -> Self {
        Self {
            alpha,
            policy_hidden: [128, 128],
            predictor_rate: 1e-4,
            decay: false,
            dropout: 0.3,
            warm_up_epochs: 2000,
            stage_epochs: 2000,
            patience: 100,
            epoch_steps: 1,
            lambda: Some(0.5),
            lure: 1.0,
            guard: 0.0,
            initial_stop: None,
            alpha_start: 1.0,
            average: 1.0,
            exact_stop: false,
            hazard: 0.0,
            score_from: 1.0,
            focus: 0.0,
            parts: 0.0,
            blur: 0.0,
            tail: 0.0,
            ..Self::default()
        }
    }

    /// Reads the settings of a model's file. Those of older versions may name a setting that is gone
    /// (docs/rejected.md): it has no effect on a trained model.
    pub(crate) fn from_file(mut settings: serde_json::Value) -> serde_json::Result<Self> {
        if let Some(settings) = settings.as_object_mut() {
            settings.remove("negligible");
        }
        serde_json::from_value(settings)
    }

    /// The horizon for a problem.
    pub fn steps(&self, problem: &Problem) -> usize {
        self.horizon.unwrap_or(problem.features().len().min(DEFAULT_HORIZON))
    }

    /// Whether the choice between features follows the score-function gradient at some time. Under
    /// relaxed masks it never does: there are no choices then.
    pub(super) fn scores(&self) -> bool {
        self.score_from < 1.0 && self.rollout == Rollout::StraightThrough
    }

    /// Rollouts of an instance in a batch, at most.
    pub(super) fn most_twins(&self) -> usize {
        if self.scores() { self.twins } else { 1 }
    }

    /// Whether the score-function gradient is used when so much of the run is behind.
    pub(super) fn scores_at(&self, progress: f64) -> bool {
        self.scores() && progress >= self.score_from
    }

    /// Training steps of an epoch, for passes over the data of so many: whole passes, as many as fit, and
    /// at least one.
    pub(crate) fn whole_passes(&self, pass: usize) -> usize {
        pass * (self.epoch_steps / pass).max(1)
    }

    /// Noise on the rows of a table whose passes have so many steps. What is seen once an epoch is not
    /// learned by heart and needs none.
    pub(super) fn blur_for(&self, pass: usize) -> f64 {
        self.blur * (1.0 - pass as f64 / self.whole_passes(pass) as f64)
    }

    /// Checks the settings against a problem.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self, problem: &Problem) -> Result<()> {
        let fail = |what: String| Err(Error::Config(what));
        let features = problem.features().len();
        let steps = self.steps(problem);
        if steps == 0 || steps > features {
            return fail(format!(
                "the horizon is {steps}, but it must be 1 to {features}, the number of features"
            ));
        }
        if self.batch == 0 {
            return fail("the batch is 0 instances".into());
        }
        if self.policy_hidden.iter().chain(&self.predictor_hidden).any(|&width| width == 0) {
            return fail("a hidden layer has width 0".into());
        }
        let positive = [
            ("policy_rate", self.policy_rate),
            ("predictor_rate", self.predictor_rate),
            ("tau_hard", self.tau_hard),
        ];
        for (name, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return fail(format!("{name} is {value}, but it must be a finite number above 0"));
            }
        }
        if !(self.alpha.is_finite() && self.alpha >= 0.0) {
            return fail(format!("alpha is {}, but it must be a finite number, zero or more", self.alpha));
        }
        if self.temperatures.is_empty()
            || self.temperatures.iter().any(|&tau| !(tau.is_finite() && tau > 0.0))
        {
            return fail(format!(
                "temperatures are {:?}, but at least one is needed, each a finite number above 0",
                self.temperatures
            ));
        }
        for (name, value) in [("stage_epochs", self.stage_epochs), ("patience", self.patience)] {
            if value == 0 {
                return fail(format!("{name} is 0, but it must be at least 1"));
            }
        }
        let not_negative = [
            ("lambda", self.lambda.unwrap_or(0.0)),
            ("lambda_share", self.lambda_share),
            ("lure", self.lure),
            ("guard", self.guard),
            ("bonus_end", self.bonus_end),
            ("alpha_start", self.alpha_start),
            ("alpha_ramp", self.alpha_ramp),
            ("score_from", self.score_from),
            ("blur", self.blur),
        ];
        for (name, value) in not_negative {
            if !(value.is_finite() && value >= 0.0) {
                return fail(format!("{name} is {value}, but it must be a finite number, zero or more"));
            }
        }
        if !(self.average > 0.0 && self.average <= 1.0) {
            return fail(format!("average is {}, but it must be above 0 and at most 1", self.average));
        }
        if self.twins == 0 || (self.score_from < 1.0 && self.twins < 2) {
            return fail(format!(
                "twins is {}, but the score-function gradient (score_from below 1) needs at least 2",
                self.twins
            ));
        }
        check_shares(&[
            ("hazard", self.hazard),
            ("focus", self.focus),
            ("parts", self.parts),
            ("tail", self.tail),
            ("dropout", self.dropout),
        ])?;
        if let Some(stop) = self.initial_stop
            && !(stop > 0.0 && stop < 1.0)
        {
            return fail(format!("initial_stop is {stop}, but it must be between 0 and 1"));
        }
        Ok(())
    }
}

impl Stage {
    /// Checks the stage's settings.
    ///
    /// # Errors
    /// The first one that is out of range.
    pub fn check(&self) -> Result<()> {
        if !(self.tau_soft.is_finite() && self.tau_soft > 0.0) {
            let value = self.tau_soft;
            return Err(Error::Config(format!(
                "tau_soft is {value}, but it must be a finite number above 0"
            )));
        }
        if !(self.average > 0.0 && self.average <= 1.0) {
            let value = self.average;
            return Err(Error::Config(format!("average is {value}, but it must be above 0 and at most 1")));
        }
        if !(0.0..=1.0).contains(&self.score) || self.twins == 0 || (self.score > 0.0 && self.twins < 2) {
            return Err(Error::Config(format!(
                "score is {} with twins {}, but it must be 0 to 1, and above 0 each instance needs at least 2 \
                 rollouts",
                self.score, self.twins
            )));
        }
        check_shares(&[("hazard", self.hazard), ("focus", self.focus), ("parts", self.parts)])?;
        for (name, value) in [
            ("alpha", self.alpha),
            ("lambda", self.lambda),
            ("lure", self.lure),
            ("guard", self.guard),
            ("blur", self.blur),
            ("policy_rate", self.policy_rate),
            ("predictor_rate", self.predictor_rate),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::Config(format!(
                    "{name} is {value}, but it must be a finite number, zero or more"
                )));
            }
        }
        Ok(())
    }
}
