//! Training by slices for a host that has no frames of its own, such as a worker of a web page: on a device they are
//! recorded and submitted, on the CPU engine they are done on return. Nothing here waits.

use super::method::Method;
use super::slices::{Recorded, SliceQueue};
use super::trainer::Trainer;
use crate::engine::{Budget, Instant};
use crate::error::Result;

/// Slices on their way at most: the device has the next one at hand when one is done, and a stop takes effect soon.
const AHEAD: usize = 2;

/// What is left of a budget on the CPU engine, in whole runs of some calls: it does not stop inside a training step.
pub(super) struct Left {
    /// `None`: no limit.
    budget: Option<Budget>,
    since: Instant,
    done: Recorded,
}

impl Left {
    /// Without a budget there is no limit.
    pub fn new(budget: Option<Budget>) -> Self {
        Self { budget, since: Instant::now(), done: Recorded::default() }
    }

    /// How many of some runs may follow now, each of so many calls and operations. Anything above zero lets one in.
    fn runs(&self, wanted: usize, calls: usize, flops: u64) -> usize {
        let Some(budget) = self.budget else { return wanted };
        let is_first = usize::from(self.done.dispatches == 0);
        let fit = match budget {
            Budget::Dispatches(0) | Budget::Calls(0) | Budget::Flops(0) => 0,
            Budget::Dispatches(most) | Budget::Calls(most) => {
                (most.saturating_sub(self.done.dispatches) / calls.max(1)).max(is_first)
            }
            Budget::Flops(most) => {
                ((most.saturating_sub(self.done.flops) / flops.max(1)) as usize).max(is_first)
            }
            // One at a time, as nobody knows how long the next one takes. Not a number is nothing.
            Budget::Millis(most) => {
                let is_time = is_first == 1 || self.since.elapsed().as_secs_f64() * 1e3 < most;
                usize::from(most > 0.0 && is_time)
            }
        };
        fit.min(wanted)
    }

    fn took(&mut self, runs: usize, calls: usize, flops: u64) {
        self.done.dispatches += runs * calls;
        self.done.flops += runs as u64 * flops;
    }
}

impl<M: Method> Trainer<M> {
    /// Does a slice of the training by itself, for a host without frames of its own: on a device it is recorded and
    /// submitted, on the CPU engine it is done on return, in whole training steps. Never waits: while two slices are on
    /// their way to a device, or an outcome has to come back first, nothing is done, as the result says.
    ///
    /// [`Trainer::try_progress`] tells how far it is, and has to be called: on the CPU engine nothing is done before an epoch that
    /// has ended was told there; [`Trainer::last_checkpoint`] has the state of the last epoch's
    /// end, [`Trainer::try_model`] the result, and [`Engine::submitted`](crate::Engine::submitted) is a future that is
    /// there when the device is done.
    ///
    /// # Errors
    /// The device was lost, or a gradient was not a finite number.
    pub fn advance(&mut self, budget: Budget) -> Result<Recorded> {
        self.procedure.check()?;
        self.collect()?;
        if self.slices.is_some() {
            let pending = self.slices.as_ref().map_or(0, SliceQueue::pending);
            return if pending < AHEAD { self.submit(budget, usize::MAX) } else { Ok(Recorded::default()) };
        }
        let before = self.history().len();
        let done = self.drive_here(&mut Left::new(Some(budget)))?;
        if self.history().len() > before {
            self.checkpoint_blocking()?;
        }
        Ok(done)
    }

    /// Carries the procedure out on the CPU engine, as far as the budget reaches and at most to the end of an epoch.
    pub(super) fn drive_here(&mut self, left: &mut Left) -> Result<Recorded> {
        while let Some(work) = self.procedure.work.get(self.procedure.at.item).cloned() {
            if !self.news.is_empty() && self.procedure.at.item >= self.procedure.first_of_epoch {
                break;
            }
            let Some((calls, times)) = work.run() else {
                let fetched = self.stepper.carry_out(&work)?;
                self.procedure.next_item();
                if let Some(fetched) = fetched {
                    self.news.extend(self.procedure.decide(&mut self.stepper, fetched)?);
                }
                continue;
            };
            let flops =
                self.stepper.program.plan().calls()[calls.clone()].iter().map(|call| call.flops).sum();
            let runs = left.runs(times - self.procedure.at.time, calls.len(), flops);
            if runs == 0 {
                break;
            }
            left.took(runs, calls.len(), flops);
            self.stepper.program.run(calls, runs);
            self.procedure.at.time += runs;
            if self.procedure.at.time >= times {
                self.procedure.next_item();
            }
        }
        Ok(left.done)
    }

    /// What the greedy policy asked on the validation rows of the last epoch, as
    /// [`Buffers::paths`](super::Buffers::paths) has it on a device: counts `[step][feature]`, the last column being the
    /// instances that have stopped by then. `None` on a device, and before the first epoch's end; to be looked at when an
    /// epoch has ended, as the next validation begins to count anew.
    pub fn paths(&self) -> Option<Vec<u32>> {
        if self.slices.is_some() || self.history().is_empty() {
            return None;
        }
        let asked = self.stepper.batches.chunk.asked;
        let len = self.stepper.program.plan().buffer(asked).len;
        let mut counts = vec![0; len];
        // Each lane has counted its own rows.
        for lane in self.stepper.program.read_words_blocking(asked).ok()?.chunks_exact(len) {
            counts.iter_mut().zip(lane).for_each(|(sum, count)| *sum += count);
        }
        Some(counts)
    }
}
