//! A training run for its user: by the epoch, waiting, or by the frame of somebody else's application.

use super::advance::Left;
use super::checkpoint::Checkpoint;
use super::curves::Buffers;
use super::encode::gpu_program;
use super::limits::Shape;
use super::method::Method;
use super::procedure::{Place, Procedure, Work};
use super::slices::{Collected, Progress, Recorded, SliceQueue};
use super::stepper::Stepper;
use crate::data::Dataset;
use crate::engine::plan::BufferId;
use crate::engine::{Budget, Engine};
use crate::error::{Error, Result};
use crate::policy::Model;
use crate::policy::history::Epoch;
use std::collections::VecDeque;

/// Calls of a submission of our own: enough to hide its cost, too few for a watchdog.
const OWN_SLICE: Budget = Budget::Calls(512);
/// Between two looks at how far it is, on the CPU engine.
const GLANCE: Budget = Budget::Millis(50.0);

/// A method's training run.
///
/// Call [`Trainer::epoch_blocking`] until it is over, then [`Trainer::finish_blocking`]. Or, inside
/// another application, [`Trainer::encode`] in each frame and [`Trainer::try_progress`] now and then;
/// [`Trainer::try_model`] has the result. Both ways end in the same bits, and one may change over to the
/// other at any time.
pub struct Trainer<M: Method> {
    pub(super) stepper: Stepper<M>,
    /// Kept for another device, should this one be lost; shares the rows with whoever made it.
    pub(super) data: Dataset,
    pub(super) procedure: Procedure<M>,
    /// On a device, how work gets there.
    pub(super) slices: Option<SliceQueue>,
    /// Epochs that have ended and that nobody was told about.
    pub(super) news: VecDeque<Epoch>,
    pub(super) checkpoint: Option<Checkpoint>,
    /// How many there were.
    pub(super) checkpoints: usize,
}

impl<M: Method> Trainer<M> {
    /// Puts the data and freshly initialised networks on an engine.
    ///
    /// # Errors
    /// Settings that do not fit the problem, no validation rows, or more memory than the engine has.
    pub fn new(engine: &Engine, data: &Dataset, config: M::Config) -> Result<Self> {
        if data.sizes()[1] == 0 {
            return Err(Error::Data(
                "there are no validation rows to decide by when to stop training".into(),
            ));
        }
        let mut stepper = Stepper::new(engine, data, config)?;
        stepper.write_initial(data, true);
        let procedure = Procedure::new(&stepper);
        let mut trainer = Self {
            stepper,
            data: data.clone(),
            procedure,
            slices: None,
            news: VecDeque::new(),
            checkpoint: None,
            checkpoints: 0,
        };
        if let Some(program) = trainer.stepper.program().gpu() {
            let epochs = trainer.epochs_at_most();
            trainer.slices = Some(SliceQueue::new(program, &trainer.stepper, &trainer.procedure, epochs)?);
        }
        Ok(trainer)
    }

