//! One cell: a training and its points, or what is done instead of one. What comes of it is the same whenever and wherever
//! it is done, but for how long it took, which stands in a file of its own.

use super::plan::{Plan, content};
use crate::commands::room::Room;
use crate::commands::source::Source;
use crate::commands::train::aim::Aim;
use crate::commands::train::lock::Lock;
use crate::commands::train::minutes::Allotted;
use crate::commands::train::model::Job;
use crate::commands::train::{self, tried};
use crate::commands::{Failure, Talk, say};
use flate2::Compression;
use flate2::write::GzEncoder;
use querent::compare::{
    Cell, Curve, EVERYTHING, FAILURE, NOTHING, OUTCOME, Outcome, Paths, Point, State, TIMES, Times, contexts,
    representative, thresholds, tree,
};
use querent::data::Part;
use querent::data::table::Prepared;
use querent::files::{clear_remains, write_atomically};
use querent::methods::{self, Tradeoff, fixed};
use querent::policy::evaluate::{COLUMNS, Episodes, Rules, Summary, episodes, quoted};
use querent::{Engine, Error, Model};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Every step of every test row.
pub const EVALUATION: &str = "evaluation.csv.gz";
/// What training goes on from.
const CHECKPOINT: &str = "checkpoint.safetensors";
/// The fixed list's curve without its stop rule.
pub const FIXED_SET: &str = "fixed set";
/// What stands behind a method's name if it is another one when it learns each α alone.
pub const ALONE: &str = " (each α alone)";

/// Runs a cell, unless it is done.
///
/// # Errors
/// It failed: its folder says why as well.
pub fn run(plan: &Plan, cell: &Cell, out: &Path, talk: Talk) -> Result<(), Failure> {
    let folder = out.join(&cell.folder);
    std::fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
    // Whoever is at work on it may finish.
    let _lock = Lock::wait(&folder)?;
    if let State::Done(_) = cell.state(out) {
        say(talk, format_args!("{}: done before", cell.name()));
        return Ok(());
    }
    for name in [EVALUATION, TIMES, OUTCOME, FAILURE] {
        clear_remains(&folder.join(name));
    }
    let failure = folder.join(FAILURE);
    // Why it failed before is no reason any more.
    let _ = std::fs::remove_file(&failure);
    let done = Work::new(plan, cell, &folder, talk).and_then(|mut work| work.carry_out());
    match &done {
        // It is in nobody's way if it stays.
        Ok(()) => drop(std::fs::remove_file(folder.join(CHECKPOINT))),
        // That it cannot be written down is not why it failed.
        Err(error) => {
            if let Err(error) = write_atomically(&failure, error.to_string().as_bytes()) {
                log::warn!("{error}");
            }
        }
    }
    done
}

/// A cell at work.
struct Work<'a> {
    plan: &'a Plan,
    cell: &'a Cell,
    folder: &'a Path,
    talk: Talk,
    problem: &'a str,
    is_file: bool,
    prepared: Prepared,
    engine: Engine,
    begun: Instant,
    times: Times,
    epochs: usize,
    curves: Vec<Curve>,
    /// The rows of the evaluation file.
    rows: Vec<u8>,
}

impl<'a> Work<'a> {
    fn new(plan: &'a Plan, cell: &'a Cell, folder: &'a Path, talk: Talk) -> Result<Self, Failure> {
        let Some(table) = plan.table(&cell.table) else {
            return Err(Failure::Refused(format!("the plan has no table `{}`", cell.table)));
        };
        let source = Source::find(&table.problem, plan.options.data_dir.as_deref())?;
        if content(&source)? != table.content {
            return Err(Failure::Refused(format!(
                "{} or its table has changed since the comparison was planned: plan it again",
                table.problem
            )));
        }
        Ok(Self {
            plan,
            cell,
            folder,
            talk,
            problem: &table.problem,
            is_file: matches!(source, Source::File(_)),
            prepared: plan.options.load(&source, cell.seed, &Room::new(None, None)?, talk)?,
            engine: plan.options.engine.open()?,
            begun: Instant::now(),
            times: Times::default(),
            epochs: 0,
            curves: Vec::new(),
            rows: Vec::new(),
        })
    }

    fn carry_out(&mut self) -> Result<(), Failure> {
        match self.cell.method.as_str() {
            EVERYTHING | NOTHING => self.at_once()?,
            tree::NAME => self.tree()?,
            _ => self.trained()?,
        }
        self.write()
    }

