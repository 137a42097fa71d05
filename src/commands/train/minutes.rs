//! `--minutes`: a schedule that fits into a time. A rehearsal on a few rows measures what steps and validations take in
//! each part of the schedule; epochs are made as long as fits, and longer or shorter on the way, as it turns out.

use super::Args;
use super::aim::Aim;
use crate::commands::Failure;
use querent::data::{Dataset, Part, Split};
use querent::methods::set::set;
use querent::methods::{self, Entry};
use querent::policy::evaluate;
use querent::policy::history::Phase;
use querent::train::Training;
use querent::{Engine, Error};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Training steps of the rehearsal's epochs, in turn: their difference has no validation in it.
const STEPS: [usize; 2] = [4, 12];
/// Validation rows of the rehearsal, at most.
const ROWS: usize = 256;
/// Share of the time that validations may take before there are fewer epochs instead of shorter ones.
const VALIDATIONS: f64 = 0.5;
/// Settings that a schedule's length is in, or that follow from it.
const LENGTHS: [&str; 4] = ["epoch_steps", "stage_epochs", "warm_up_epochs", "ema"];

/// Takes the settings out that `--minutes` decides on.
pub fn forget(settings: &mut Value) {
    let Value::Object(fields) = settings else { return };
    fields.retain(|name, _| !LENGTHS.contains(&name.as_str()));
    fields.values_mut().for_each(forget);
}

/// A setting by its last name.
fn setting<'a>(settings: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Object(fields) = settings else { return None };
    fields.get(name).or_else(|| fields.values().find_map(|inner| setting(inner, name)))
}

fn number(settings: &Value, name: &str) -> usize {
    setting(settings, name).and_then(Value::as_u64).unwrap_or(0) as usize
}

/// The lengths in the settings of a run that goes on, as assignments: it keeps them.
pub fn kept(settings: &Value) -> Vec<String> {
    let kept = LENGTHS.iter().filter_map(|name| Some(format!("{name}={}", setting(settings, name)?)));
    kept.collect()
}

/// The time of a run, and how many models are still to be trained in it.
pub struct Allotted {
    minutes: f64,
    ends: Instant,
    models: usize,
}

impl Allotted {
    /// The time that was said, from `start` on.
    ///
    /// # Errors
    /// It is none.
    pub fn new(args: &Args, start: Instant, models: usize) -> Result<Option<Self>, Failure> {
        let Some(minutes) = args.minutes else { return Ok(None) };
        match Duration::try_from_secs_f64(60.0 * minutes) {
            Ok(time) if !time.is_zero() && time < Duration::from_secs(u32::MAX.into()) => {
                Ok(Some(Self { minutes, ends: start + time, models }))
            }
            _ => Err(Failure::Refused(format!(
                "--minutes is {minutes}, but it must be a number of minutes above 0, such as 5 or 0.5"
            ))),
        }
    }

    /// A model needs none of it any more.
    pub fn done(&mut self) {
        self.models = self.models.saturating_sub(1);
    }

    /// When the next model is to be done.
    fn next(&self) -> Instant {
        let now = Instant::now();
        now + self.ends.saturating_duration_since(now) / self.models.max(1) as u32
    }
}

/// What an epoch takes in some part of the schedule, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rate {
    step: f64,
    validation: f64,
}

/// A part of the schedule: what its epochs take, and how many the rehearsal had.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    phase: Phase,
    rate: Rate,
    epochs: usize,
}

/// What is to be trained.
pub struct Task<'a> {
    pub entry: &'static Entry,
    pub engine: &'a Engine,
    pub data: &'a Dataset,
    pub aim: &'a Aim,
    /// The settings of the whole schedule.
    pub settings: &'a Value,
    /// Evaluations of the validation and of the test rows that follow the training.
    pub evaluations: [usize; 2],
}

/// How a training keeps to its time.
pub struct Pace {
    /// When it is to be over.
    ends: Instant,
    /// Each epoch of the schedule.
    epochs: Vec<Rate>,
    /// Steps of an epoch at first, and at most.
    steps: usize,
    most: usize,
    /// How much longer epochs take than they did in the rehearsal.
    slower: f64,
    at: usize,
    last: Instant,
}

impl Pace {
    /// Begins a training.
    pub fn begin(&mut self, trainer: &mut dyn Training) {
        self.at = self.place(trainer);
        self.last = Instant::now();
        if self.steps != trainer.epoch_steps() {
            trainer.set_epoch_steps(self.steps);
        }
    }

    /// Which epoch of the schedule is next. Early stopping skips some of them, and a method that knows its length only on
    /// the way may count more than there are: the end is where nothing is left.
    fn place(&self, trainer: &dyn Training) -> usize {
        let left = trainer.epochs_at_most().saturating_sub(trainer.epochs_behind());
        let all = self.epochs.len();
        trainer.history().len().max(all.saturating_sub(left)).min(all)
    }

