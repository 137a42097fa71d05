//! The staged procedure: warm-up, then stage after stage of falling temperature, each from the best
//! weights so far, until no epoch is better.

use super::checkpoint::Checkpoint;
use super::config::Config;
use super::schedule::Position;
use super::stepper::{Stepper, Which};
use crate::data::{Dataset, Normalization};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::history::{Epoch, Phase};
use crate::model::Model;
use crate::nn::{Mlp, Net};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// Where a run is: what its checkpoint holds besides the device's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Progress {
    warm_up_done: usize,
    stage: usize,
    stage_epoch: usize,
    since_best: usize,
    best: Option<f64>,
    seconds: f64,
    horizon: usize,
    history: Vec<Epoch>,
}

/// Weights of both networks, in the buffers' layout.
#[derive(Clone, Debug, PartialEq)]
struct Weights {
    policy: Vec<f64>,
    predictor: Vec<f64>,
}

/// A training run: call [`Trainer::epoch_blocking`] until it is over, then
/// [`Trainer::finish_blocking`].
pub struct Trainer {
    stepper: Stepper,
    normalization: Normalization,
    epoch_steps: usize,
    progress: Progress,
    best: Option<Weights>,
    started: Instant,
}

/// Names of the best weights in a checkpoint.
const BEST: [&str; 2] = ["best.policy", "best.predictor"];

impl Trainer {
    /// Puts the data and freshly initialised networks on an engine.
    ///
    /// # Errors
    /// Settings that do not fit the problem, no validation rows, or more memory than the engine has.
    pub fn new(engine: &Engine, data: &Dataset, config: Config) -> Result<Self> {
        if data.sizes()[1] == 0 {
            return Err(Error::Data(
                "there are no validation rows to decide by when to stop training".into(),
            ));
        }
        let mut stepper = Stepper::new(engine, data, config)?;
        stepper.set_initial_stop();
        let epoch_steps = stepper.config().whole_passes(stepper.steps_per_epoch());
        let horizon = stepper.horizon();
        Ok(Self {
            stepper,
            normalization: data.normalization().clone(),
            epoch_steps,
            progress: Progress { horizon, ..Progress::default() },
            best: None,
            started: Instant::now(),
        })
    }

    /// The engine's side of the run.
    pub fn stepper(&self) -> &Stepper {
        &self.stepper
    }

    /// The same, to evaluate with.
    pub fn stepper_mut(&mut self) -> &mut Stepper {
        &mut self.stepper
    }

    /// The epochs so far.
    pub fn history(&self) -> &[Epoch] {
        &self.progress.history
    }

    /// Training steps of an epoch.
    pub fn epoch_steps(&self) -> usize {
        self.epoch_steps
    }

    /// Epochs of the whole run at most: early stopping may make them fewer.
    pub fn epochs_at_most(&self) -> usize {
        let config = self.stepper.config();
        config.warm_up_epochs + config.temperatures.len() * config.stage_epochs
    }

    /// Epochs that are behind, those that early stopping skipped included.
    pub fn epochs_behind(&self) -> usize {
        let config = self.stepper.config();
        let p = &self.progress;
        p.warm_up_done + p.stage * config.stage_epochs + p.stage_epoch
    }

    /// The best validation objective so far.
    pub fn best(&self) -> Option<f64> {
        self.progress.best
    }

