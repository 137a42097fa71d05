//! One model of a run: trained, or gone on with, and tested.

use super::aim::Aim;
use super::folder::{self, CHECKPOINT};
use super::minutes::{self, Allotted, Task};
use super::{Args, reference};
use crate::commands::{Failure, Talk, curve, progress, say};
use querent::data::table::Prepared;
use querent::methods::Entry;
use querent::methods::fixed;
use querent::methods::fixed::Subset;
use querent::policy::most_points;
use querent::run::{CURVE, Point, Run, TESTED, Trained};
use querent::train::Checkpoint;
use querent::{Engine, Error, Model, files};
use serde_json::Value;
use std::path::Path;

/// What is trained, with what, and where it goes.
pub struct Job<'a> {
    pub args: &'a Args,
    pub talk: Talk,
    pub engine: &'a Engine,
    pub prepared: &'a Prepared,
    pub entry: &'static Entry,
    pub aim: &'a Aim,
    pub seed: u64,
    pub folder: &'a Path,
    /// The model's place in it.
    pub place: String,
}

impl Job<'_> {
    /// Trains and tests a model and adds it to the run, unless it is there.
    ///
    /// # Errors
    /// What training, testing or writing has; a model that is there and was trained with other settings.
    pub fn carry_out(&self, record: &mut Run, mut allotted: Option<&mut Allotted>) -> Result<(), Failure> {
        let Job { args, talk, aim, seed, folder, .. } = *self;
        let name = aim.name(seed);
        let is_it =
            |point: &Point| point.seed == seed && point.method == self.entry.name && aim.is_of(point, folder);
        let places: Vec<usize> = (0..record.points.len()).filter(|&at| is_it(&record.points[at])).collect();
        let finished: Vec<Point> = places.iter().map(|&at| record.points[at].clone()).collect();
        let is_complete =
            |thresholds: &Vec<f64>| finished.iter().map(|point| point.alpha).eq(thresholds.iter().copied());
        if let Some(before) = finished.first() {
            folder::same_settings(folder, before, self.settings(&[])?, args)?;
            if let Some(allotted) = &mut allotted {
                allotted.done();
            }
            if args.thresholds.as_ref().is_none_or(is_complete) {
                say(talk, format_args!("{name}: finished before"));
                return Ok(());
            }
            // One training has all thresholds: the model is tested at those that are new.
            say(talk, format_args!("{name}: trained before, tested at other thresholds"));
            let model = Model::load(folder.join(&before.model))?;
            let (seconds, epochs) = (before.seconds, before.epochs);
            let trained = Trained { model, file: before.model.clone(), seed, seconds, epochs };
            let points = self.test(&trained, &finished)?;
            let mut at = 0..;
            record.points.retain(|_| !at.next().is_some_and(|at| places.contains(&at)));
            let first = places.first().copied().unwrap_or(0);
            record.points.splice(first..first, points);
        } else {
            if !self.place.is_empty() {
                say(talk, &name);
            }
            folder::is_free(folder, &self.file(), record, self.entry, aim)?;
            let trained = self.train(allotted.as_deref())?;
            record.points.extend(self.test(&trained, &[])?);
            if let Some(allotted) = &mut allotted {
                allotted.done();
            }
        }
        record.save(folder)?;
        Ok(())
    }

    /// The model's file, relative to the run's folder.
    fn file(&self) -> String {
        format!("{}model.safetensors", self.place)
    }

    /// The settings, with further assignments.
    fn settings(&self, changes: &[String]) -> querent::Result<Value> {
        let args = Args { set: [&self.args.set, changes].concat(), ..self.args.clone() };
        super::settings(&args, self.entry, &self.prepared.data, self.aim, self.seed)
    }

    /// Trains a model, or goes on with it.
    ///
    /// # Errors
    /// What training or writing has, or an interruption.
    pub fn train(&self, allotted: Option<&Allotted>) -> Result<Trained, Failure> {
        let Job { args, talk, engine, prepared, entry, folder, .. } = *self;
        let here = folder.join(&self.place);
        std::fs::create_dir_all(&here).map_err(|error| Error::io(&here, error))?;
        let checkpoint = here.join(CHECKPOINT);
        // Also of a run that was killed before its first checkpoint was whole.
        files::clear_remains(&checkpoint);
        files::clear_remains(&folder.join(self.file()));
        let goes_on = args.resume && checkpoint.exists();
        let mut settings = self.settings(&[])?;
        let plan = |settings: &Value, allotted: &Allotted, behind| {
            let (aim, data, evaluations) = (self.aim, &prepared.data, self.evaluations());
            let task = Task { entry, engine, data, aim, settings, evaluations };
            let (changes, pace, said) = minutes::plan(&task, allotted, behind)?;
            say(talk, said);
            Ok::<_, Failure>((changes, pace))
        };
        let mut pace = None;
        match allotted {
            // A run that goes on keeps its schedule, and only its epochs may be shorter from now on.
            Some(_) if goes_on => {
                settings = self.settings(&minutes::kept(&Checkpoint::load(&checkpoint)?.settings()))?;
            }
            Some(allotted) => {
                let (changes, planned) = plan(&settings, allotted, None)?;
                settings = self.settings(&changes)?;
                pace = Some(planned);
            }
            None => {}
        }
        let schedule = settings.clone();
        let mut trainer = (entry.start)(engine, &prepared.data, settings)?;
        if goes_on {
            trainer.resume(&checkpoint).map_err(|error| match error {
                Error::Config(what) => Error::file(
                    &checkpoint,
                    format!("{what}. --resume needs the settings of before; --force begins anew, --out writes elsewhere"),
                ),
                other => other,
            })?;
            if let Some(allotted) = allotted {
                pace = Some(plan(&schedule, allotted, Some(trainer.epochs_behind()))?.1);
            }
        }
        progress::train(engine, &mut *trainer, &checkpoint, talk, pace)?;
        let model = trainer.finish_blocking()?.with_encoding(prepared.encoding.clone())?;
        let seconds = trainer.history().last().map_or(0.0, |epoch| epoch.seconds);
        let epochs = [trainer.history().len(), trainer.epochs_at_most()];
        // The engine's copy of the rows makes room for what the evaluation takes.
        drop(trainer);
        let model = model.with_curve(&prepared.data, CURVE)?;
        if let Some(meaning) = curve::meaning(&model) {
            say(talk, meaning);
        }
        model.save(folder.join(self.file()))?;
        Ok(Trained { model, file: self.file(), seed: self.seed, seconds, epochs })
    }

    /// How often the validation and the test rows are evaluated after the training.
    fn evaluations(&self) -> [usize; 2] {
        match self.aim {
            Aim::One(_) | Aim::Usual => [1, 1],
            Aim::Range(_) | Aim::Found => [most_points(CURVE), TESTED],
            Aim::Thresholds => {
                let tested = self.thresholds().len();
                [tested, tested]
            }
        }
    }

    /// The thresholds that a model is tested at.
    fn thresholds(&self) -> Vec<f64> {
        let usual = || (self.entry.thresholds)(self.prepared.data.problem());
        self.args.thresholds.clone().unwrap_or_else(usual)
    }

    /// Tests a model: at its α, at some of its range, or at each threshold. What was tested before is not tested again.
    fn test(&self, trained: &Trained, before: &[Point]) -> Result<Vec<Point>, Failure> {
        let data = &self.prepared.data;
        let tradeoffs = match self.aim {
            Aim::One(alpha) => vec![*alpha],
            Aim::Usual | Aim::Range(_) | Aim::Found => trained.tradeoffs()?,
            Aim::Thresholds => self.thresholds(),
        };
        let tested = |tradeoff: &f64| before.iter().find(|point| point.alpha == *tradeoff);
        let open: Vec<f64> =
            tradeoffs.iter().copied().filter(|tradeoff| tested(tradeoff).is_none()).collect();
        let mut fresh = trained.test(&open, data, &self.prepared.encoding)?;
        if self.args.baselines && data.sizes()[2] > 0 {
            let mut known = Vec::new();
            for point in &mut fresh {
                point.subsets = self.fixed_sets(point.test.cost, &mut known)?;
            }
        }
        let mut fresh = fresh.into_iter();
        Ok(tradeoffs
            .iter()
            .filter_map(|tradeoff| tested(tradeoff).cloned().or_else(|| fresh.next()))
            .collect())
    }

    /// The best fixed set of features of the same cost: one that is not above it, and the next. Sets that are known are not
    /// measured again.
    fn fixed_sets(&self, cost: f64, known: &mut Vec<(Vec<usize>, Subset)>) -> Result<Vec<Subset>, Failure> {
        let (data, engine) = (&self.prepared.data, self.engine);
        say(self.talk, "looking for the best fixed set of features of the same cost");
        let settings = reference(self.args, data, self.seed)?;
        let chosen = fixed::choose_blocking(engine, data, &settings, cost)?;
        // The last one is beyond the cost: one set without it, one with it.
        let mut subsets = Vec::new();
        for count in [chosen.len().saturating_sub(1), chosen.len()] {
            // Points of one model that cost about the same have the same sets.
            let set = &chosen[..count];
            let subset = match known.iter().find(|(of, _)| of == set) {
                Some((_, subset)) => subset.clone(),
                None => {
                    let subset = fixed::subset_blocking(engine, data, &settings, set)?;
                    known.push((set.to_vec(), subset.clone()));
                    subset
                }
            };
            subsets.push(subset);
        }
        Ok(subsets)
    }
}