    /// Decides after an epoch how long those that are left may be.
    pub fn go_on(&mut self, trainer: &mut dyn Training) {
        let now = Instant::now();
        if let Some(rate) = self.epochs.get(self.at) {
            let expected = rate.step * trainer.epoch_steps() as f64 + rate.validation;
            let ratio = now.duration_since(self.last).as_secs_f64() / expected.max(1e-9);
            self.slower = (0.5 * (self.slower + ratio)).clamp(0.5, 20.0);
        }
        (self.at, self.last) = (self.place(trainer), now);
        let rest = &self.epochs[self.at..];
        if rest.is_empty() {
            return;
        }
        let left = self.ends.saturating_duration_since(now).as_secs_f64() / self.slower;
        let steps = fitting(left, rest).clamp(1, self.most);
        if steps != trainer.epoch_steps() {
            trainer.set_epoch_steps(steps);
        }
    }
}

/// Training steps of each of some epochs that fit into some seconds with their validations.
fn fitting(seconds: f64, epochs: &[Rate]) -> usize {
    let sum = |of: fn(&Rate) -> f64| epochs.iter().map(of).sum::<f64>();
    let (steps, validations) = (sum(|rate| rate.step), sum(|rate| rate.validation));
    // What is not a number becomes 0.
    ((seconds - validations) / steps.max(1e-12)).floor().max(0.0) as usize
}

/// A schedule that fits: assignments that change the settings, how to keep to it, and what to say about it. A run that goes
/// on has so many epochs behind it and keeps its schedule: only what is left has to fit, by shorter epochs.
///
/// # Errors
/// There is no time for even the shortest; or the rehearsal failed.
pub fn plan(
    task: &Task,
    allotted: &Allotted,
    behind: Option<usize>,
) -> Result<(Vec<String>, Pace, String), Failure> {
    let begun = Instant::now();
    let ends = allotted.next();
    let (measured, row) = rehearse(task)?;
    let [_, validation, test] = task.data.sizes();
    let after = row * (task.evaluations[0] * validation + task.evaluations[1] * test) as f64;
    let left = ends.saturating_duration_since(Instant::now()).as_secs_f64() - after;
    let whole = [number(task.settings, "warm_up_epochs"), number(task.settings, "stage_epochs")];
    let schedule = |[warm_up, stage]: [usize; 2]| -> Vec<Rate> {
        let times = |part: &Measured| match part.phase {
            Phase::WarmUp => warm_up,
            // A part that does not end after as many epochs as the settings say has a length of its own.
            Phase::Stage(_) if part.epochs > STEPS.len() => part.epochs,
            Phase::Stage(_) => stage,
        };
        measured.iter().flat_map(|part| std::iter::repeat_n(part.rate, times(part))).collect()
    };
    let most = whole_passes(task);
    let mut counts = whole;
    let validations = |counts| schedule(counts).iter().map(|rate| rate.validation).sum::<f64>();
    while behind.is_none() && validations(counts) > VALIDATIONS * left && counts[1] > 1 {
        let stage = counts[1] - 1;
        counts = [(whole[0] * stage).div_ceil(whole[1]), stage];
    }
    let all = schedule(counts);
    let epochs = &all[behind.unwrap_or(0).min(all.len())..];
    let steps = if epochs.is_empty() { most } else { fitting(left, epochs).min(most) };
    let minutes = |seconds: f64| format!("{:.2}", seconds / 60.0);
    if steps == 0 {
        let least: f64 = epochs.iter().map(|rate| rate.step + rate.validation).sum();
        let seconds = (1.2 * (least + after) + begun.elapsed().as_secs_f64()) * allotted.models.max(1) as f64;
        return Err(Failure::Refused(format!(
            "--minutes {} is too short: {} epochs of a single step, with their validations, need about {}",
            allotted.minutes,
            epochs.len(),
            minutes(seconds)
        )));
    }
    let takes: f64 = epochs.iter().map(|rate| rate.step * steps as f64 + rate.validation).sum();
    let mut changes = Vec::new();
    let said = if steps == most && counts == whole {
        let what = if behind.is_none() { "the whole schedule" } else { "what is left" };
        format!("--minutes {}: {what} fits, at most {} min", allotted.minutes, minutes(takes))
    } else if behind.is_some() {
        format!(
            "--minutes {}: {} epochs are left, of about {steps} training steps each instead of {most}",
            allotted.minutes,
            epochs.len()
        )
    } else {
        let named = ["warm_up_epochs", "stage_epochs"].into_iter().zip(counts).zip(whole);
        changes.extend(named.filter(|((_, now), was)| now != was).map(|((n, now), _)| format!("{n}={now}")));
        changes.push(format!("epoch_steps={steps}"));
        format!(
            "--minutes {}: {} epochs of {steps} training steps each, where the whole schedule has {} of {most}",
            allotted.minutes,
            epochs.len(),
            schedule(whole).len(),
        )
    };
    let ends = Instant::now() + Duration::from_secs_f64(left.max(0.0));
    Ok((changes, Pace { ends, epochs: all, steps, most, slower: 1.0, at: 0, last: ends }, said))
}

/// Training steps of an epoch as the settings have them: whole passes over the rows, at least one.
fn whole_passes(task: &Task) -> usize {
    let rows = task.data.sizes()[0];
    let pass = methods::pass(rows, number(task.settings, "batch"));
    methods::whole_passes(number(task.settings, "epoch_steps"), pass)
}

