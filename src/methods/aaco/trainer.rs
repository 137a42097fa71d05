//! A training run of AACO: the general trainer for the predictor, and between its epochs, on the host, the search.

use super::config::Config;
use super::method::State;
use super::plan::Aaco;
use super::policy::{self, Search};
use super::rollout::{self, Rolled};
use super::rows::Rows;
use crate::data::Dataset;
use crate::engine::{Budget, Engine, Program};
use crate::error::{Error, Result};
use crate::methods::alpha::Alpha;
use crate::policy::history::Epoch;
use crate::policy::{AlphaRange, Model};
use crate::train::{Buffers, Checkpoint, Progress, Recorded, Training};
use std::ops::Range;
use std::path::Path;
use std::thread::JoinHandle;

/// A training run of AACO: the predictor on random masks, rollouts of the search, the predictor on what they visited.
///
/// It is driven through [`Training`]. The rollouts are the host's work: `epoch_blocking` does them on all cores before
/// the first epoch that needs them; in a host's frames a thread of its own does, and nothing is recorded meanwhile.
pub struct Trainer {
    inner: crate::train::Trainer<Aaco>,
    data: Dataset,
    /// Rollouts under way.
    rolling: Option<JoinHandle<Result<Round>>>,
}

/// What the host has done between two rounds.
struct Round {
    range: Option<AlphaRange>,
    rolled: Rolled,
}

impl Trainer {
    /// Puts the data and a freshly initialised predictor on an engine.
    ///
    /// # Errors
    /// Settings that do not fit the problem, more training rows than a model may hold, no validation rows, or more memory
    /// than the engine has.
    pub fn new(engine: &Engine, data: &Dataset, config: Config) -> Result<Self> {
        config.check_table(data)?;
        Ok(Self {
            inner: crate::train::Trainer::new(engine, data, config)?,
            data: data.clone(),
            rolling: None,
        })
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        self.inner.config()
    }

    /// The engine's side of the run, to evaluate the predictor with: on the paths that were visited.
    pub fn stepper_mut(&mut self) -> &mut super::Stepper {
        self.inner.stepper_mut()
    }

    fn waits(&self) -> bool {
        self.inner.state().waits(self.config())
    }

    /// The search with the predictor of a model that has no rows yet.
    fn search(data: &Dataset, config: &Config, bare: &Model) -> Result<Search> {
        let rows = Rows::of(data, config.seed, config.kept_rows(data.sizes()[0]));
        policy::put_together(data.problem(), config, bare.alphas(), &bare.network("predictor"), rows)
    }

    /// What the host has to do before the next round.
    fn round(data: &Dataset, config: &Config, state: &State, bare: &Model) -> Result<Round> {
        let search = Self::search(data, config, bare)?;
        let range = known_range(config, state, &search, data)?;
        let rolled = rollout::roll_out(&search, data, config, range, state.round)?;
        Ok(Round { range, rolled })
    }

    /// Gives the predictor's training what the host has done.
    fn go_on(&mut self, Round { range, rolled }: Round) -> Result<()> {
        let mut state = self.inner.state().clone();
        (state.rolled, state.range) = (state.round + 1, range);
        let layout = &self.inner.stepper().method.layout;
        let words = [(layout.slots, rolled.slots), (layout.visited, rolled.visited)];
        self.inner.go_on(state, &words);
        Ok(())
    }

    fn roll_out_blocking(&mut self) -> Result<()> {
        let round = match self.rolling.take() {
            Some(rolling) => joined(rolling)?,
            None => {
                let bare = self.inner.finish_blocking()?;
                Self::round(&self.data, self.config(), self.inner.state(), &bare)?
            }
        };
        self.go_on(round)
    }

    /// The same without waiting: `true` if the training can go on.
    fn try_roll_out(&mut self) -> Result<bool> {
        match self.rolling.take() {
            Some(rolling) if rolling.is_finished() => {
                self.go_on(joined(rolling)?)?;
                return Ok(true);
            }
            Some(rolling) => self.rolling = Some(rolling),
            None => {
                // As soon as the weights have come to the host.
                let Some(bare) = self.inner.try_model()? else { return Ok(true) };
                let (data, config) = (self.data.clone(), self.config().clone());
                let state = self.inner.state().clone();
                let work = move || Self::round(&data, &config, &state, &bare);
                let rolling = std::thread::Builder::new().name("querent rollouts".into()).spawn(work);
                self.rolling = Some(rolling.map_err(|error| {
                    Error::Config(format!(
                        "there is no thread for the rollouts of aaco: {error}; rounds=0 trains without them"
                    ))
                })?);
            }
        }
        Ok(false)
    }

