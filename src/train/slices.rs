//! Carries the procedure out on a device, in slices of command encoders: a host's, or our own.
//!
//! Nothing here waits, and nothing but the encoder changes the device's state: a slice takes effect when
//! and if its encoder is submitted, in the order of recording. Until a slice is known to have run, where
//! the procedure stood before it is remembered; a slice that was never submitted is recorded again.

use super::checkpoint::Checkpoint;
use super::curves::{Buffers, Curves};
use super::encode::{ReadBack, encode_fetch, encode_work, gpu_program};
use super::method::Method;
use super::procedure::{Cursor, Procedure, Work};
use super::snapshot::Snapshots;
use super::stepper::Stepper;
use crate::engine::gpu::{Arrival, Fate, GpuProgram, RETURN, Recording, Slice, Slices};
use crate::engine::{Allowance, Budget, Pace};
use crate::error::{Error, Result};
use crate::policy::history::Epoch;
use std::collections::VecDeque;
use std::ops::Range;

/// Slices on their way at most: a host that never submits does not make us record for ever.
const MOST_SLICES: usize = 256;

/// What [`Trainer::encode`](super::Trainer::encode) has put into the encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Kernel dispatches.
    pub dispatches: usize,
    /// About how many floating-point operations they are.
    pub flops: u64,
    /// Bytes that will come back to the host, at most 4096; 0 if nothing was recorded at all.
    pub readback: usize,
}

/// What [`Trainer::try_progress`](super::Trainer::try_progress) has seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// An epoch that has ended since; the next call has the next one, if there is one.
    pub epoch: Option<Epoch>,
    /// The run is over, and its model is on the host
    /// ([`Trainer::try_model`](super::Trainer::try_model)).
    pub finished: bool,
    /// Training steps recorded of the current epoch, of `steps`.
    pub step: usize,
    /// Training steps of an epoch.
    pub steps: usize,
    /// Slices that are recorded and not yet known to have run.
    pub pending: usize,
    /// Checkpoints that this trainer has had so far: when there is one more, `last_checkpoint` is another one.
    pub checkpoints: usize,
}

/// A slice and what there is to know about it.
#[derive(Debug)]
struct InFlight {
    slice: Slice,
    /// Where the procedure and the snapshot stood before it.
    before: (Cursor, Option<u64>),
    calls: Vec<Range<usize>>,
    fetches: bool,
    snapshot: Option<Range<u64>>,
    /// It has no work, in order to see how long a frame takes then.
    is_baseline: bool,
    /// Its latency or its times are to be learned from.
    is_measured: bool,
}

/// What came out of looking at the slices.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub epochs: Vec<Epoch>,
    pub checkpoint: Option<Checkpoint>,
}

/// The device's side of a trainer.
#[derive(Debug)]
pub(super) struct SliceQueue {
    slices: Slices,
    in_flight: VecDeque<InFlight>,
    pace: Pace,
    snapshots: Snapshots,
    curves: Curves,
}

impl SliceQueue {
    pub fn new<M: Method>(
        program: &GpuProgram,
        stepper: &Stepper<M>,
        procedure: &Procedure<M>,
        epochs: usize,
    ) -> Result<Self> {
        Ok(Self {
            slices: Slices::new(program.gpu().clone())?,
            in_flight: VecDeque::new(),
            pace: Pace::new(program.plan()),
            snapshots: Snapshots::new(program, stepper)?,
            curves: Curves::new(program, stepper, procedure.points(), epochs)?,
        })
    }

    /// Forgets everything recorded: the state was replaced by another.
    pub fn restart<M: Method>(&mut self, program: &GpuProgram, history: &[Epoch]) {
        self.in_flight.clear();
        self.snapshots.back_to(None);
        self.slices.restart();
        self.curves.refill(program.gpu().queue(), history, &M::METRICS);
    }

    pub fn view<'a, M: Method>(&'a self, program: &'a GpuProgram, stepper: &Stepper<M>) -> Buffers<'a> {
        self.curves.view(program, stepper)
    }