    /// Trains for an epoch and evaluates it. `None` when the run is over.
    ///
    /// # Errors
    /// A gradient was not a finite number, or the device was lost. The best weights so far are kept:
    /// [`Trainer::finish_blocking`] still gives them.
    pub fn epoch_blocking(&mut self) -> Result<Option<Epoch>> {
        let config = self.stepper.config().clone();
        let phase = if self.progress.warm_up_done < config.warm_up_epochs {
            Phase::WarmUp
        } else if self.progress.stage < config.temperatures.len() {
            Phase::Stage(self.progress.stage)
        } else {
            return Ok(None);
        };
        let pass = self.stepper.steps_per_epoch();
        let stage = match phase {
            Phase::WarmUp => config.warm_up_stage(self.progress.warm_up_done, pass),
            Phase::Stage(stage) => {
                let at = Position { stage, epoch: self.progress.stage_epoch };
                config.stage(self.stepper.problem(), at, pass)
            }
        };
        self.stepper.set_stage(stage)?;
        match phase {
            Phase::WarmUp => self.stepper.warm_up(self.epoch_steps),
            Phase::Stage(_) => self.stepper.steps(self.epoch_steps),
        }
        let train = self.stepper.metrics_blocking()?;
        let validation = self.stepper.evaluate_blocking(Which::Validation)?;
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
            seconds: self.progress.seconds + self.started.elapsed().as_secs_f64(),
        };
        self.progress.history.push(epoch.clone());
        if best {
            self.progress.best = Some(validation.objective);
            self.best = Some(self.averages_blocking()?);
        }
        if staged && config.tail > 0.0 {
            self.progress.horizon = self.stepper.next_horizon(train.still_asking, config.tail);
            self.stepper.set_horizon(self.progress.horizon)?;
        }
        match phase {
            Phase::WarmUp => self.progress.warm_up_done += 1,
            Phase::Stage(_) => self.after_stage_epoch(best, &config),
        }
        Ok(Some(epoch))
    }

    /// To the next epoch; if that begins a stage, from the best weights.
    fn after_stage_epoch(&mut self, best: bool, config: &Config) {
        let p = &mut self.progress;
        p.stage_epoch += 1;
        p.since_best = if best { 0 } else { p.since_best + 1 };
        if p.stage_epoch == config.stage_epochs || p.since_best >= config.patience {
            p.stage += 1;
            (p.stage_epoch, p.since_best) = (0, 0);
            if let Some(best) = self.best.clone() {
                self.write_weights(&best);
            }
        }
    }

    fn nets(&self) -> [Net; 2] {
        let layout = self.stepper.layout();
        [layout.policy, layout.predictor]
    }

    fn averages_blocking(&self) -> Result<Weights> {
        let [policy, predictor] = self.nets();
        let program = self.stepper.program();
        Ok(Weights {
            policy: program.read_blocking(policy.average)?,
            predictor: program.read_blocking(predictor.average)?,
        })
    }

    fn write_weights(&mut self, weights: &Weights) {
        let nets = self.nets();
        let program = self.stepper.program_mut();
        for (net, values) in nets.into_iter().zip([&weights.policy, &weights.predictor]) {
            program.write(net.values, 0, values);
            program.write(net.average, 0, values);
        }
    }

    /// Loads the best weights back onto the engine and gives them as a model.
    ///
    /// # Errors
    /// The device was lost.
    pub fn finish_blocking(&mut self) -> Result<Model> {
        let weights = match &self.best {
            Some(best) => best.clone(),
            None => self.averages_blocking()?,
        };
        self.write_weights(&weights);
        let [policy, predictor] = self.nets().map(|net: Net| -> Mlp { net.mlp });
        Model::new(
            self.stepper.problem().clone(),
            self.normalization.clone(),
            self.stepper.config().clone(),
            policy.unpack(&weights.policy),
            predictor.unpack(&weights.predictor),
            self.progress.history.clone(),
        )
    }

    /// Writes everything needed to continue with equal bits to a file.
    ///
    /// # Errors
    /// The device was lost, or the file cannot be written; an older one is then still there.
    pub fn save_blocking(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut checkpoint: Checkpoint = self.stepper.checkpoint_blocking()?;
        let mut progress = self.progress.clone();
        progress.seconds += self.started.elapsed().as_secs_f64();
        checkpoint.progress = serde_json::to_string(&progress).unwrap_or_default();
        if let Some(best) = &self.best {
            for (name, values) in BEST.into_iter().zip([&best.policy, &best.predictor]) {
                checkpoint.reals.insert(name.into(), values.iter().map(|&value| value as f32).collect());
            }
        }
        checkpoint.save(path)
    }

    /// Continues from a file of [`Trainer::save_blocking`].
    ///
    /// # Errors
    /// The file cannot be read, is not a checkpoint, or is one of another configuration or problem.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let checkpoint = Checkpoint::load(path)?;
        let progress: Progress = serde_json::from_str(&checkpoint.progress).map_err(|error| {
            Error::file(path, format!("the checkpoint's progress cannot be read: {error}"))
        })?;
        let mut found = BEST.map(|name| checkpoint.reals.get(name));
        for (values, net) in found.iter_mut().zip(self.nets()) {
            if values.is_some_and(|values| values.len() != net.mlp.len) {
                return Err(Error::file(path, "the checkpoint's best weights do not fit the networks"));
            }
        }
        self.stepper.restore(&checkpoint)?;
        self.stepper.set_horizon(progress.horizon)?;
        self.best = match found {
            [Some(policy), Some(predictor)] => {
                let wide = |values: &Vec<f32>| values.iter().map(|&value| value.into()).collect();
                Some(Weights { policy: wide(policy), predictor: wide(predictor) })
            }
            _ => None,
        };
        self.progress = progress;
        self.started = Instant::now();
        Ok(())
    }
}