    /// Everything, or nothing: asked of everybody at once, with a predictor of its own.
    fn at_once(&mut self) -> Result<(), Failure> {
        let data = &self.prepared.data;
        let args = self.plan.train_args(querent::nmppg::NAME, self.problem, self.cell.seed);
        // What was set for NM-PPG is not meant for this, but what a table of one's own likes counts here as well.
        let mut args = train::Args { set: Vec::new(), ..args };
        if self.cell.method == EVERYTHING || data.problem().known_columns() > 0 {
            args.set = self.tried(&args, querent::nmppg::NAME)?;
        }
        let settings = train::reference(&args, data, self.cell.seed)?;
        let begun = Instant::now();
        let (subset, asked) = if self.cell.method == EVERYTHING {
            (fixed::everything_blocking(&self.engine, data, &settings)?, data.problem().features().len())
        } else {
            (fixed::subset_blocking(&self.engine, data, &settings, &[])?, 0)
        };
        self.times.training = begun.elapsed().as_secs_f64();
        let points = vec![Point::of_subset(&subset, self.prepared.metric, asked as f64)];
        self.curves.push(Curve { name: self.cell.method.clone(), points, paths: None });
        Ok(())
    }

    /// What `querent train` would try on the table, and found better. Data sets of the catalog keep their settings.
    fn tried(&self, args: &train::Args, method: &str) -> Result<Vec<String>, Failure> {
        if !self.is_file || args.minutes.is_some() {
            return Ok(Vec::new());
        }
        tried::better(args, self.talk, (methods::find(method)?, &self.engine), &self.prepared.data)
    }

    /// A decision tree that asks as it descends: of many, those that the validation rows choose.
    fn tree(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        let trees = tree::Trees::grow(&self.prepared.data);
        let chosen = trees.chosen(&self.prepared.data, self.prepared.metric, self.plan.options.points);
        self.times.training = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let data = &self.prepared.data;
        let at = |index: &usize| (*index as f64, trees.episodes(*index, data, Part::Test));
        let points: Vec<(f64, Episodes)> = chosen.iter().map(at).collect();
        self.times.evaluation = begun.elapsed().as_secs_f64();
        self.curve(tree::NAME, points)
    }

    /// A method, trained as `querent train` does it.
    fn trained(&mut self) -> Result<(), Failure> {
        let (cell, talk) = (self.cell, self.talk);
        let entry = methods::find(self.plan.options.method_of(&cell.method))?;
        let mut args = self.plan.train_args(&cell.method, self.problem, cell.seed);
        let aim = match (cell.alpha, entry.tradeoff, &self.plan.options.alphas) {
            (Some(alpha), ..) => Aim::One(alpha),
            (_, Tradeoff::Threshold, _) => Aim::Thresholds,
            (.., Some(alphas)) if alphas.len() > 1 => Aim::Range([alphas[0], alphas[alphas.len() - 1]]),
            _ => Aim::Found,
        };
        // What is tried is tried of the method itself, so that a variant is other in nothing but what was said.
        let of_method = self.plan.train_args(entry.name, self.problem, cell.seed);
        args.set = [self.tried(&of_method, entry.name)?, args.set].concat();
        let allotted = Allotted::new(&args, Instant::now(), 1)?;
        let job = Job {
            args: &args,
            talk,
            engine: &self.engine,
            prepared: &self.prepared,
            entry,
            aim: &aim,
            seed: cell.seed,
            folder: self.folder,
            place: String::new(),
        };
        let trained = job.train(allotted.as_ref())?;
        (self.times.training, self.epochs) = (trained.seconds, trained.epochs[0]);
        match aim {
            Aim::Thresholds => self.at_thresholds(&trained.model, &cell.method),
            Aim::One(alpha) => {
                // Beside its curve, a method that learns many α at once is another one when it learns each alone.
                let is_beside =
                    self.plan.cells.iter().any(|other| other.method == cell.method && other.alpha.is_none());
                let name = if is_beside { format!("{}{ALONE}", cell.method) } else { cell.method.clone() };
                self.at_alphas(&[(alpha, trained.model)], &name)
            }
            Aim::Range(_) | Aim::Found | Aim::Usual => {
                let curve = trained.model.curve();
                let places: Vec<(f64, f64)> = curve.iter().map(|point| (point.cost, point.loss)).collect();
                let chosen = representative(&places, self.plan.options.points);
                let at = |index: usize| {
                    let alpha = trained.model.alphas().map_or(0.0, |range| range.shown(curve[index].alpha));
                    Ok((alpha, trained.model.clone().with_tradeoff(alpha)?))
                };
                let models = chosen.into_iter().map(at).collect::<querent::Result<Vec<(f64, Model)>>>()?;
                self.at_alphas(&models, &cell.method)
            }
        }
    }

    fn at_alphas(&mut self, models: &[(f64, Model)], name: &str) -> Result<(), Failure> {
        let begun = Instant::now();
        let at = |(alpha, model): &(f64, Model)| {
            Ok((*alpha, episodes(model, &self.prepared.data, Part::Test, &Rules::default())?))
        };
        let points = models.iter().map(at).collect::<querent::Result<Vec<_>>>()?;
        self.times.evaluation = begun.elapsed().as_secs_f64();
        self.curve(name, points)
    }

