//! The staged procedure as a list of work: what an epoch consists of, and what follows from how it
//! went. It is carried out by `immediate.rs` (the CPU engine) or `frames.rs` (a device, in slices);
//! here nothing is computed and nothing waits.

use super::config::Stage;
use super::measures::{Evaluation, Metrics};
use super::schedule::Position;
use super::stepper::{Stepper, Which};
use crate::engine::kernels::words::METRICS;
use crate::error::{Error, Result};
use crate::history::{Epoch, Phase};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Instant;

/// Points of the training curve in an epoch, at most.
const POINTS: usize = 16;

/// Where a run is: what its checkpoint holds besides the device's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    pub warm_up_done: usize,
    pub stage: usize,
    pub stage_epoch: usize,
    pub since_best: usize,
    pub best: Option<f64>,
    pub seconds: f64,
    pub horizon: usize,
    /// Training steps done of the epoch that has begun.
    #[serde(default)]
    pub steps_done: usize,
    pub history: Vec<Epoch>,
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Work {
    /// The averaged weights are the best so far: keep them.
    Keep,
    /// Go back to the best weights.
    Restore,
    /// Between two epochs: a good moment to copy the state.
    Snapshot,
    /// What changes from epoch to epoch.
    Set(Stage),
    /// Training steps: calls of the plan, so many times, and the steps of the epoch before them.
    Train { calls: Range<usize>, times: usize, before: usize },
    /// The next point of the training curve.
    Point(usize),
    /// Begin a pass over the validation rows.
    Validate,
    /// Calls of the plan, so many times, on the validation rows.
    Evaluate { calls: Range<usize>, times: usize },
    /// The epoch's place in the validation curve.
    Publish(usize),
    /// Read the epoch's sums; begin new ones.
    Fetch,
}

impl Work {
    /// The calls it runs, and how many times.
    pub fn run(&self) -> Option<(Range<usize>, usize)> {
        match self {
            Work::Train { calls, times, .. } | Work::Evaluate { calls, times } => {
                Some((calls.clone(), *times))
            }
            _ => None,
        }
    }
}

/// A place in the list: the item, and for one that runs calls how many times it was gone through and
/// which call is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub item: usize,
    pub time: usize,
    pub call: usize,
}

/// What the device has to say about an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fetched {
    pub training: [f64; METRICS],
    pub status: u32,
    pub validation: [f64; METRICS],
}

/// The procedure: how far it is, and what is to be done until the next decision.
#[derive(Debug)]
pub(super) struct Procedure {
    pub progress: Progress,
    pub work: Vec<Work>,
    pub at: Cursor,
    /// Items before the next epoch begins.
    pub between: usize,
    epoch_steps: usize,
    points: usize,
    started: Instant,
    /// The step in which a gradient was not finite.
    failed: Option<u32>,
}

impl Procedure {
    pub fn new(stepper: &Stepper) -> Self {
        let epoch_steps = stepper.config().whole_passes(stepper.steps_per_epoch());
        let mut procedure = Self {
            progress: Progress { horizon: stepper.horizon(), ..Progress::default() },
            work: Vec::new(),
            at: Cursor::default(),
            between: 0,
            epoch_steps,
            points: POINTS.min(epoch_steps),
            started: Instant::now(),
            failed: None,
        };
        procedure.list(stepper, Vec::new());
        procedure
    }

    /// Continues from another place.
    pub fn resume(&mut self, stepper: &Stepper, progress: Progress) {
        self.progress = progress;
        self.started = Instant::now();
        self.failed = None;
        self.list(stepper, Vec::new());
    }

    /// Training steps of an epoch.
    pub fn epoch_steps(&self) -> usize {
        self.epoch_steps
    }

    /// Points of the training curve in an epoch.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Seconds since the run began.
    pub fn seconds(&self) -> f64 {
        self.progress.seconds + self.started.elapsed().as_secs_f64()
    }

    /// Whether all of the list was carried out: what follows depends on the outcome.
    pub fn is_exhausted(&self) -> bool {
        self.at.item >= self.work.len()
    }

    /// Whether something of an epoch was done.
    fn has_begun(&self) -> bool {
        self.at.item > self.between
            || (self.at.item == self.between && (self.at.time, self.at.call) != (0, 0))
    }

    /// Training steps done of the current epoch, whole ones.
    pub fn steps_done(&self) -> usize {
        let begun = self.work.get(..=self.at.item).unwrap_or(&self.work);
        let last = begun.iter().enumerate().rev().find_map(|(item, work)| match work {
            Work::Train { times, before, .. } => {
                Some(before + if item == self.at.item { self.at.time } else { *times })
            }
            _ => None,
        });
        // A checkpoint may have been made in the middle.
        last.unwrap_or(self.progress.steps_done)
    }

    /// The progress as a checkpoint of this moment needs it.
    pub fn stored(&self) -> Progress {
        let steps_done = if self.has_begun() { self.steps_done() } else { self.progress.steps_done };
        Progress { seconds: self.seconds(), steps_done, ..self.progress.clone() }
    }

