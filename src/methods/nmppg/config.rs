//! What a training run is set to, by subject.

mod check;
mod names;

pub use names::RENAMED;

use crate::methods::alpha::{Alpha, SMALLEST};
use crate::methods::usual;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// Which masks the networks see during training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rollout {
    /// The straight-through estimator: hard masks forward, which is what inference will meet, and those relaxed by the
    /// Gumbel-softmax backward.
    StraightThrough,
    /// Relaxed masks both ways: an ablation, and a test of correctness, as its gradient is exact.
    Soft,
}

/// Trade-offs of a range that each epoch is validated at.
const GRID: usize = 6;

/// Settings of a training run. Every field has a default ([`Config::new`]) that was measured on the
/// synthetic tasks: `docs/training.md` shows each choice's effect.
///
/// # Examples
/// ```
/// use querent::nmppg::Config;
///
/// let config = Config::new(0.02).with(|c| {
///     c.schedule.stage_epochs = 3;
///     c.networks.policy = [64, 32];
/// });
/// assert_eq!((config.alpha.one(), config.schedule.patience), (Some(0.02), 5));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What one unit of cost is worth in nats of loss, α: one number, or a range of them.
    pub alpha: Alpha,
    /// Acquisitions at most; `None`: all features, at most 30.
    pub horizon: Option<usize>,
    /// Share of the training instances of which a random part of the features cannot be had, as it happens when asking:
    /// the policy is told which, and learns to ask for the next best.
    pub unavailable: f64,
    /// Instances of a training step.
    pub batch: usize,
    /// Seed of weights, order, noise and dropout.
    pub seed: u64,
    /// Which masks the networks see: straight-through or soft.
    pub rollout: Rollout,
    /// Bytes that tapes and gradients may take; larger batches are split into micro-batches.
    pub memory_budget: u64,
    /// The networks' shapes.
    pub networks: Networks,
    /// How long a run takes, and what falls and rises over it.
    pub schedule: Schedule,
    /// What the policy's gradient is.
    pub gradient: Gradient,
    /// What keeps the policy trying things.
    pub exploration: Exploration,
    /// What the predictor learns on.
    pub predictor: Predictor,
}

/// The networks' shapes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Networks {
    /// Widths of the policy's hidden layers.
    pub policy: [usize; 2],
    /// Widths of the predictor's hidden layers.
    pub predictor: [usize; 2],
    /// Dropout: the probability that a hidden unit of the predictor is left out in training.
    pub dropout: f64,
}

/// How long a run takes, and what falls and rises over it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// Gumbel-softmax temperatures, τs, of one stage after the other (annealing).
    pub temperatures: Vec<f64>,
    /// Epochs of the warm-up (pretraining), in which the predictor learns alone on random masks.
    pub warm_up_epochs: usize,
    /// Epochs of a stage, at most.
    pub stage_epochs: usize,
    /// Early stopping: a stage ends after so many epochs without a better validation objective.
    pub patience: usize,
    /// Training steps of an epoch: small tables are gone through as often as fits into them, larger ones
    /// once.
    pub epoch_steps: usize,
    /// The policy's learning rate, at its largest.
    pub policy_rate: f64,
    /// The predictor's learning rate, at its largest.
    pub predictor_rate: f64,
    /// Whether rates and bonuses fall over the run (rates along a half cosine: cosine decay).
    pub decay: bool,
    /// Share of the newest weights in their exponential moving average (EMA, Polyak averaging), of both networks: it is
    /// what is evaluated and kept; 1: no averaging.
    pub ema: f64,
    /// Where labels are noisy, the smallest α of a range that is to be found, as a share of what everything is worth a unit of
    /// its cost; less than a thirtieth counts as that. Without effect where policies can show less than half of the features.
    pub range_from: f64,
    /// α at the start of the first stage, as a share of α.
    pub alpha_start: f64,
    /// Share of the run after which α has its full value.
    pub alpha_ramp: f64,
    /// Rollouts of the next epoch end after a quarter, a half or three quarters of the horizon if less
    /// than this mass would go on there; 0: always after all of it. Evaluation always has all of it.
    pub tail: f64,
}

/// What the policy's gradient is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gradient {
    /// Temperature of the policy, τh: that of its softmax, not of the relaxation.
    pub tau_hard: f64,
    /// The stop's share is its probability itself, not a relaxed sample of it.
    pub exact_stop: bool,
    /// Share of the run after which the choice between features follows the score-function gradient (REINFORCE)
    /// instead of the relaxed one; 1: never.
    pub reinforce_from: f64,
    /// Rollouts of each instance in a batch from then on: each is the others' leave-one-out baseline (RLOO).
    pub rollouts: usize,
    /// Hazard: the chance, at the start of the first stage, that a rollout is cut short at a step, whatever the policy
    /// wants. It fades away over the run.
    pub hazard: f64,
    /// Whether the relaxed gradient also goes through what later choices read. Without, a choice is told what it changes in
    /// the predictor's losses and in what is paid later, but not that later choices would be others: of many features, that
    /// is most of a step's time.
    pub through_policy: bool,
}

/// What keeps the policy trying things.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Exploration {
    /// Weight of the entropy bonus, λ, throughout; `None`: `lambda_share` decides.
    pub lambda: Option<f64>,
    /// λ, the weight of the entropy bonus, as a share of what one question costs: 1 is a bonus that pays for the
    /// cheapest question of a policy that knows nothing.
    pub lambda_share: f64,
    /// Share of the entropy bonus that counts as value (see [`Stage::lure`](super::Stage::lure)).
    pub lure: f64,
    /// Weight, in units of α, of the guard that keeps stopping and going on both possible.
    pub guard: f64,
    /// Share of the run after which the entropy bonus and the guard have faded away.
    pub bonus_end: f64,
    /// Probability of stopping at the first step before anything is learned; `None`: as initialised.
    pub initial_stop: Option<f64>,
}

