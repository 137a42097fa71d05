//! What each epoch of a run is set to: temperatures, rates and bonuses over the run.

use super::config::Config;
use super::stage::Stage;
use crate::methods::usual;
use crate::policy::Tradeoffs;
use crate::problem::Problem;
use std::f64::consts::PI;

/// Over this share of a run everything can be had, and over as much again, ever less. What is worth asking is found
/// first: to instances of which next to nothing can be had, stopping at once is the answer, and a policy that has not learned
/// anything else yet takes it for that of all.
const ALL_AT_HAND: f64 = 0.2;

/// How far a run is: which stage, and which of its epochs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    pub stage: usize,
    pub epoch: usize,
}

/// The entropy bonus that is worth as much as the cheapest question, for a policy that knows nothing:
/// α c_min / ln(d + 1). λ is a share of it, so that no bonus pays for a question by itself, however many
/// features there are.
fn break_even(problem: &Problem, alpha: f64) -> f64 {
    let costs = problem.features().iter().map(|feature| feature.cost).filter(|&cost| cost > 0.0);
    let cheapest = costs.fold(f64::INFINITY, f64::min);
    let actions = (problem.features().len() + 1) as f64;
    if cheapest.is_finite() { alpha * cheapest / actions.ln() } else { 0.0 }
}

impl Config {
    /// The settings of a warm-up epoch: the predictor's rate falls along a cosine. A pass over the data has
    /// `pass` steps.
    pub(crate) fn warm_up_stage(&self, epoch: usize, pass: usize) -> Stage {
        let schedule = &self.schedule;
        let progress = epoch as f64 / schedule.warm_up_epochs.max(1) as f64;
        Stage {
            alpha: self.alpha.one().unwrap_or(1.0),
            predictor_rate: schedule.predictor_rate
                * if schedule.decay { usual::falling(PI * progress, 0.1) } else { 1.0 },
            ema: schedule.ema,
            input_noise: self.input_noise_for(pass),
            ..Stage::default()
        }
    }

    /// The settings of a training epoch. A pass over the data has `pass` steps.
    pub(super) fn stage(
        &self,
        problem: &Problem,
        at: Position,
        tradeoffs: Option<Tradeoffs>,
        pass: usize,
    ) -> Stage {
        let Self { schedule, gradient, exploration, predictor, .. } = self;
        let total = (schedule.temperatures.len() * schedule.stage_epochs).max(1) as f64;
        let progress = (at.stage * schedule.stage_epochs + at.epoch) as f64 / total;
        let tau_soft = schedule.temperatures[at.stage];
        let rising = if schedule.alpha_ramp > 0.0 { (progress / schedule.alpha_ramp).min(1.0) } else { 1.0 };
        let full = tradeoffs.map_or(self.alpha.one().unwrap_or(1.0), |known| known.trained.middle());
        let alpha = full * (schedule.alpha_start + (1.0 - schedule.alpha_start) * rising);
        // What makes the policy try things has to be gone before the end: it blurs close decisions.
        let fading = if schedule.decay { (1.0 - progress / exploration.bonus_end).max(0.0) } else { 1.0 };
        let rate = if schedule.decay { usual::falling(PI * progress, 0.05) } else { 1.0 };
        Stage {
            alpha,
            tradeoffs,
            tau_soft,
            lambda: match exploration.lambda {
                Some(lambda) => lambda,
                None => exploration.lambda_share * break_even(problem, alpha) * fading,
            },
            lure: exploration.lure,
            guard: exploration.guard * alpha * fading,
            policy_rate: schedule.policy_rate * rate,
            predictor_rate: schedule.predictor_rate * rate,
            ema: schedule.ema,
            exact_stop: gradient.exact_stop,
            hazard: gradient.hazard * (1.0 - progress),
            reinforce: f64::from(u8::from(self.reinforces_at(progress))),
            rollouts: if self.reinforces_at(progress) { gradient.rollouts } else { 1 },
            focus: predictor.focus * (2.0 * progress).min(1.0),
            submasks: predictor.submasks,
            input_noise: self.input_noise_for(pass),
            unavailable: self.unavailable * ((progress - ALL_AT_HAND) / ALL_AT_HAND).clamp(0.0, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::NmPpg;
    use super::*;
    use crate::train::Method;

    #[test]
    fn a_step_of_the_middle_is_what_most_of_a_run_consists_of() {
        let problem = Problem::ungrouped(&[1.0; 3], 2).expect("valid");
        let middle = |config: &Config| {
            let stage = NmPpg::middle_stage(config, &problem);
            NmPpg::check_stage(config, &stage).expect("the plan has it");
            stage
        };
        let usual = middle(&Config::new(0.02));
        assert_eq!((usual.reinforce, usual.rollouts, usual.submasks), (1.0, 2, 0.8));
        let relaxed = middle(&Config::new([0.01, 0.1]).with(|c| c.gradient.reinforce_from = 1.0));
        assert_eq!((relaxed.reinforce, relaxed.rollouts), (0.0, 1));
        assert!(relaxed.tradeoffs.is_some());
    }
}
