//! Whether the settings make sense, by themselves and for a problem.

use super::Config;
use crate::error::{Error, Result};
use crate::methods::alpha::Alpha;
use crate::methods::nmppg::stage::Stage;
use crate::methods::range::{self, Rule};
use crate::methods::usual;
use crate::problem::Problem;

impl Config {
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
            ("range_from", schedule.range_from, Rule::BelowOne),
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
}