/// What the predictor learns on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Predictor {
    /// Share of the predictor's loss that counts where the policy stops; it rises to this value over the
    /// first half of the run.
    pub focus: f64,
    /// Share of the predictor's loss on random sub-masks of what was asked (mask augmentation).
    pub submasks: f64,
    /// Input noise (augmentation) on the training rows of a small table, in standard deviations of each column: what a
    /// table that is gone through n times an epoch gets is 1 − 1/n of it.
    pub input_noise: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: Alpha::One(0.02),
            horizon: None,
            unavailable: 0.2,
            batch: 128,
            seed: 0,
            rollout: Rollout::StraightThrough,
            memory_budget: 1 << 30,
            networks: Networks::default(),
            schedule: Schedule::default(),
            gradient: Gradient::default(),
            exploration: Exploration::default(),
            predictor: Predictor::default(),
        }
    }
}

impl Default for Networks {
    fn default() -> Self {
        Self { policy: [256, 128], predictor: [128, 128], dropout: 0.0 }
    }
}

/// The published temperatures.
const TEMPERATURES: [f64; 5] = [0.8, 0.5, 0.2, 0.05, 0.02];

impl Default for Schedule {
    fn default() -> Self {
        Self {
            temperatures: TEMPERATURES.to_vec(),
            warm_up_epochs: 3,
            stage_epochs: 5,
            patience: 5,
            epoch_steps: 900,
            policy_rate: 1e-3,
            predictor_rate: 1e-3,
            decay: true,
            ema: 0.0025,
            range_from: SMALLEST,
            alpha_start: 0.2,
            alpha_ramp: 0.2,
            tail: 0.005,
        }
    }
}

impl Default for Gradient {
    fn default() -> Self {
        Self {
            tau_hard: 1.0,
            exact_stop: true,
            reinforce_from: 0.2,
            rollouts: 2,
            hazard: 0.05,
            through_policy: true,
        }
    }
}

impl Default for Exploration {
    fn default() -> Self {
        Self {
            lambda: None,
            lambda_share: 0.2,
            lure: 0.0,
            guard: 0.2,
            bonus_end: 1.0,
            initial_stop: Some(0.2),
        }
    }
}

impl Default for Predictor {
    fn default() -> Self {
        Self { focus: 0.5, submasks: 0.8, input_noise: 0.35 }
    }
}

impl Config {
    /// The default settings for a trade-off α between loss and cost.
    pub fn new(alpha: impl Into<Alpha>) -> Self {
        Self { alpha: alpha.into(), ..Self::default() }
    }

    /// The published settings, taken literally: λ = 0.5 and τh = 1, up to 2000 epochs a stage with a
    /// patience of 100, constant rates of 1e-3 and 1e-4, dropout 0.3, and nothing that we added.
    pub fn paper(alpha: f64) -> Self {
        Self {
            networks: Networks { policy: [128, 128], predictor: [128, 128], dropout: 0.3 },
            schedule: Schedule {
                warm_up_epochs: 2000,
                stage_epochs: 2000,
                patience: 100,
                epoch_steps: 1,
                predictor_rate: 1e-4,
                decay: false,
                ema: 1.0,
                alpha_start: 1.0,
                tail: 0.0,
                ..Schedule::default()
            },
            gradient: Gradient { exact_stop: false, reinforce_from: 1.0, hazard: 0.0, ..Gradient::default() },
            exploration: Exploration {
                lambda: Some(0.5),
                lure: 1.0,
                guard: 0.0,
                initial_stop: None,
                ..Exploration::default()
            },
            predictor: Predictor { focus: 0.0, submasks: 0.0, input_noise: 0.0 },
            unavailable: 0.0,
            ..Self::new(alpha)
        }
    }

    /// The same settings with some of them changed.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Passes over the validation rows, each at an α of its own.
    pub(super) fn passes(&self) -> usize {
        if self.alpha.one().is_some() { 1 } else { GRID }
    }

    /// The horizon for a problem.
    pub fn steps(&self, problem: &Problem) -> usize {
        usual::steps(self.horizon, problem)
    }

    /// Whether the choice between features follows REINFORCE at some time. Under relaxed masks it never does: there are
    /// no choices then.
    pub(super) fn reinforces(&self) -> bool {
        self.gradient.reinforce_from < 1.0 && self.rollout == Rollout::StraightThrough
    }

    /// Rollouts of an instance in a batch, at most.
    pub(super) fn most_rollouts(&self) -> usize {
        if self.reinforces() { self.gradient.rollouts } else { 1 }
    }

    /// Whether REINFORCE is used when so much of the run is behind.
    pub(super) fn reinforces_at(&self, progress: f64) -> bool {
        self.reinforces() && progress >= self.gradient.reinforce_from
    }

    /// Training steps of an epoch, for passes over the data of so many: whole passes, as many as fit, and
    /// at least one.
    pub(crate) fn whole_passes(&self, pass: usize) -> usize {
        usual::whole_passes(self.schedule.epoch_steps, pass)
    }

    /// Noise on the rows of a table whose passes have so many steps. What is seen once an epoch is not
    /// learned by heart and needs none.
    pub(super) fn input_noise_for(&self, pass: usize) -> f64 {
        self.predictor.input_noise * (1.0 - pass as f64 / self.whole_passes(pass) as f64)
    }
}