    /// The limits a device must be requested with so that a table and configuration fit: see
    /// [`Stepper::required_limits`].
    ///
    /// # Errors
    /// Settings that do not fit the problem, or a memory budget too small for one instance.
    pub fn required_limits<'a>(shape: impl Into<Shape<'a>>, config: &M::Config) -> Result<wgpu::Limits> {
        Stepper::<M>::required_limits(shape, config)
    }

    /// The settings.
    pub fn config(&self) -> &M::Config {
        self.stepper.config()
    }

    /// The engine's side of the run.
    pub fn stepper(&self) -> &Stepper<M> {
        &self.stepper
    }

    /// The same, to evaluate with. What was recorded must have been submitted; a validation that is under
    /// way begins again.
    pub fn stepper_mut(&mut self) -> &mut Stepper<M> {
        self.procedure.begin_validation_again();
        &mut self.stepper
    }

    /// The epochs so far.
    pub fn history(&self) -> &[Epoch] {
        &self.procedure.place.history
    }

    /// Where the method's schedule is.
    pub(crate) fn state(&self) -> &M::State {
        &self.procedure.place.state
    }

    /// Goes on with a run whose schedule had come to an end: from another place of it, with other words in buffers of
    /// the method's state. For a method whose host has something to do between two epochs; what was recorded before has
    /// run, as [`Trainer::finish_blocking`] or a [`Trainer::try_model`] with a model tells.
    pub(crate) fn go_on(&mut self, state: M::State, words: &[(BufferId, Vec<u32>)]) {
        for (id, words) in words {
            self.stepper.program.write_words(*id, 0, words);
        }
        self.stepper.state = state.clone();
        let place = Place { state, ..self.procedure.stored() };
        self.procedure.resume(&self.stepper, place);
        if let (Some(slices), Some(program)) = (&mut self.slices, self.stepper.program().gpu()) {
            slices.restart::<M>(program, &self.procedure.place.history);
        }
    }

    /// Training steps of an epoch.
    pub fn epoch_steps(&self) -> usize {
        self.procedure.epoch_steps()
    }

    /// Makes the epochs from now on shorter or longer than the settings say, for a run that must be over at some time;
    /// an epoch that has begun stays as it is. Everything that goes by epochs, such as the temperatures, is gone through
    /// as before. A checkpoint remembers it.
    pub fn set_epoch_steps(&mut self, steps: usize) {
        self.procedure.set_epoch_steps(&self.stepper, steps);
    }

    /// Epochs of the whole run at most: early stopping may make them fewer.
    pub fn epochs_at_most(&self) -> usize {
        M::epochs_at_most(self.stepper.config()).iter().sum()
    }

    /// Epochs that are behind, those that early stopping skipped included.
    pub fn epochs_behind(&self) -> usize {
        M::epochs_behind(self.stepper.config(), &self.procedure.place.state)
    }

    /// What the best epoch so far was judged by: for NM-PPG the validation objective, or with a range of α the mean of
    /// the objectives, each relative to doing without a policy; `None` before there is one, and when what was judged has
    /// just changed.
    pub fn best(&self) -> Option<f64> {
        self.procedure.best()
    }

    /// Trains to the end of an epoch and evaluates it. `None` when the run is over.
    ///
    /// # Errors
    /// A gradient was not a finite number: [`Trainer::finish_blocking`] still gives the best weights. Or
    /// the device was lost: [`Trainer::resume_on`] continues on another one. Or the host has recorded work
    /// that it did not submit.
    pub fn epoch_blocking(&mut self) -> Result<Option<Epoch>> {
        self.end_epoch(None)
    }

    /// The same, and tells several times a second how many training steps of the epoch are done, for who shows it to somebody.
    ///
    /// # Errors
    /// As [`Trainer::epoch_blocking`].
    pub fn epoch_watched_blocking(&mut self, watch: &mut dyn FnMut(usize)) -> Result<Option<Epoch>> {
        self.end_epoch(Some(watch))
    }

    fn end_epoch(&mut self, watch: Option<&mut dyn FnMut(usize)>) -> Result<Option<Epoch>> {
        self.procedure.check()?;
        self.collect()?;
        if self.news.is_empty() {
            self.drive_blocking(watch)?;
        }
        Ok(self.news.pop_front())
    }

    /// Carries the procedure out to the end of the epoch, if there is one.
    fn drive_blocking(&mut self, mut watch: Option<&mut dyn FnMut(usize)>) -> Result<()> {
        if self.slices.is_none() {
            let budget = watch.as_ref().map(|_| GLANCE);
            // Once more after the news of an epoch: what follows from it is part of it.
            while self.drive_here(&mut Left::new(budget))?.dispatches > 0 {
                self.tell(&mut watch);
            }
            return Ok(());
        }
        // What the host has recorded comes first.
        self.settle_blocking()?;
        while self.news.is_empty() && !self.procedure.is_over(&self.stepper) {
            if self.submit(OWN_SLICE, usize::MAX)?.dispatches == 0 {
                self.settle_blocking()?;
            }
            self.collect()?;
            self.tell(&mut watch);
        }
        self.submit(OWN_SLICE, self.procedure.first_of_epoch)?;
        Ok(())
    }

    /// Says how far the epoch is, as long as it goes on.
    fn tell(&self, watch: &mut Option<&mut dyn FnMut(usize)>) {
        if let Some(watch) = watch.as_mut().filter(|_| self.news.is_empty()) {
            watch(self.procedure.steps_done());
        }
    }

    /// Records and submits a slice of our own, of the work before an item of the list.
    pub(super) fn submit(&mut self, budget: Budget, end: usize) -> Result<Recorded> {
        let mut encoder = gpu_program(&self.stepper)?.encoder();
        let recorded = self.record(&mut encoder, budget, end)?;
        gpu_program(&self.stepper)?.gpu().queue().submit([encoder.finish()]);
        Ok(recorded)
    }

    /// Waits until everything recorded has run, and draws the conclusions.
    fn settle_blocking(&mut self) -> Result<()> {
        if self.slices.as_ref().is_none_or(|slices| slices.pending() == 0) {
            return Ok(());
        }
        if let Some(program) = self.stepper.program().gpu() {
            program.gpu().wait_blocking()?;
        }
        self.collect()?;
        match self.slices.as_ref().map_or(0, SliceQueue::pending) {
            0 => Ok(()),
            n => Err(Error::Recorded(format!(
                "{n} slices were recorded, but their encoders were not submitted: submit them first, in the \
                 order of recording"
            ))),
        }
    }

    /// Records the next slice of the training into a host's encoder, which may end inside a training
    /// step. It runs when the host submits the encoder; slices must be submitted in the order of recording.
    /// A slice that is never submitted is recorded again by a later call.
    ///
    /// Never waits. Now and then, between two epochs, there is nothing to record until the host's next
    /// polls have brought the outcome of what it has submitted.
    ///
    /// # Errors
    /// The engine is not on a device, the device was lost, slices were submitted in another order, or a
    /// gradient was not a finite number.
    pub fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, budget: Budget) -> Result<Recorded> {
        gpu_program(&self.stepper)?;
        self.procedure.check()?;
        self.collect()?;
        self.record(encoder, budget, usize::MAX)
    }

    fn record(&mut self, encoder: &mut wgpu::CommandEncoder, budget: Budget, end: usize) -> Result<Recorded> {
        match &mut self.slices {
            Some(slices) => slices.record(encoder, budget, end, &mut self.procedure, &mut self.stepper),
            None => Ok(Recorded::default()),
        }
    }

    pub(super) fn collect(&mut self) -> Result<()> {
        let Some(slices) = &mut self.slices else { return Ok(()) };
        let Collected { epochs, checkpoint } = slices.collect(&mut self.procedure, &mut self.stepper)?;
        self.news.extend(epochs);
        self.checkpoints += usize::from(checkpoint.is_some());
        self.checkpoint = checkpoint.or(self.checkpoint.take());
        Ok(())
    }

    /// Looks how far the submitted slices are. Never waits and never polls the device: what has arrived
    /// is what the host's own polls and submissions have brought.
    ///
    /// # Errors
    /// The device was lost, slices were submitted in another order than recorded, or a gradient was not a
    /// finite number.
    pub fn try_progress(&mut self) -> Result<Progress> {
        self.procedure.check()?;
        self.collect()?;
        Ok(Progress {
            epoch: self.news.pop_front(),
            finished: self.is_finished() && self.news.is_empty(),
            step: self.procedure.steps_done(),
            steps: self.procedure.epoch_steps(),
            pending: self.slices.as_ref().map_or(0, SliceQueue::pending),
            checkpoints: self.checkpoints,
        })
    }

    /// Whether the run is over and, on a device, its result has come to the host.
    fn is_finished(&self) -> bool {
        let is_here = |slices: &SliceQueue| slices.pending() == 0 && !slices.is_bringing();
        self.procedure.is_over(&self.stepper)
            && self.procedure.is_exhausted()
            && self.slices.as_ref().is_none_or(is_here)
    }

    /// The model, when the run is over and its weights have come to the host; `None` before. Never waits.
    ///
    /// # Errors
    /// The device was lost, or the weights are not finite numbers.
    pub fn try_model(&mut self) -> Result<Option<Model>> {
        if self.slices.is_none() {
            let over = self.procedure.is_over(&self.stepper);
            return if over { self.finish_blocking().map(Some) } else { Ok(None) };
        }
        // What is on the host needs no device any more.
        if !self.is_finished() {
            self.collect()?;
        }
        let Some(checkpoint) = self.checkpoint.as_ref().filter(|_| self.is_finished()) else {
            return Ok(None);
        };
        let weights = self.stepper.method.weights();
        let values: Option<Vec<Vec<f64>>> = weights
            .iter()
            .map(|w| {
                checkpoint.reals.get(&w.best_name()).map(|values| values.iter().map(|&v| v.into()).collect())
            })
            .collect();
        values.map(|values| self.model(values)).transpose()
    }

    /// Buffers that a host on the same device may draw from. `None` on the CPU engine.
    pub fn buffers(&self) -> Option<Buffers<'_>> {
        let program = self.stepper.program().gpu()?;
        Some(self.slices.as_ref()?.view(program, &self.stepper))
    }

    fn model(&self, values: Vec<Vec<f64>>) -> Result<Model> {
        let (config, problem) = (self.stepper.config(), self.stepper.problem());
        let history = self.procedure.place.history.clone();
        let state = &self.procedure.place.state;
        self.stepper.method.model(config, state, problem, self.data.normalization(), values, history)
    }

    /// Loads the best weights back onto the engine and gives them as a model.
    ///
    /// # Errors
    /// The device was lost, or the host has recorded work that it did not submit.
    pub fn finish_blocking(&mut self) -> Result<Model> {
        self.stop_blocking()?;
        let has_best = self.procedure.place.best.is_some();
        if has_best {
            self.stepper.load_best();
        }
        let mut values = Vec::new();
        for w in self.stepper.method.weights() {
            let read = self.stepper.program.read_blocking(if has_best { w.best } else { w.average })?;
            if !has_best {
                self.stepper.program.write(w.values, 0, &read);
            }
            values.push(read);
        }
        self.model(values)
    }

    /// Goes on to the next place that a checkpoint can hold: the end of a training step. A run that
    /// failed stays where it is.
    pub(super) fn stop_blocking(&mut self) -> Result<()> {
        if self.procedure.check().is_err() {
            return Ok(());
        }
        // The CPU engine never stands anywhere else.
        if self.slices.is_none() {
            return Ok(());
        }
        self.settle_blocking()?;
        self.submit(OWN_SLICE, self.procedure.first_of_epoch)?;
        let at = self.procedure.at;
        if let Some(Work::Train { calls, .. }) = self.procedure.work.get(at.item).filter(|_| at.call > 0) {
            // Exactly these: what is fused among them fits as a whole, or was begun already.
            let left = Budget::Calls(calls.len() - at.call);
            self.submit(left, usize::MAX)?;
        }
        self.settle_blocking()
    }
}
