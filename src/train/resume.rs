//! Keeping a run and going on with it: in a file, from a checkpoint, on another device.

use super::checkpoint::Checkpoint;
use super::method::Method;
use super::procedure::Place;
use super::trainer::Trainer;
use crate::engine::Engine;
use crate::error::{Error, Result};
use std::path::Path;

impl<M: Method> Trainer<M> {
    /// The state that [`Trainer::resume_on`] would continue from, to write to a file, for example: that
    /// of the last epoch's end of which all has come to the host, or of the last
    /// [`Trainer::save_blocking`].
    pub fn last_checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_ref()
    }

    /// Everything needed to continue with equal bits. In the middle of a training step, goes on to its end first.
    ///
    /// # Errors
    /// The device was lost, or the host has recorded work that it did not submit.
    pub fn checkpoint_blocking(&mut self) -> Result<&Checkpoint> {
        self.stop_blocking()?;
        let mut checkpoint = self.stepper.checkpoint_blocking()?;
        let place = self.procedure.stored();
        checkpoint.set_place(&place)?;
        if place.best.is_some() {
            for w in self.stepper.method.weights() {
                let values = self.stepper.program.read_blocking(w.best)?;
                let values = values.into_iter().map(|value| value as f32).collect();
                checkpoint.reals.insert(w.best_name(), values);
            }
        }
        self.checkpoints += 1;
        Ok(self.checkpoint.insert(checkpoint))
    }

    /// Writes [`Trainer::checkpoint_blocking`] to a file.
    ///
    /// # Errors
    /// As there, or the file cannot be written; an older one is then still there.
    pub fn save_blocking(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_blocking()?.save(path)
    }

    /// Continues from a file of [`Trainer::save_blocking`], or of [`Checkpoint::save`].
    ///
    /// # Errors
    /// The file cannot be read, is not a checkpoint, or is one of another configuration or problem.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let checkpoint = Checkpoint::load(path)?;
        self.restore(&checkpoint, |what| Error::file(path, what))?;
        self.checkpoint = Some(checkpoint);
        Ok(())
    }

    /// Continues from a checkpoint.
    ///
    /// # Errors
    /// It is of another configuration or problem.
    pub fn resume_from(&mut self, checkpoint: Checkpoint) -> Result<()> {
        self.restore(&checkpoint, Error::Config)?;
        self.checkpoint = Some(checkpoint);
        Ok(())
    }

    fn restore(&mut self, checkpoint: &Checkpoint, bad: impl Fn(String) -> Error) -> Result<()> {
        // Of another method, what it says of its progress means nothing.
        checkpoint.check_config::<M>(self.stepper.config())?;
        let place: Place<M::State> = checkpoint.place().map_err(|error| match error {
            Error::Config(what) => bad(what),
            other => other,
        })?;
        let weights = self.stepper.method.weights();
        let best: Vec<Option<&Vec<f32>>> =
            weights.iter().map(|w| checkpoint.reals.get(&w.best_name())).collect();
        let fits = weights.iter().zip(&best).all(|(w, values)| match values {
            Some(values) => values.len() == w.len,
            None => place.best.is_none(),
        });
        if !fits {
            return Err(bad("the checkpoint's best weights do not fit the networks".into()));
        }
        self.stepper.restore(checkpoint)?;
        self.stepper.state = place.state.clone();
        for (w, values) in weights.iter().zip(best) {
            if let Some(values) = values {
                self.stepper.program.write(w.best, 0, values);
            }
        }
        self.news.clear();
        self.procedure.resume(&self.stepper, place);
        if let (Some(slices), Some(program)) = (&mut self.slices, self.stepper.program().gpu()) {
            slices.restart::<M>(program, &self.procedure.place.history);
        }
        Ok(())
    }

    /// Continues on another engine, after the device was lost, from the state that had come to the host
    /// ([`Trainer::last_checkpoint`]), or from the beginning. The bits are those of a run that was never
    /// interrupted, if the engine is of the same kind. Nothing of the old device is used.
    ///
    /// # Errors
    /// What [`Trainer::new`] has against the engine; the run is then as it was.
    pub fn resume_on(&mut self, engine: &Engine) -> Result<()> {
        let mut fresh = Self::new(engine, &self.data, self.stepper.config().clone())?;
        if let Some(checkpoint) = &self.checkpoint {
            fresh.restore(checkpoint, Error::Config)?;
        }
        fresh.checkpoint = self.checkpoint.take();
        *self = fresh;
        Ok(())
    }
}
