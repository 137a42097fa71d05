//! Settings by name: how one is set, and what they were called in files of earlier versions.

use super::Config;
use crate::error::Result;
use crate::methods::set;

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
}

#[cfg(test)]
mod tests {
    use super::super::{Exploration, Gradient, Networks, Predictor, Rollout, Schedule};
    use super::*;
    use crate::methods::alpha::{Alpha, SMALLEST};
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
                // Younger than those.
                range_from: SMALLEST,
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
                // Younger than those.
                through_policy: true,
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