    /// The model with its rows.
    fn complete(&self, bare: &Model) -> Result<Model> {
        let (config, data) = (self.config(), &self.data);
        let search = Self::search(data, config, bare)?;
        let range = known_range(config, self.inner.state(), &search, data)?;
        let (what, rows) =
            ((bare.problem().clone(), bare.normalization().clone()), search.oracle.rows.clone());
        policy::model_of(what, config, range, &bare.network("predictor"), rows, bare.history().to_vec())
    }
}

/// The trade-offs of a run that has several: what it has found, or what it can find now.
fn known_range(
    config: &Config,
    state: &State,
    search: &Search,
    data: &Dataset,
) -> Result<Option<AlphaRange>> {
    match (config.alpha, state.range) {
        (Alpha::One(_), _) => Ok(None),
        (_, Some(range)) => Ok(Some(range)),
        (Alpha::Range(ends), None) => AlphaRange::try_from(ends).map(Some),
        (Alpha::Auto, None) => rollout::range(search, data, config).map(Some),
    }
}

fn joined(rolling: JoinHandle<Result<Round>>) -> Result<Round> {
    rolling.join().unwrap_or_else(|_| Err(Error::Config("the rollouts of aaco have panicked".into())))
}

impl Training for Trainer {
    fn epoch_blocking(&mut self) -> Result<Option<Epoch>> {
        self.epoch_watched_blocking(&mut |_| {})
    }
    fn epoch_watched_blocking(&mut self, watch: &mut dyn FnMut(usize)) -> Result<Option<Epoch>> {
        if let Some(epoch) = self.inner.epoch_watched_blocking(watch)? {
            return Ok(Some(epoch));
        }
        if !self.waits() {
            return Ok(None);
        }
        self.roll_out_blocking()?;
        self.inner.epoch_watched_blocking(watch)
    }
    fn history(&self) -> &[Epoch] {
        self.inner.history()
    }
    fn epoch_steps(&self) -> usize {
        self.inner.epoch_steps()
    }
    fn set_epoch_steps(&mut self, steps: usize) {
        self.inner.set_epoch_steps(steps);
    }
    fn batch(&self) -> usize {
        Training::batch(&self.inner)
    }
    fn epochs_at_most(&self) -> usize {
        self.inner.epochs_at_most()
    }
    fn epochs_behind(&self) -> usize {
        self.inner.epochs_behind()
    }
    fn epoch_span(&self) -> Range<f64> {
        self.inner.epoch_span()
    }
    fn best(&self) -> Option<f64> {
        self.inner.best()
    }
    fn checkpoint_blocking(&mut self) -> Result<&Checkpoint> {
        self.inner.checkpoint_blocking()
    }
    fn resume(&mut self, path: &Path) -> Result<()> {
        // What is being rolled out is of the run before.
        self.rolling = None;
        self.inner.resume(path)
    }
    fn resume_from(&mut self, checkpoint: Checkpoint) -> Result<()> {
        self.rolling = None;
        self.inner.resume_from(checkpoint)
    }
    fn last_checkpoint(&self) -> Option<&Checkpoint> {
        self.inner.last_checkpoint()
    }
    fn resume_on(&mut self, engine: &Engine) -> Result<()> {
        self.inner.resume_on(engine)?;
        // What is being rolled out may be of a later state than the one that is continued from.
        self.rolling = None;
        Ok(())
    }
    fn finish_blocking(&mut self) -> Result<Model> {
        let bare = self.inner.finish_blocking()?;
        self.complete(&bare)
    }
    fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, budget: Budget) -> Result<Recorded> {
        if self.waits() && !self.try_roll_out()? {
            return Ok(Recorded::default());
        }
        self.inner.encode(encoder, budget)
    }
    fn advance(&mut self, budget: Budget) -> Result<Recorded> {
        if self.waits() && !self.try_roll_out()? {
            return Ok(Recorded::default());
        }
        self.inner.advance(budget)
    }
    fn try_progress(&mut self) -> Result<Progress> {
        let progress = self.inner.try_progress()?;
        Ok(Progress { finished: progress.finished && !self.waits(), ..progress })
    }
    fn try_model(&mut self) -> Result<Option<Model>> {
        if self.waits() {
            return Ok(None);
        }
        let bare = self.inner.try_model()?;
        bare.map(|bare| self.complete(&bare)).transpose()
    }
    fn buffers(&self) -> Option<Buffers<'_>> {
        self.inner.buffers()
    }
    fn rehearse_blocking(&mut self, steps: usize) -> Result<()> {
        self.inner.rehearse_blocking(steps)
    }
    fn paths(&self) -> Option<Vec<u32>> {
        self.inner.paths()
    }
    fn program(&mut self) -> Option<&mut Program> {
        Training::program(&mut self.inner)
    }
}