    /// Moves past the item at the cursor.
    pub fn next_item(&mut self) {
        self.at = Cursor { item: self.at.item + 1, ..Cursor::default() };
    }

    /// Begins the pass over the validation rows again if it is under way: somebody else may have used
    /// its buffers.
    pub fn begin_validation_again(&mut self) {
        let first = self.work.iter().position(|work| *work == Work::Validate);
        if let Some(first) = first.filter(|&first| first < self.at.item && !self.is_exhausted()) {
            self.at = Cursor { item: first, ..Cursor::default() };
        }
    }

    /// An error that ended the run.
    pub fn check(&self) -> Result<()> {
        self.failed.map_or(Ok(()), |step| Err(Error::NonFinite { step }))
    }

    /// The next epoch's phase and settings. `None` when the run is over.
    fn next(&self, stepper: &Stepper) -> Option<(Phase, Stage)> {
        let (config, p) = (stepper.config(), &self.progress);
        let pass = stepper.steps_per_epoch();
        if p.warm_up_done < config.warm_up_epochs {
            Some((Phase::WarmUp, config.warm_up_stage(p.warm_up_done, pass)))
        } else if p.stage < config.temperatures.len() {
            let at = Position { stage: p.stage, epoch: p.stage_epoch };
            Some((Phase::Stage(p.stage), config.stage(stepper.problem(), at, pass)))
        } else {
            None
        }
    }

    /// Whether there is no further epoch.
    pub fn is_over(&self, stepper: &Stepper) -> bool {
        self.next(stepper).is_none()
    }

    /// Makes the list: what is left from the last epoch, then the next one.
    fn list(&mut self, stepper: &Stepper, between: Vec<Work>) {
        self.between = between.len();
        self.work = between;
        self.at = Cursor::default();
        let Some((phase, stage)) = self.next(stepper) else { return };
        let sections = stepper.sections();
        let calls = match phase {
            Phase::WarmUp => sections.warm_up.calls(),
            Phase::Stage(_) => stepper.training_step(&stage).whole.calls(),
        };
        let epoch = self.progress.history.len();
        self.work.push(Work::Set(stage));
        for point in 0..self.points {
            let end = self.epoch_steps * (point + 1) / self.points;
            let before = (self.epoch_steps * point / self.points).max(self.progress.steps_done);
            if end > before {
                self.work.push(Work::Train { calls: calls.clone(), times: end - before, before });
                self.work.push(Work::Point(epoch * self.points + point));
            }
        }
        let times = stepper.chunks(Which::Validation);
        self.work.push(Work::Validate);
        self.work.push(Work::Evaluate { calls: sections.validate.calls(), times });
        self.work.push(Work::Publish(epoch));
        self.work.push(Work::Fetch);
    }

    /// What follows from an epoch's outcome: notes it, and lists what is to be done next.
    ///
    /// # Errors
    /// A gradient was not a finite number. The best weights are kept.
    pub fn decide(&mut self, stepper: &mut Stepper, fetched: Fetched) -> Result<Option<Epoch>> {
        let Some((phase, stage)) = self.next(stepper) else { return Ok(None) };
        let config = stepper.config().clone();
        let train = match Metrics::of_sums(fetched.training, fetched.status) {
            Ok(train) => train,
            Err(error) => {
                self.failed = Some(fetched.status);
                return Err(error);
            }
        };
        // The configuration's α: that of the current stage may still be on its way there.
        let validation = Evaluation::of_sums(fetched.validation, config.alpha);
        // A policy that has not been trained is not worth keeping, whatever it scores.
        let staged = matches!(phase, Phase::Stage(_));
        let best = staged && self.progress.best.is_none_or(|best| validation.objective < best);
        let epoch = Epoch {
            index: self.progress.history.len(),
            phase,
            tau_soft: if staged { stage.tau_soft } else { 0.0 },
            lambda: if staged { stage.lambda } else { 0.0 },
            train,
            validation,
            best,
            seconds: self.seconds(),
        };
        self.progress.history.push(epoch.clone());
        self.progress.steps_done = 0;
        let mut between = Vec::new();
        if best {
            self.progress.best = Some(validation.objective);
            between.push(Work::Keep);
        }
        if staged && config.tail > 0.0 {
            self.progress.horizon = stepper.next_horizon(train.still_asking, config.tail);
            stepper.set_horizon(self.progress.horizon)?;
        }
        let p = &mut self.progress;
        if staged {
            p.stage_epoch += 1;
            p.since_best = if best { 0 } else { p.since_best + 1 };
            // The next stage begins from the best weights.
            if p.stage_epoch == config.stage_epochs || p.since_best >= config.patience {
                p.stage += 1;
                (p.stage_epoch, p.since_best) = (0, 0);
                between.push(Work::Restore);
            }
        } else {
            p.warm_up_done += 1;
        }
        between.push(Work::Snapshot);
        self.list(stepper, between);
        Ok(Some(epoch))
    }
}
