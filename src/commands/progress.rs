//! Shows how training goes: a bar on a terminal, plain lines elsewhere, nothing if it is to be quiet.

use super::{Failure, Talk, interrupt, say};
use indicatif::{ProgressBar, ProgressStyle};
use querent::Engine;
use querent::data::table::TableReader;
use querent::train::Training;
use std::io::IsTerminal;
use std::path::Path;

/// Shows how many rows of a table have been read: on a terminal all the time, elsewhere now and then.
pub fn watched(table: TableReader, talk: Talk) -> TableReader {
    if talk == Talk::Quiet {
        return table;
    }
    if !std::io::stderr().is_terminal() {
        return table.watched(5_000_000, move |rows| say(talk, format_args!("{rows} rows read")));
    }
    let bar = ProgressBar::new_spinner();
    table.watched(50_000, move |rows| bar.set_message(format!("{rows} rows read")))
}

/// Trains to the end, with a checkpoint after each epoch.
///
/// # Errors
/// Training failed, the checkpoint cannot be written, or it was interrupted.
pub fn train(
    engine: &Engine,
    trainer: &mut dyn Training,
    checkpoint: &Path,
    talk: Talk,
) -> Result<(), Failure> {
    let terminal = std::io::stderr().is_terminal() && talk > Talk::Quiet;
    let most = trainer.epochs_at_most() as u64;
    let bar = if terminal { ProgressBar::new(most) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} epochs, {eta} left, {msg}") {
        bar.set_style(style);
    }
    if terminal {
        bar.set_position(trainer.epochs_behind() as u64);
        bar.tick();
    } else {
        say(talk, format_args!("training on {engine}: at most {most} epochs"));
    }
    while let Some(epoch) = trainer.epoch_blocking()? {
        let line = format!("{}: {}", epoch.title(), epoch.headline(trainer.best()));
        if terminal {
            bar.set_position(trainer.epochs_behind() as u64);
            bar.set_message(line);
        } else {
            say(talk, format_args!("epoch {:3} {line}", epoch.index));
        }
        trainer.save_blocking(checkpoint)?;
        if interrupt::pressed() {
            bar.abandon();
            return Err(Failure::Refused(format!(
                "interrupted after epoch {}; {} is kept: the same command with --resume goes on from there",
                epoch.index,
                checkpoint.display()
            )));
        }
    }
    bar.finish_and_clear();
    Ok(())
}
