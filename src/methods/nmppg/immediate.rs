//! Carries the procedure out where that is done on return: on the CPU engine.

use super::procedure::{Fetched, Work};
use super::stepper::Stepper;
use crate::engine::kernels::words::{METRICS, clock};
use crate::error::Result;

impl Stepper {
    /// Does a piece of work; `Work::Fetch` brings what it read.
    pub(super) fn carry_out(&mut self, work: &Work) -> Result<Option<Fetched>> {
        let layout = self.layout().clone();
        let nets = [layout.policy, layout.predictor];
        match work {
            Work::Keep => nets.iter().for_each(|net| self.program_mut().copy(net.average, net.best)),
            Work::Restore => self.load_best(),
            Work::Set(stage) => self.set_stage(*stage)?,
            Work::Train { calls, times, .. } | Work::Evaluate { calls, times } => {
                self.program_mut().run(calls.clone(), *times);
            }
            Work::Validate => {
                let asked = layout.sizes.lanes * self.program().plan().buffer(layout.chunk.asked).len;
                let program = self.program_mut();
                program.write(layout.chunk.metrics, 0, &vec![0.0; layout.sizes.lanes * METRICS]);
                program.write_words(layout.chunk.asked, 0, &vec![0; asked]);
                program.write_words(layout.clock, clock::CHUNK, &[0]);
            }
            Work::Fetch => {
                return Ok(Some(Fetched {
                    training: self.take_metrics_blocking(layout.metrics)?,
                    status: self.program().read_words_blocking(layout.status)?[0],
                    validation: self.take_metrics_blocking(layout.chunk.metrics)?,
                }));
            }
            // Memory is not lost, and nothing is drawn from it.
            Work::Snapshot | Work::Point(_) | Work::Publish(_) => {}
        }
        Ok(None)
    }

    /// Loads the best weights.
    pub(super) fn load_best(&mut self) {
        for net in [self.layout().policy, self.layout().predictor] {
            self.program_mut().copy(net.best, net.values);
            self.program_mut().copy(net.best, net.average);
        }
    }
}
