//! A training run of any method.

use super::checkpoint::Checkpoint;
use super::curves::Buffers;
use super::method::Method;
use super::slices::{Progress, Recorded};
use super::trainer::Trainer;
use crate::engine::{Budget, Engine, Program};
use crate::error::Result;
use crate::policy::Model;
use crate::policy::history::Epoch;
use std::ops::Range;
use std::path::Path;

/// A training run whose method does not matter: what the command, other tools and hosts of any method drive.
pub trait Training: wgpu::WasmNotSend {
    /// Trains to the end of an epoch and evaluates it. `None` when the run is over.
    ///
    /// # Errors
    /// A gradient was not a finite number: [`Training::finish_blocking`] still gives the best weights. Or the device
    /// was lost.
    fn epoch_blocking(&mut self) -> Result<Option<Epoch>>;
    /// The same, and tells several times a second how many training steps of the epoch are done.
    ///
    /// # Errors
    /// As [`Training::epoch_blocking`].
    fn epoch_watched_blocking(&mut self, watch: &mut dyn FnMut(usize)) -> Result<Option<Epoch>>;
    /// The epochs so far.
    fn history(&self) -> &[Epoch];
    /// Training steps of an epoch.
    fn epoch_steps(&self) -> usize;
    /// Makes the epochs from now on shorter or longer: see [`Trainer::set_epoch_steps`]. Nothing for a method without
    /// steps.
    fn set_epoch_steps(&mut self, _steps: usize) {}
    /// Instances of a training step.
    fn batch(&self) -> usize;
    /// Epochs of the whole run at most: early stopping may make them fewer.
    fn epochs_at_most(&self) -> usize;
    /// Epochs that are behind, those that early stopping skipped included.
    fn epochs_behind(&self) -> usize;
    /// Where the next epoch begins and ends in the whole run: see [`Trainer::epoch_span`].
    fn epoch_span(&self) -> Range<f64>;
    /// What the best epoch so far was judged by.
    fn best(&self) -> Option<f64>;
    /// Everything needed to continue with equal bits.
    ///
    /// # Errors
    /// The device was lost.
    fn checkpoint_blocking(&mut self) -> Result<&Checkpoint>;
    /// Writes it to a file.
    ///
    /// # Errors
    /// The device was lost, or the file cannot be written; an older one is then still there.
    fn save_blocking(&mut self, path: &Path) -> Result<()> {
        self.checkpoint_blocking()?.save(path)
    }
    /// Continues from a file of [`Training::save_blocking`].
    ///
    /// # Errors
    /// The file cannot be read, is not a checkpoint, or is one of another configuration or problem.
    fn resume(&mut self, path: &Path) -> Result<()>;
    /// Continues from a checkpoint.
    ///
    /// # Errors
    /// It is of another configuration or problem.
    fn resume_from(&mut self, checkpoint: Checkpoint) -> Result<()>;
    /// The state that [`Training::resume_on`] would continue from: see [`Trainer::last_checkpoint`].
    fn last_checkpoint(&self) -> Option<&Checkpoint>;
    /// Continues on another engine, after the device was lost: see [`Trainer::resume_on`].
    ///
    /// # Errors
    /// The run does not fit the engine; it is then as it was.
    fn resume_on(&mut self, engine: &Engine) -> Result<()>;
    /// The best weights as a model.
    ///
    /// # Errors
    /// The device was lost.
    fn finish_blocking(&mut self) -> Result<Model>;
    /// Records the next slice of the training into a host's encoder: see [`Trainer::encode`].
    ///
    /// # Errors
    /// The engine is not on a device, the device was lost, or slices were submitted in another order.
    fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, budget: Budget) -> Result<Recorded>;
    /// A slice of the training for a host without frames of its own: see [`Trainer::advance`].
    ///
    /// # Errors
    /// As [`Training::encode`].
    fn advance(&mut self, budget: Budget) -> Result<Recorded>;
    /// Looks how far the submitted slices are: see [`Trainer::try_progress`].
    ///
    /// # Errors
    /// The device was lost, slices were submitted in another order, or a gradient was not a finite number.
    fn try_progress(&mut self) -> Result<Progress>;
    /// The model, when the run is over and its weights have come to the host; `None` before. Never waits.
    ///
    /// # Errors
    /// The device was lost, or the weights are not finite numbers.
    fn try_model(&mut self) -> Result<Option<Model>>;
    /// Buffers that a host on the same device may draw from. `None` on the CPU engine.
    fn buffers(&self) -> Option<Buffers<'_>>;
    /// Does so many training steps and waits for them, to see how long they take. They are not part of the run, which is
    /// to be thrown away.
    ///
    /// # Errors
    /// A gradient was not a finite number, or the device was lost.
    #[doc(hidden)]
    fn rehearse_blocking(&mut self, steps: usize) -> Result<()>;
    /// What was asked on the validation rows, where that is on the host: see [`Trainer::paths`].
    fn paths(&self) -> Option<Vec<u32>>;
    /// The plan and its buffers, for tests of its kernels; `None` for a method without a plan.
    #[doc(hidden)]
    fn program(&mut self) -> Option<&mut Program>;
}

