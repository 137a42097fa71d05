//! Carries the procedure out where that is done on return: on the CPU engine.

use super::batches::MOST_PASSES;
use super::method::Method;
use super::procedure::{EpochSums, Work};
use super::stepper::Stepper;
use crate::engine::kernels::words::{METRICS, clock};
use crate::error::Result;

impl<M: Method> Stepper<M> {
    /// Does a piece of work that runs no calls; `Work::Fetch` brings what it read.
    pub(super) fn carry_out(&mut self, work: &Work<M::Stage>) -> Result<Option<EpochSums>> {
        let batches = self.batches.clone();
        let weights = self.method.weights();
        match work {
            Work::Keep => weights.iter().for_each(|w| self.program.copy(w.average, w.best)),
            Work::Restore => self.load_best(),
            Work::Reset => {
                for w in &weights {
                    self.program.write(w.mean, 0, &vec![0.0; w.len]);
                    self.program.write(w.variance, 0, &vec![0.0; w.len]);
                }
                self.program.write(batches.powers, 0, &vec![1.0; 2 * weights.len()]);
            }
            Work::Set(stage) => self.set_stage(stage.clone())?,
            Work::Validate => {
                let lanes = batches.sizes.lanes;
                let asked = lanes * self.program.plan().buffer(batches.chunk.asked).len;
                self.program.write(batches.chunk.metrics, 0, &vec![0.0; lanes * MOST_PASSES * METRICS]);
                self.program.write_words(batches.chunk.asked, 0, &vec![0; asked]);
                self.program.write_words(batches.clock, clock::CHUNK, &[0]);
            }
            Work::Fetch => {
                return Ok(Some(EpochSums {
                    training: self.take_metrics_blocking::<1>(batches.metrics)?[0],
                    status: self.program.read_words_blocking(batches.status)?[0],
                    validation: self.take_metrics_blocking(batches.chunk.metrics)?,
                }));
            }
            // Calls are run by `Trainer::drive_here`, which knows how many may follow.
            Work::Train { .. } | Work::Evaluate { .. } => {}
            // Memory is not lost, and nothing is drawn from it.
            Work::Snapshot | Work::Point(_) | Work::Publish(_) => {}
        }
        Ok(None)
    }

    /// Loads the best weights.
    pub(super) fn load_best(&mut self) {
        for w in self.method.weights() {
            self.program.copy(w.best, w.values);
            self.program.copy(w.best, w.average);
        }
    }
}
