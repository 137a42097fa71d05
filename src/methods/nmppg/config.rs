//! What a training run is set to, by subject.

use super::stage::Stage;
use crate::error::{Error, Result};
use crate::methods::alpha::Alpha;
use crate::methods::range::{self, Rule};
use crate::methods::{set, usual};
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
    /// Share of the entropy bonus that counts as value (see [`Stage::lure`]).
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

/// What settings were called in earlier versions, where the last name is another one now: old name and path.
pub const RENAMED: &[(&str, &str)] = &[
    ("policy_hidden", "networks.policy"),
    ("predictor_hidden", "networks.predictor"),
    ("average", "schedule.ema"),
    ("score_from", "gradient.reinforce_from"),
    ("twins", "gradient.rollouts"),
    ("parts", "predictor.submasks"),
    ("blur", "predictor.input_noise"),
];

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

    /// Changes one setting, given as text: `schedule.stage_epochs=3`, or `stage_epochs=3`, as only one has that name
    /// ([`set`]).
    ///
    /// # Errors
    /// A setting that is not there or had another name ([`RENAMED`]), or a value of another type.
    pub fn set(&mut self, assignment: &str) -> Result<()> {
        *self = set::changed(self, assignment, RENAMED)?;
        Ok(())
    }

    /// Reads the settings of a model's file. Those of older versions are not nested, have other names ([`RENAMED`]), and
    /// may name a setting that is gone (docs/rejected.md): it has no effect on a trained model.
    pub(crate) fn from_file(settings: serde_json::Value) -> serde_json::Result<Self> {
        let settings = match settings {
            serde_json::Value::Object(mut flat) if !flat.values().any(serde_json::Value::is_object) => {
                flat.remove("negligible");
                set::nested(flat, &serde_json::to_value(Self::default())?, RENAMED)
            }
            nested => nested,
        };
        let is_told = settings.get("unavailable").is_some();
        let config: Self = serde_json::from_value(settings)?;
        // Policies of earlier versions are not told what cannot be had.
        Ok(if is_told { config } else { Self { unavailable: 0.0, ..config } })
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

    /// A stage in which everything has its full value.
    fn full_stage(&self) -> Stage {
        let Self { schedule, gradient, exploration, predictor, .. } = self;
        Stage {
            alpha: self.alpha.one().unwrap_or(1.0),
            lambda: exploration.lambda.unwrap_or(0.0),
            policy_rate: schedule.policy_rate,
            predictor_rate: schedule.predictor_rate,
            ema: schedule.ema,
            lure: exploration.lure,
            guard: exploration.guard,
            exact_stop: gradient.exact_stop,
            hazard: gradient.hazard,
            reinforce: f64::from(u8::from(gradient.reinforce_from < 1.0)),
            rollouts: gradient.rollouts,
            focus: predictor.focus,
            submasks: predictor.submasks,
            input_noise: predictor.input_noise,
            unavailable: self.unavailable,
            ..Stage::default()
        }
    }

    /// Checks the settings against a problem.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self, problem: &Problem) -> Result<()> {
        let Self { networks, schedule, gradient, exploration, .. } = self;
        usual::check_steps(self.steps(problem), problem)?;
        if schedule.temperatures.is_empty() {
            return Err(Error::Config("temperatures are none, but at least one is needed".into()));
        }
        let mut numbers = vec![
            ("unavailable", self.unavailable, Rule::BelowOne),
            ("batch", self.batch as f64, Rule::Count),
            ("dropout", networks.dropout, Rule::BelowOne),
            ("stage_epochs", schedule.stage_epochs as f64, Rule::Count),
            ("patience", schedule.patience as f64, Rule::Count),
            ("epoch_steps", schedule.epoch_steps as f64, Rule::Count),
            ("policy_rate", schedule.policy_rate, Rule::Positive),
            ("predictor_rate", schedule.predictor_rate, Rule::Positive),
            ("alpha_start", schedule.alpha_start, Rule::NotNegative),
            ("alpha_ramp", schedule.alpha_ramp, Rule::NotNegative),
            ("tail", schedule.tail, Rule::BelowOne),
            ("tau_hard", gradient.tau_hard, Rule::Positive),
            ("reinforce_from", gradient.reinforce_from, Rule::NotNegative),
            ("lambda_share", exploration.lambda_share, Rule::NotNegative),
            ("bonus_end", exploration.bonus_end, Rule::NotNegative),
        ];
        numbers.extend(exploration.initial_stop.map(|stop| ("initial_stop", stop, Rule::Inside)));
        numbers
            .extend(networks.policy.map(|width| ("a width of networks.policy", width as f64, Rule::Count)));
        numbers.extend(
            networks.predictor.map(|width| ("a width of networks.predictor", width as f64, Rule::Count)),
        );
        numbers.extend(schedule.temperatures.iter().map(|&tau| ("a temperature", tau, Rule::Positive)));
        range::check(&numbers)?;
        self.alpha.check()?;
        if self.alpha == Alpha::Auto && problem.features().iter().all(|feature| feature.cost == 0.0) {
            return Err(Error::Config(
                "no feature costs anything, so there is no trade-off to learn: give the features costs, or train for \
                 one α"
                    .into(),
            ));
        }
        if self.alpha.one().is_none() && schedule.warm_up_epochs == 0 {
            return Err(Error::Config(
                "warm_up_epochs is 0, but a range of α needs a warm-up: what it is worth to know nothing and everything is \
                 found there"
                    .into(),
            ));
        }
        self.full_stage().check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Every setting of an earlier version, none at its default.
    fn flat() -> serde_json::Value {
        json!({
            "alpha": 0.3, "horizon": 4, "policy_hidden": [8, 6], "predictor_hidden": [6, 5], "batch": 24,
            "policy_rate": 2e-3, "predictor_rate": 3e-3, "decay": false, "dropout": 0.1, "tau_hard": 1.5,
            "temperatures": [0.5, 0.1], "warm_up_epochs": 1, "stage_epochs": 2, "patience": 3, "epoch_steps": 20,
            "lambda": 0.7, "lambda_share": 0.6, "lure": 0.5, "guard": 0.4, "bonus_end": 0.9, "initial_stop": null,
            "alpha_start": 0.35, "alpha_ramp": 0.45, "average": 0.015, "exact_stop": false, "hazard": 0.25,
            "score_from": 0.55, "twins": 3, "focus": 0.65, "parts": 0.75, "blur": 0.85, "tail": 0.95,
            "rollout": "Soft", "seed": 9, "memory_budget": 1 << 20, "negligible": 0.01,
        })
    }

    #[test]
    fn settings_of_earlier_versions_are_read() {
        let config = Config {
            alpha: Alpha::One(0.3),
            horizon: Some(4),
            unavailable: 0.0,
            batch: 24,
            seed: 9,
            rollout: Rollout::Soft,
            memory_budget: 1 << 20,
            networks: Networks { policy: [8, 6], predictor: [6, 5], dropout: 0.1 },
            schedule: Schedule {
                temperatures: vec![0.5, 0.1],
                warm_up_epochs: 1,
                stage_epochs: 2,
                patience: 3,
                epoch_steps: 20,
                policy_rate: 2e-3,
                predictor_rate: 3e-3,
                decay: false,
                ema: 0.015,
                alpha_start: 0.35,
                alpha_ramp: 0.45,
                tail: 0.95,
            },
            gradient: Gradient {
                tau_hard: 1.5,
                exact_stop: false,
                reinforce_from: 0.55,
                rollouts: 3,
                hazard: 0.25,
            },
            exploration: Exploration {
                lambda: Some(0.7),
                lambda_share: 0.6,
                lure: 0.5,
                guard: 0.4,
                bonus_end: 0.9,
                initial_stop: None,
            },
            predictor: Predictor { focus: 0.65, submasks: 0.75, input_noise: 0.85 },
        };
        assert_eq!(Config::from_file(flat()).expect("reads"), config);
        let nested = serde_json::to_value(&config).expect("writes");
        assert_eq!(Config::from_file(nested).expect("reads"), config);
        let told_nothing = Config { unavailable: 0.0, ..Config::default() };
        assert_eq!(Config::from_file(json!({})).expect("reads"), told_nothing);
        for (settings, what) in [
            (json!({ "average": 0.1, "pace": 1 }), "unknown field `pace`"),
            (json!({ "schedule": {}, "average": 0.1 }), "unknown field `average`"),
            (json!({ "schedule": { "average": 0.1 } }), "unknown field `average`"),
            (json!({ "twins": "two" }), "invalid type: string \"two\", expected usize"),
            (json!(3), "expected struct Config"),
        ] {
            let error = Config::from_file(settings).map_or_else(|e| e.to_string(), |_| String::new());
            assert!(error.contains(what), "{what}: {error}");
        }
    }

    #[test]
    fn every_setting_can_be_set_by_its_last_name() {
        let mut config = Config { unavailable: 0.0, ..Config::default() };
        for (name, value) in flat().as_object().expect("an object") {
            let result = config.set(&format!("{name}={value}"));
            match RENAMED.iter().find(|(old, _)| old == name) {
                Some((_, new)) => {
                    let error = result.expect_err("an old name").to_string();
                    assert!(error.contains(&format!("{name} is now called {new}")), "{error}");
                    config.set(&format!("{new}={value}")).expect("the new name");
                }
                None if name == "negligible" => {
                    let error = result.expect_err("it is gone").to_string();
                    assert!(error.contains("there is no field negligible; there are alpha, "), "{error}");
                }
                None => result.unwrap_or_else(|error| panic!("{error}")),
            }
        }
        assert_eq!(config, Config::from_file(flat()).expect("reads"));
        config.set("policy=[4,4]").expect("one of the networks");
        config.set("predictor=[4,3]").expect("the other, not the group");
        assert_eq!((config.networks.policy, config.networks.predictor), ([4, 4], [4, 3]));
        for (change, what) in [
            ("rollout=Hard", "unknown variant `Hard`, expected `StraightThrough` or `Soft`"),
            ("networks.policy=[1]", "invalid length 1"),
            ("batch=null", "expected usize"),
            ("batch=-1", "expected usize"),
            ("horizon=few", "horizon must be a whole number, such as 4"),
        ] {
            let before = config.clone();
            let error = config.set(change).expect_err(what).to_string();
            assert!(error.contains(what) && error.contains(change), "{what}: {error}");
            assert_eq!(config, before);
        }
    }
}