impl<M: Method> Training for Trainer<M> {
    fn epoch_blocking(&mut self) -> Result<Option<Epoch>> {
        Trainer::epoch_blocking(self)
    }
    fn epoch_watched_blocking(&mut self, watch: &mut dyn FnMut(usize)) -> Result<Option<Epoch>> {
        Trainer::epoch_watched_blocking(self, watch)
    }
    fn history(&self) -> &[Epoch] {
        Trainer::history(self)
    }
    fn epoch_steps(&self) -> usize {
        Trainer::epoch_steps(self)
    }
    fn set_epoch_steps(&mut self, steps: usize) {
        Trainer::set_epoch_steps(self, steps);
    }
    fn batch(&self) -> usize {
        self.stepper().batch()
    }
    fn epochs_at_most(&self) -> usize {
        Trainer::epochs_at_most(self)
    }
    fn epochs_behind(&self) -> usize {
        Trainer::epochs_behind(self)
    }
    fn epoch_span(&self) -> Range<f64> {
        Trainer::epoch_span(self)
    }
    fn best(&self) -> Option<f64> {
        Trainer::best(self)
    }
    fn checkpoint_blocking(&mut self) -> Result<&Checkpoint> {
        Trainer::checkpoint_blocking(self)
    }
    fn resume(&mut self, path: &Path) -> Result<()> {
        Trainer::resume(self, path)
    }
    fn resume_from(&mut self, checkpoint: Checkpoint) -> Result<()> {
        Trainer::resume_from(self, checkpoint)
    }
    fn last_checkpoint(&self) -> Option<&Checkpoint> {
        Trainer::last_checkpoint(self)
    }
    fn resume_on(&mut self, engine: &Engine) -> Result<()> {
        Trainer::resume_on(self, engine)
    }
    fn finish_blocking(&mut self) -> Result<Model> {
        Trainer::finish_blocking(self)
    }
    fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, budget: Budget) -> Result<Recorded> {
        Trainer::encode(self, encoder, budget)
    }
    fn advance(&mut self, budget: Budget) -> Result<Recorded> {
        Trainer::advance(self, budget)
    }
    fn try_progress(&mut self) -> Result<Progress> {
        Trainer::try_progress(self)
    }
    fn try_model(&mut self) -> Result<Option<Model>> {
        Trainer::try_model(self)
    }
    fn buffers(&self) -> Option<Buffers<'_>> {
        Trainer::buffers(self)
    }
    fn rehearse_blocking(&mut self, steps: usize) -> Result<()> {
        let stepper = self.stepper_mut();
        let stage = M::middle_stage(stepper.config(), stepper.problem());
        stepper.set_stage(stage)?;
        stepper.steps(steps);
        stepper.means_blocking().map(drop)
    }
    fn paths(&self) -> Option<Vec<u32>> {
        Trainer::paths(self)
    }
    fn program(&mut self) -> Option<&mut Program> {
        Some(self.stepper_mut().program_mut())
    }
}