    /// One rollout to the horizon has every threshold in it; validation rows say which are worth showing.
    fn at_thresholds(&mut self, model: &Model, name: &str) -> Result<(), Failure> {
        let data = self.prepared.data.clone();
        let on = Rules { may_stop: false, ..Rules::default() };
        let validation = episodes(model, &data, Part::Validation, &on)?;
        let labels = &data.splits()[Part::Validation as usize].y;
        let place = |traces: querent::policy::evaluate::Traces| {
            let summary = traces.summary(data.problem(), labels, 0.0);
            (summary.cost, summary.loss)
        };
        let most = self.plan.options.points;
        let allowed = |t: &f64| model.clone().with_tradeoff(*t).is_ok();
        let tried: Vec<f64> = thresholds(&validation).into_iter().filter(allowed).collect();
        let places: Vec<(f64, f64)> = tried.iter().map(|&t| place(validation.below(t as f32))).collect();
        let chosen = representative(&places, most);
        let begun = Instant::now();
        let test = episodes(model, &data, Part::Test, &on)?;
        self.times.evaluation = begun.elapsed().as_secs_f64();
        let cut = |&index: &usize| {
            let threshold = tried[index];
            (threshold, test.cut(|episode| episode.stop_below(threshold as f32)))
        };
        self.curve(name, chosen.iter().map(cut).collect())?;
        if name == fixed::NAME {
            // The same list, and everybody is asked the same number of it.
            let places: Vec<(f64, f64)> =
                (0..=model.steps()).map(|count| place(validation.after(count))).collect();
            let chosen = representative(&places, most);
            let cut = |&count: &usize| (count as f64, test.cut(|_| count));
            self.curve(FIXED_SET, chosen.iter().map(cut).collect())?;
        }
        Ok(())
    }

    /// Adds a curve: what was done with the test rows at each of its trade-offs.
    fn curve(&mut self, name: &str, points: Vec<(f64, Episodes)>) -> Result<(), Failure> {
        let (problem, metric) = (self.prepared.data.problem(), self.prepared.metric);
        let labels = &self.prepared.data.splits()[Part::Test as usize].y;
        let middle = points.len() / 2;
        let mut curve = Curve { name: name.into(), points: Vec::new(), paths: None };
        for (index, (tradeoff, episodes)) in points.into_iter().enumerate() {
            let traces = episodes.ended();
            let summary: Summary = traces.summary(problem, labels, 0.0);
            curve.points.push(Point::new(tradeoff, problem, metric, &summary));
            if index == middle {
                let answers = |feature| contexts(&self.prepared.data, Some(&self.prepared.encoding), feature);
                curve.paths = Some(Paths::new(tradeoff, problem, &traces, answers));
            }
            let before =
                format!("{},{},{},{tradeoff},", quoted(&self.cell.table), quoted(name), self.cell.seed);
            episodes.write_rows(problem, labels, &before, &mut self.rows)?;
        }
        self.curves.push(curve);
        Ok(())
    }

    /// The outcome comes last: when it is there, everything is.
    fn write(&mut self) -> Result<(), Failure> {
        let evaluation = self.folder.join(EVALUATION);
        if !self.rows.is_empty() {
            write_atomically(&evaluation, &[head()?, packed(&self.rows)?].concat())?;
        }
        let (data, problem) = (&self.prepared.data, self.prepared.data.problem());
        let outcome = Outcome {
            hash: self.cell.hash.clone(),
            table: self.cell.table.clone(),
            method: self.cell.method.clone(),
            seed: self.cell.seed,
            metric: self.prepared.metric,
            sizes: data.sizes(),
            features: problem.features().len(),
            classes: problem.classes().len(),
            full_cost: problem.features().iter().map(|feature| feature.cost).sum(),
            epochs: self.epochs,
            curves: std::mem::take(&mut self.curves),
        };
        self.times.all = self.begun.elapsed().as_secs_f64();
        for (name, value) in
            [(TIMES, serde_json::to_value(self.times)), (OUTCOME, serde_json::to_value(&outcome))]
        {
            let path = self.folder.join(name);
            let value = value.map_err(|error| Error::file(&path, error.to_string()))?;
            write_atomically(&path, format!("{value:#}").as_bytes())?;
        }
        Ok(())
    }
}

/// The first line of an evaluation file, packed by itself: files are put together by leaving it out of all but one.
///
/// # Errors
/// Memory cannot be written to, which it can.
pub fn head() -> std::io::Result<Vec<u8>> {
    packed(format!("table,method,seed,tradeoff,{COLUMNS}\n").as_bytes())
}

fn packed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes)?;
    packer.finish()
}