    /// Slices not yet known to have run.
    pub fn pending(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether the state is still being brought to the host.
    pub fn is_bringing(&self) -> bool {
        !self.snapshots.is_free()
    }

    /// Looks at what has arrived and draws the conclusions.
    ///
    /// # Errors
    /// The device was lost, slices did not run in the order of their recording, or a gradient was not
    /// finite.
    pub fn collect<M: Method>(
        &mut self,
        procedure: &mut Procedure<M>,
        stepper: &mut Stepper<M>,
    ) -> Result<Collected> {
        if self.slices.is_lost() {
            return Err(lost());
        }
        let mut collected = Collected::default();
        while let Some(front) = self.in_flight.front() {
            match self.slices.fate(&front.slice)? {
                Fate::Pending | Fate::Lost => break,
                Fate::DeviceLost => return Err(lost()),
                Fate::OutOfOrder => return Err(out_of_order()),
                Fate::Ran(arrival) => {
                    let Some(done) = self.in_flight.pop_front() else { break };
                    self.digest(done, &arrival, procedure, stepper, &mut collected)?;
                }
            }
        }
        if let Some(first) = self.first_lost()? {
            self.forget_lost(first, procedure)?;
        }
        Ok(collected)
    }

    fn digest<M: Method>(
        &mut self,
        done: InFlight,
        arrival: &Arrival,
        procedure: &mut Procedure<M>,
        stepper: &mut Stepper<M>,
        collected: &mut Collected,
    ) -> Result<()> {
        let InFlight { slice, calls, fetches, snapshot, is_baseline, is_measured, .. } = done;
        self.slices.recycle(slice);
        let plan = stepper.program().plan();
        match arrival.nanos {
            Some(nanos) if is_measured => self.pace.learn(plan, &calls, nanos),
            None if is_baseline => self.pace.learn_idle(arrival.latency),
            None if is_measured => self.pace.learn_latency(plan, &calls, arrival.latency),
            _ => {}
        }
        if let Some(part) = snapshot {
            let bytes = &arrival.bytes[ReadBack::SNAPSHOT as usize..][..(part.end - part.start) as usize];
            collected.checkpoint = self.snapshots.arrived(&part, bytes).or(collected.checkpoint.take());
        }
        if fetches {
            collected.epochs.extend(procedure.decide(stepper, ReadBack::sums(&arrival.bytes))?);
        }
        Ok(())
    }

    /// The first slice that never ran and never will.
    fn first_lost(&self) -> Result<Option<usize>> {
        for (index, entry) in self.in_flight.iter().enumerate() {
            if matches!(self.slices.fate(&entry.slice)?, Fate::Lost) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Goes back to where the procedure stood before a slice that never ran, if none of the later ones did
    /// or will.
    fn forget_lost<M: Method>(&mut self, first: usize, procedure: &mut Procedure<M>) -> Result<()> {
        for later in self.in_flight.iter().skip(first + 1) {
            match self.slices.fate(&later.slice)? {
                Fate::Pending => return Ok(()),
                Fate::Lost => {}
                Fate::DeviceLost => return Err(lost()),
                Fate::Ran(_) | Fate::OutOfOrder => return Err(out_of_order()),
            }
        }
        if let Some(entry) = self.in_flight.get(first) {
            self.slices.back_to(&entry.slice);
            let (cursor, sent) = entry.before;
            procedure.at = cursor;
            self.snapshots.back_to(sent);
        }
        self.in_flight.truncate(first);
        Ok(())
    }

    /// Records a slice of the work before an item of the procedure's list. Where the procedure has to wait
    /// for an outcome there may be nothing to record.
    ///
    /// # Errors
    /// There is no memory for the little that a slice needs.
    pub fn record<M: Method>(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        budget: Budget,
        end: usize,
        procedure: &mut Procedure<M>,
        stepper: &mut Stepper<M>,
    ) -> Result<Recorded> {
        // As long as the fate of slices behind a lost one is not known, nothing can follow.
        if self.in_flight.len() >= MOST_SLICES || self.first_lost()?.is_some() {
            return Ok(Recorded::default());
        }
        let by_time = matches!(budget, Budget::Millis(_));
        let by_latency = by_time && !self.slices.has_timer();
        let idle = by_latency && self.pace.wants_idle();
        let budget = if idle { Budget::Dispatches(0) } else { budget };
        let allowance = Allowance::new(budget);
        let end = end.min(procedure.work.len());
        let nothing_to_run = procedure.at.item >= end || allowance.is_spent();
        if nothing_to_run && !idle && !self.snapshots.is_under_way() {
            return Ok(Recorded::default());
        }
        let before = (procedure.at, self.snapshots.sent());
        let mut recording = self.slices.begin(encoder, by_time)?;
        let calls = if nothing_to_run {
            Vec::new()
        } else {
            self.record_work(encoder, &mut recording, allowance, end, procedure, stepper)?
        };
        // The list ends with the reading of the outcome.
        let fetches =
            !nothing_to_run && procedure.is_exhausted() && procedure.work.last() == Some(&Work::Fetch);
        let snapshot = self.snapshots.encode_next(encoder, &recording, ReadBack::SNAPSHOT..RETURN);
        let slice = self.slices.end(recording, encoder);
        let plan = stepper.program().plan();
        let recorded = Recorded {
            dispatches: calls.iter().map(|range| plan.dispatches(range.clone())).sum(),
            flops: calls.iter().flat_map(|range| &plan.calls()[range.clone()]).map(|call| call.flops).sum(),
            readback: RETURN as usize,
        };
        let is_baseline = idle && self.pace.is_baseline();
        let is_measured = by_time && !calls.is_empty();
        self.in_flight.push_back(InFlight {
            slice,
            before,
            calls,
            fetches,
            snapshot,
            is_baseline,
            is_measured,
        });
        Ok(recorded)
    }

    /// Records the procedure's work until the budget is spent or an outcome has to be awaited.
    fn record_work<M: Method>(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        recording: &mut Recording,
        mut allowance: Allowance,
        end: usize,
        procedure: &mut Procedure<M>,
        stepper: &mut Stepper<M>,
    ) -> Result<Vec<Range<usize>>> {
        let Self { slices, pace, snapshots, curves, .. } = self;
        let mut all: Vec<Range<usize>> = Vec::new();
        // Those up to here are recorded.
        let mut flushed = 0;
        while let Some(work) = procedure.work[..end].get(procedure.at.item).cloned() {
            if let Some((calls, times)) = work.run() {
                if allowance.is_spent() {
                    break;
                }
                let start = calls.start + procedure.at.call;
                let end = allowance.take(start..calls.end, stepper.program().plan(), pace);
                if end > start {
                    all.push(start..end);
                }
                procedure.at.call = end - calls.start;
                if end == calls.end {
                    (procedure.at.call, procedure.at.time) = (0, procedure.at.time + 1);
                    if procedure.at.time >= times {
                        procedure.next_item();
                    }
                }
                continue;
            }
            let program = gpu_program(stepper)?;
            if flushed < all.len() {
                slices.pass(recording, encoder, program, &all[flushed..]);
                flushed = all.len();
            }
            match &work {
                Work::Snapshot if snapshots.is_free() => {
                    snapshots.encode(encoder, program, stepper, &procedure.stored())?;
                }
                // Of the states between epochs one may be left out, but not the last: it is the run's result. It waits
                // until the one before has arrived.
                Work::Snapshot if procedure.ends_here() => break,
                Work::Point(point) => {
                    let metrics = program.buffer(stepper.batches.metrics);
                    curves.encode_point(encoder, metrics, *point);
                }
                Work::Publish(epoch) => {
                    let chunk = &stepper.batches.chunk;
                    curves.encode_epoch(encoder, program, [chunk.metrics, chunk.asked], *epoch);
                }
                Work::Fetch => {
                    encode_fetch(encoder, recording, program, stepper);
                }
                work => encode_work(stepper, encoder, work)?,
            }
            procedure.next_item();
        }
        if flushed < all.len() {
            slices.pass(recording, encoder, gpu_program(stepper)?, &all[flushed..]);
        }
        Ok(all)
    }
}

fn lost() -> Error {
    Error::DeviceLost(
        "work that was recorded on it cannot be finished; `Trainer::resume_on` continues on another device"
            .into(),
    )
}

fn out_of_order() -> Error {
    Error::Recorded(
        "slices were submitted in another order than they were recorded, or one was left out before \
         others; the device's state is of no use any more: `resume_on` continues from the last checkpoint"
            .into(),
    )
}
