//! Settings that only trying can tell: tried once, before the first model of a run, and kept in its record, so that a run
//! that goes on has them as well.

use super::aim::Aim;
use super::{Args, settings};
use crate::commands::source::Source;
use crate::commands::{Failure, Talk, say};
use querent::Engine;
use querent::data::Dataset;
use querent::methods::Entry;
use querent::run::Run;

/// The arguments with what was tried and found better. Data sets of the catalog keep the settings that their results are
/// known with.
///
/// # Errors
/// Trying failed.
pub fn with_tried(
    args: &Args,
    talk: Talk,
    (entry, engine): (&Entry, &Engine),
    (source, data): (&Source, &Dataset),
    record: &mut Run,
) -> Result<Args, Failure> {
    let is_new = !record.points.iter().any(|point| point.method == entry.name);
    // A run that has to keep to a time has none for this.
    let may = args.minutes.is_none() && matches!(source, Source::File(_));
    if is_new && !record.tried.contains_key(entry.name) {
        let better = if may { better(args, talk, (entry, engine), data)? } else { Vec::new() };
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
    let said = |name: &str| {
        let names = args.set.iter().map(|assignment| assignment.split('=').next().unwrap_or_default().trim());
        names.into_iter().any(|said| said.rsplit('.').next() == Some(name))
            || (name == "predictor" && args.hidden.is_some())
    };
    entry.tried.iter().copied().filter(|name| !said(name)).collect()
}
