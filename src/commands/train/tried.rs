//! Settings that only trying can tell: tried once, before the first model of a run, and kept in its record, so that a run
//! that goes on has them as well.

use super::aim::Aim;
use super::engine::{Trained, said};
use super::{Args, settings};
use crate::commands::source::Source;
use crate::commands::{Failure, Talk, say};
use querent::Engine;
use querent::data::Dataset;
use querent::methods::Entry;
use querent::run::Run;

/// The arguments with what was tried and found better, and with the batch that the engine gains by, if it does. Data sets of the catalog keep the settings that their results are
/// known with, but for the batch.
///
/// # Errors
/// Trying failed.
pub fn with_tried(
    trained: &Trained,
    (engine, batch): (&Engine, Option<String>),
    source: &Source,
    record: &mut Run,
) -> Result<Args, Failure> {
    let Trained { args, talk, entry, data, .. } = *trained;
    let is_new = !record.points.iter().any(|point| point.method == entry.name);
    // A run that has to keep to a time has none for this.
    let may = args.minutes.is_none() && matches!(source, Source::File(_));
    if is_new && !record.tried.contains_key(entry.name) {
        let mut better = if may { better(args, talk, (entry, engine), data)? } else { Vec::new() };
        better.extend(batch);
        record.tried.insert(entry.name.to_string(), better);
    }
    let tried = record.tried.get(entry.name).cloned().unwrap_or_default();
    // What was said comes last, as the last one counts.
    Ok(Args { set: [tried, args.set.clone()].concat(), ..args.clone() })
}

/// Tries what nobody has decided on: the assignments that are better than the defaults.
///
/// # Errors
/// Trying failed.
pub fn better(
    args: &Args,
    talk: Talk,
    (entry, engine): (&Entry, &Engine),
    data: &Dataset,
) -> Result<Vec<String>, Failure> {
    let names = open(args, entry);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    say(talk, format_args!("trying {} on a predictor that sees everything", names.join(" and ")));
    let mut better = Vec::new();
    let start = settings(args, entry, data, &Aim::One(1.0), args.seeds[0])?;
    for trial in (entry.try_blocking)(engine, data, &start, &names)? {
        let [without, with] = trial.losses;
        let verdict = if trial.kept { "taken" } else { "not taken" };
        let what = &trial.assignment;
        say(talk, format_args!("  {what}: validation loss {with:.4}, {without:.4} without: {verdict}"));
        if trial.kept {
            better.push(trial.assignment);
        }
    }
    Ok(better)
}

/// The settings that nobody has decided on.
fn open(args: &Args, entry: &Entry) -> Vec<&'static str> {
    let is_said = |name: &str| said(args, name) || (name == "predictor" && args.hidden.is_some());
    entry.tried.iter().copied().filter(|name| !is_said(name)).collect()
}