/// Goes through the whole schedule in a few steps: what each part takes, and how long one row is evaluated.
fn rehearse(task: &Task) -> Result<(Vec<Measured>, f64), Error> {
    let few = excerpt(task.data, STEPS[1] * number(task.settings, "batch").max(1))?;
    let mut settings = task.settings.clone();
    let warm_up = if number(&settings, "warm_up_epochs") == 0 { 0 } else { STEPS.len() };
    for change in [format!("warm_up_epochs={warm_up}"), "stage_epochs=2".into(), "patience=3".into()] {
        set(&mut settings, &change, task.entry.renamed)?;
    }
    if *task.aim == Aim::Found {
        // A few steps may not find one; the work is the same in any.
        settings["alpha"] = json!([0.001, 1.0]);
    }
    let mut trainer = (task.entry.start)(task.engine, &few, settings)?;
    let mut parts: Vec<(Phase, [Vec<f64>; 2])> = Vec::new();
    for turn in (0..STEPS.len()).cycle() {
        trainer.set_epoch_steps(STEPS[turn]);
        let begun = Instant::now();
        let Some(epoch) = trainer.epoch_blocking()? else { break };
        let seconds = begun.elapsed().as_secs_f64();
        if parts.last().is_none_or(|(phase, _)| *phase != epoch.phase) {
            parts.push((epoch.phase, Default::default()));
        }
        if let Some((_, times)) = parts.last_mut() {
            times[turn].push(seconds);
        }
    }
    let share = task.data.sizes()[1] as f64 / few.sizes()[1].max(1) as f64;
    let measured = parts.into_iter().map(|(phase, times)| {
        let epochs = times[0].len() + times[1].len();
        let rate = rate(times.map(|times| times.iter().copied().fold(f64::INFINITY, f64::min)));
        Measured { phase, epochs, rate: Rate { validation: share * rate.validation, ..rate } }
    });
    let measured = measured.collect();
    let model = trainer.finish_blocking()?;
    let begun = Instant::now();
    evaluate::outcomes(&model, &few, Part::Validation, f64::INFINITY)?;
    Ok((measured, begun.elapsed().as_secs_f64() / few.sizes()[1].max(1) as f64))
}

/// From how long an epoch of few steps and one of more took; a time that was not measured is infinite.
fn rate([few, more]: [f64; 2]) -> Rate {
    let [fewer, longer] = STEPS.map(|steps| steps as f64);
    match (few.is_finite(), more.is_finite()) {
        (true, true) if more > few => {
            let step = (more - few) / (longer - fewer);
            Rate { step, validation: (few - fewer * step).max(0.0) }
        }
        (_, true) => Rate { step: more / longer, validation: 0.0 },
        (true, _) => Rate { step: few / fewer, validation: 0.0 },
        _ => Rate { step: 0.0, validation: 0.0 },
    }
}

/// The first rows of a table.
fn excerpt(data: &Dataset, train: usize) -> Result<Dataset, Error> {
    let columns = data.problem().columns();
    let most = [train, ROWS, 0];
    let rows = |part: usize| data.sizes()[part].min(most[part]);
    let labels = |part: usize| data.splits()[part].y[..rows(part)].to_vec();
    if let Some(images) = data.images() {
        let splits = [0, 1, 2].map(|part| (images[part][..rows(part) * columns].to_vec(), labels(part)));
        return Dataset::of_bytes(data.problem().clone(), splits);
    }
    let [a, b, c] = [0, 1, 2]
        .map(|part| Split { x: data.splits()[part].x[..rows(part) * columns].to_vec(), y: labels(part) });
    Dataset::new(data.problem().clone(), a, b, c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_fit_into_what_validations_leave() {
        let epochs = [Rate { step: 0.1, validation: 1.0 }, Rate { step: 0.3, validation: 2.0 }];
        assert_eq!(fitting(7.1, &epochs), 10);
        assert_eq!(fitting(3.0, &epochs), 0);
        assert_eq!(fitting(-5.0, &epochs), 0);
        assert!(fitting(1.0, &[]) > 1_000);
        let measured = rate([2.0 + 4.0 * 0.5, 2.0 + 12.0 * 0.5]);
        assert!((measured.step - 0.5).abs() < 1e-12 && (measured.validation - 2.0).abs() < 1e-12);
        // What was disturbed is no negative step.
        assert_eq!(rate([5.0, 4.5]), Rate { step: 0.375, validation: 0.0 });
        assert_eq!(rate([f64::INFINITY, 6.0]).step, 0.5);
    }

    #[test]
    fn lengths_are_found_wherever_they_are() {
        let mut settings =
            json!({ "alpha": 1, "schedule": { "epoch_steps": 7, "ema": 0.5, "tail": 0.1 }, "seed": 0 });
        assert_eq!(kept(&settings), ["epoch_steps=7", "ema=0.5"]);
        forget(&mut settings);
        assert_eq!(settings, json!({ "alpha": 1, "schedule": { "tail": 0.1 }, "seed": 0 }));
    }
}
