//! The folder of a run: begun, gone on with, or cleared for another one.

use super::Args;
use super::aim::Aim;
use super::lock::Lock;
use crate::commands::Failure;
use crate::commands::source::Source;
use querent::data::table::Prepared;
use querent::methods::Entry;
use querent::run::{FILE, Point, Run};
use querent::train::differences;
use querent::{Engine, Error, Model, files};
use serde_json::Value;
use std::path::{Component, Path};

/// The checkpoint beside a model.
pub const CHECKPOINT: &str = "checkpoint.safetensors";

/// The run to go on with, or a new one, in a folder that nobody else trains in; whatever is not meant to be there is refused
/// or, if so said, cleared.
///
/// # Errors
/// There is a run already, one of another problem, another process at work, or the folder cannot be made.
pub fn open(
    folder: &Path,
    args: &Args,
    source: &Source,
    prepared: &Prepared,
    engine: &Engine,
) -> Result<(Run, Lock), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    let lock = Lock::take(folder)?;
    files::clear_remains(&folder.join(FILE));
    let there = folder.join(FILE).exists();
    // A record without a model is that of a run that has only begun: what there is of it is a checkpoint, if anything.
    let is_taken = there && Run::load(folder).map_or(true, |run| !run.points.is_empty());
    if is_taken && !args.resume && !args.force {
        let what = "there is a run in it already; --resume goes on with it, --force begins it anew, --out writes elsewhere";
        return Err(Error::file(folder, what).into());
    }
    if there && args.force {
        clear(folder)?;
    }
    if there && args.resume {
        // The files may be elsewhere by now.
        let before = resumed(folder, args, prepared)?;
        return Ok((Run { data_dir: source.data_dir(), problem_file: source.file(), ..before }, lock));
    }
    Ok((fresh(args, source, prepared, engine), lock))
}

/// Removes a run's files, and nothing else: a new one that is interrupted must not be taken for the old one.
fn clear(folder: &Path) -> Result<(), Failure> {
    let mut ours = vec![folder.join(FILE), folder.join("report.html")];
    // If it cannot be read, its models are not known; they will be written over.
    for point in Run::load(folder).map_or(Vec::new(), |run| run.points) {
        let model = Path::new(&point.model);
        if model.components().all(|part| matches!(part, Component::Normal(_))) {
            ours.extend([folder.join(model), folder.join(model).with_file_name(CHECKPOINT)]);
        }
    }
    for file in ours {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&file, error).into());
            }
            _ => files::clear_remains(&file),
        }
    }
    Ok(())
}

/// Makes sure that a model in its folder is begun as was said: one that was interrupted is not lost by mistake, and its
/// checkpoint is not taken for that of a run that begins anew, whose table may be another.
///
/// # Errors
/// There is a checkpoint, and neither --resume nor --force was said; or it cannot be removed.
pub fn begin(place: &Path, args: &Args) -> Result<(), Failure> {
    let file = place.join(CHECKPOINT);
    if args.resume || !file.exists() {
        return Ok(());
    }
    if !args.force {
        let what = "a run was interrupted here; --resume goes on with it, --force begins it anew, --out writes elsewhere";
        return Err(Error::file(file, what).into());
    }
    std::fs::remove_file(&file).map_err(|error| Error::io(&file, error).into())
}

/// Refuses to take a finished model for one that was trained with other settings.
///
/// # Errors
/// They differ: which ones.
pub fn same_settings(folder: &Path, point: &Point, mut now: Value, args: &Args) -> Result<(), Failure> {
    let file = folder.join(&point.model);
    // One that cannot be read is complained about where it is needed.
    let Ok(model) = Model::load(&file) else { return Ok(()) };
    let mut before = model.settings().clone();
    if args.minutes.is_some() {
        // How long they are was measured, and is so anew each time.
        for settings in [&mut before, &mut now] {
            super::minutes::forget(settings);
        }
    }
    let found = differences(&before, &now);
    if found.is_empty() {
        return Ok(());
    }
    Err(Error::file(
        file,
        format!(
            "it was trained with other settings: {}. --resume goes on with those of before; --force begins anew, --out \
             writes elsewhere",
            found.join("; ")
        ),
    )
    .into())
}

/// Refuses to write a model over one of something else that the run has.
///
/// # Errors
/// It would be.
pub fn is_free(folder: &Path, file: &str, record: &Run, entry: &Entry, aim: &Aim) -> Result<(), Failure> {
    let Some(taken) = record.points.iter().find(|point| point.model == file) else { return Ok(()) };
    let of = match taken.range {
        Some([from, to]) => format!("α {from} to {to}"),
        None => format!("{} {}", taken.symbol(), taken.alpha),
    };
    Err(Error::file(
        folder.join(file),
        format!(
            "it is a model of {}, {of}, seed {}, and this would be one of {}, {}: --force begins anew, --out writes elsewhere",
            taken.method,
            taken.seed,
            entry.name,
            aim.meaning()
        ),
    )
    .into())
}

fn fresh(args: &Args, source: &Source, prepared: &Prepared, engine: &Engine) -> Run {
    Run {
        command: std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        data_dir: source.data_dir(),
        problem_file: source.file(),
        sample: args.sample,
        ..Run::new(&args.problem, &engine.to_string(), &prepared.data, &prepared.encoding)
    }
}

/// The run in a folder, if it is of the same problem.
fn resumed(folder: &Path, args: &Args, prepared: &Prepared) -> Result<Run, Failure> {
    let record = Run::load(folder)?;
    if record.sample != args.sample {
        let was = record.sample.map_or("all rows".into(), |rows| format!("--sample {rows}"));
        let what = format!("the run in it was begun with {was}; --force begins anew, --out writes elsewhere");
        return Err(Error::file(folder, what).into());
    }
    let problem = prepared.data.problem();
    if record.problem != args.problem
        || record.sizes != prepared.data.sizes()
        || record.columns != problem.columns()
    {
        return Err(Error::file(
            folder,
            format!(
                "the run in it is of `{}`, or of a table that has changed since; --force begins anew, --out writes elsewhere",
                record.problem
            ),
        )
        .into());
    }
    Ok(record)
}
