//! How much of a run is behind: epochs are not alike, so that counting them says little of the time that is left.

use super::method::Method;
use super::trainer::Trainer;
use crate::data::Part;
use crate::engine::plan::Section;
use std::ops::Range;

impl<M: Method> Trainer<M> {
    /// Where the next epoch begins and ends, as shares of all that the run computes if no epoch is saved. An epoch of the
    /// warm-up counts for less than a later one, as its steps do.
    pub fn epoch_span(&self) -> Range<f64> {
        let stepper = &self.stepper;
        let (method, config, problem) = (&stepper.method, stepper.config(), stepper.problem());
        let calls = stepper.program().plan().calls();
        let flops =
            |step: Section| calls[step.calls()].iter().map(|call| call.flops as f64).sum::<f64>().max(1.0);
        let begun = method.begin(config);
        let Some(first) = method.next(config, problem, &begun, stepper.steps_per_epoch()) else {
            return 0.0..1.0;
        };
        let later = method.step(config, &begun, &M::middle_stage(config, problem));
        let validation = (first.validate.passes * stepper.chunks(Part::Validation)) as f64;
        let validation = validation * flops(first.validate.section);
        let epoch = |step| self.epoch_steps() as f64 * flops(step) + validation;
        let [warm_up, rest] = M::epochs_at_most(config);
        let until = |epochs: usize| {
            let warm = epochs.min(warm_up);
            let others = (epochs - warm).min(rest);
            warm as f64 * epoch(first.step) + others as f64 * epoch(later)
        };
        let (behind, whole) = (self.epochs_behind(), until(warm_up + rest).max(1.0));
        until(behind) / whole..until(behind + 1) / whole
    }
}
