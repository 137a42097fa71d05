//! A run as a list of work: what an epoch consists of, and what follows from how it went. It is carried out by
//! `carry_out.rs` (the CPU engine) or `slices.rs` (a device); here nothing is computed and nothing waits.

use super::batches::MOST_PASSES;
use super::method::{EpochPlan, Method, Outcome, Settings};
use super::stepper::Stepper;
use crate::data::Part;
use crate::engine::Instant;
use crate::engine::kernels::words::METRICS;
use crate::error::{Error, Result};
use crate::policy::history::{Epoch, Evaluation, Means, Pass};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A judgement that any epoch beats: there are kept weights, but what they were judged by no longer counts.
const ANYTHING: f64 = f64::MAX;

/// Points of the training curve in an epoch, at most.
const POINTS: usize = 16;

/// Where a run is: what its checkpoint holds besides the device's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Place<S> {
    /// Where the method's schedule is.
    pub state: S,
    pub best: Option<f64>,
    pub seconds: f64,
    /// Training steps done of the epoch that has begun.
    #[serde(default)]
    pub steps_done: usize,
    /// Training steps of an epoch, where they are not those of the settings any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_steps: Option<usize>,
    pub history: Vec<Epoch>,
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Work<S> {
    /// The averaged weights are the best so far: keep them.
    Keep,
    /// Go back to the best weights.
    Restore,
    /// Begin Adam's moments anew.
    Reset,
    /// Between two epochs: a good moment to copy the state.
    Snapshot,
    /// What changes from epoch to epoch.
    Set(S),
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

impl<S> Work<S> {
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
pub(super) struct EpochSums {
    pub training: [f64; METRICS],
    pub status: u32,
    pub validation: [[f64; METRICS]; MOST_PASSES],
}

/// The procedure: how far it is, and what is to be done until the next decision.
pub(super) struct Procedure<M: Method> {
    pub place: Place<M::State>,
    pub work: Vec<Work<M::Stage>>,
    pub at: Cursor,
    /// Items before the next epoch's first.
    pub first_of_epoch: usize,
    epoch_steps: usize,
    points: usize,
    started: Instant,
    /// The step in which a gradient was not finite.
    failed: Option<u32>,
}

impl<M: Method> Procedure<M> {
    pub fn new(stepper: &Stepper<M>) -> Self {
        let epoch_steps = stepper.config().epoch_steps(stepper.steps_per_epoch());
        let mut procedure = Self {
            place: Place {
                state: stepper.method.begin(stepper.config()),
                best: None,
                seconds: 0.0,
                steps_done: 0,
                epoch_steps: None,
                history: Vec::new(),
            },
            work: Vec::new(),
            at: Cursor::default(),
            first_of_epoch: 0,
            epoch_steps,
            points: POINTS.min(epoch_steps),
            started: Instant::now(),
            failed: None,
        };
        procedure.list(stepper, Vec::new());
        procedure
    }

    /// Continues from another place.
    pub fn resume(&mut self, stepper: &Stepper<M>, place: Place<M::State>) {
        self.place = place;
        self.started = Instant::now();
        self.failed = None;
        self.list(stepper, Vec::new());
    }

    /// Training steps of an epoch.
    pub fn epoch_steps(&self) -> usize {
        self.place.epoch_steps.unwrap_or(self.epoch_steps)
    }

    /// Makes the epochs from now on shorter or longer, unless one has begun.
    pub fn set_epoch_steps(&mut self, stepper: &Stepper<M>, steps: usize) {
        if self.has_begun() || self.place.steps_done > 0 {
            return;
        }
        self.place.epoch_steps = Some(steps.max(1));
        self.work.truncate(self.first_of_epoch);
        self.list_epoch(stepper);
    }

    /// Points of the training curve in an epoch.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Seconds since the run began.
    pub fn seconds(&self) -> f64 {
        self.place.seconds + self.started.elapsed().as_secs_f64()
    }

    /// Whether all of the list was carried out: what follows depends on the outcome.
    pub fn is_exhausted(&self) -> bool {
        self.at.item >= self.work.len()
    }

    /// Whether no epoch follows what is listed.
    pub fn ends_here(&self) -> bool {
        self.first_of_epoch == self.work.len()
    }

    /// Whether something of an epoch was done.
    fn has_begun(&self) -> bool {
        self.at.item > self.first_of_epoch
            || (self.at.item == self.first_of_epoch && (self.at.time, self.at.call) != (0, 0))
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
        last.unwrap_or(self.place.steps_done)
    }

    /// The place as a checkpoint of this moment needs it.
    pub fn stored(&self) -> Place<M::State> {
        let steps_done = if self.has_begun() { self.steps_done() } else { self.place.steps_done };
        Place { seconds: self.seconds(), steps_done, ..self.place.clone() }
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

    /// What the best epoch so far was judged by.
    pub fn best(&self) -> Option<f64> {
        self.place.best.filter(|&best| best < ANYTHING)
    }

    /// An error that ended the run.
    pub fn check(&self) -> Result<()> {
        self.failed.map_or(Ok(()), |step| Err(Error::NonFinite { step }))
    }

    /// The next epoch. `None` when the run is over.
    fn next(&self, stepper: &Stepper<M>) -> Option<EpochPlan<M::Stage>> {
        let pass = stepper.steps_per_epoch();
        stepper.method.next(stepper.config(), stepper.problem(), &self.place.state, pass)
    }

    /// Whether there is no further epoch.
    pub fn is_over(&self, stepper: &Stepper<M>) -> bool {
        self.next(stepper).is_none()
    }

    /// Makes the list: what is left from the last epoch, then the next one.
    fn list(&mut self, stepper: &Stepper<M>, between: Vec<Work<M::Stage>>) {
        self.first_of_epoch = between.len();
        self.work = between;
        self.at = Cursor::default();
        self.list_epoch(stepper);
    }

    fn list_epoch(&mut self, stepper: &Stepper<M>) {
        let Some(EpochPlan { stage, step, validate, .. }) = self.next(stepper) else { return };
        let steps = self.epoch_steps();
        let calls = step.calls();
        let epoch = self.place.history.len();
        self.work.push(Work::Set(stage));
        for point in 0..self.points {
            let end = steps * (point + 1) / self.points;
            let before = (steps * point / self.points).max(self.place.steps_done);
            if end > before {
                self.work.push(Work::Train { calls: calls.clone(), times: end - before, before });
                self.work.push(Work::Point(epoch * self.points + point));
            }
        }
        let times = validate.passes * stepper.chunks(Part::Validation);
        self.work.push(Work::Validate);
        self.work.push(Work::Evaluate { calls: validate.section.calls(), times });
        self.work.push(Work::Publish(epoch));
        self.work.push(Work::Fetch);
    }

    /// What follows from an epoch's outcome: notes it, and lists what is to be done next.
    ///
    /// # Errors
    /// A gradient was not a finite number. The best weights are kept.
    pub fn decide(&mut self, stepper: &mut Stepper<M>, sums: EpochSums) -> Result<Option<Epoch>> {
        let Some(EpochPlan { phase, stage, validate, .. }) = self.next(stepper) else { return Ok(None) };
        let train = match Means::from_sums(&M::METRICS, sums.training, sums.status) {
            Ok(train) => train,
            Err(error) => {
                self.failed = Some(sums.status);
                return Err(error);
            }
        };
        let evaluations: Vec<Evaluation> = sums
            .validation
            .into_iter()
            .zip(&validate.alphas)
            .map(|(sums, &alpha)| Evaluation::from_sums(sums, alpha))
            .collect();
        let validation = Evaluation::mean(&evaluations);
        let mut outcome =
            Outcome { phase, train: &train, validation: &validation, evaluations: &evaluations, best: false };
        let judged = stepper.method.judge(&self.place.state, &outcome);
        let judged = judged.filter(|judged| judged.is_finite());
        let best = judged.is_some_and(|judged| self.place.best.is_none_or(|best| judged < best));
        outcome.best = best;
        let (config, problem) = (stepper.config().clone(), stepper.problem().clone());
        let mut state = self.place.state.clone();
        let then = stepper.method.follow(&config, &problem, &mut state, &outcome)?;
        self.place.state = state;
        let several = evaluations.len() > 1;
        let epoch = Epoch {
            index: self.place.history.len(),
            phase,
            settings: M::noted(phase, &stage),
            validation,
            passes: if several { Pass::each(&validate.alphas, &evaluations) } else { Vec::new() },
            train,
            best,
            judged,
            seconds: self.seconds(),
        };
        self.place.history.push(epoch.clone());
        self.place.steps_done = 0;
        let mut between = Vec::new();
        if best {
            self.place.best = judged;
            between.push(Work::Keep);
        }
        stepper.state = self.place.state.clone();
        // A stage that begins anew begins from the best weights.
        if then.restore && self.place.best.is_some() {
            between.push(Work::Restore);
        }
        if then.judge_anew {
            self.place.best = self.place.best.map(|_| ANYTHING);
        }
        if then.reset {
            between.push(Work::Reset);
        }
        between.push(Work::Snapshot);
        self.list(stepper, between);
        Ok(Some(epoch))
    }
}
