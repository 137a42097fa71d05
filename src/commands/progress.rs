//! Shows how training goes, and how far a table is: a bar on a terminal, plain lines elsewhere, nothing if it is to be
//! quiet.

use super::train::Pace;
use super::{Failure, Talk, interrupt, say};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use querent::data::table::{TableReader, unpacked};
use querent::train::Training;
use querent::{Engine, Error};
use std::fs::File;
use std::io::{BufReader, IsTerminal, Read};
use std::path::Path;

/// Shows how many rows of a table have been read, or what else is `done` with them: on a terminal all the time, elsewhere
/// now and then.
pub fn watched(table: TableReader, done: &'static str, talk: Talk) -> TableReader {
    if talk == Talk::Quiet {
        return table;
    }
    if !std::io::stderr().is_terminal() {
        return table.watched(5_000_000, move |rows| say(talk, format_args!("{rows} rows {done}")));
    }
    let bar = ProgressBar::new_spinner();
    table.watched(50_000, move |rows| bar.set_message(format!("{rows} rows {done}")))
}

/// Shows how far a table is that is read, and how many rows of it are done.
pub struct Meter {
    bar: ProgressBar,
    talk: Talk,
    terminal: bool,
    told: u64,
}

impl Meter {
    /// Opens a table; `-` is standard input.
    ///
    /// # Errors
    /// It cannot be read, or is no table.
    pub fn open(path: &Path, talk: Talk) -> querent::Result<(TableReader, Self)> {
        const BUFFER: usize = 1 << 20;
        let terminal = std::io::stderr().is_terminal() && talk > Talk::Quiet;
        let table = |path: &Path, bar: &ProgressBar, bytes: Box<dyn Read>| {
            let bytes = BufReader::with_capacity(BUFFER, bar.wrap_read(bytes));
            TableReader::read(path, unpacked(path, bytes)?, None)
        };
        let shown = |bar: ProgressBar| if terminal { bar } else { ProgressBar::hidden() };
        let (table, bar) = if path == Path::new("-") {
            let bar = shown(ProgressBar::new_spinner());
            (table(Path::new("standard input"), &bar, Box::new(std::io::stdin()))?, bar)
        } else {
            let file = File::open(path).map_err(|error| Error::io(path, error))?;
            // How far it is counts in bytes of the file: nobody knows how many rows there are.
            let size = file.metadata().map_err(|error| Error::io(path, error))?.len();
            let bar = shown(ProgressBar::new(size));
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent}%, {eta} left, {msg}") {
                bar.set_style(style);
            }
            (table(path, &bar, Box::new(file))?, bar)
        };
        Ok((table, Self { bar, talk, terminal, told: 0 }))
    }

    /// So many rows are done.
    pub fn tell(&mut self, rows: u64) {
        const EVERY: u64 = 100_000;
        if self.terminal {
            self.bar.set_message(format!("{rows} rows"));
        } else if rows / EVERY > self.told {
            self.told = rows / EVERY;
            say(self.talk, format_args!("{rows} rows"));
        }
    }

    /// All are.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Trains to the end, with a checkpoint after each epoch; with a pace, in time.
///
/// # Errors
/// Training failed, the checkpoint cannot be written, or it was interrupted.
pub fn train(
    engine: &Engine,
    trainer: &mut dyn Training,
    checkpoint: &Path,
    talk: Talk,
    mut pace: Option<Pace>,
) -> Result<(), Failure> {
    if let Some(pace) = &mut pace {
        pace.begin(trainer);
    }
    let terminal = std::io::stderr().is_terminal() && talk > Talk::Quiet;
    let most = trainer.epochs_at_most();
    let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {prefix} epochs, {rate} steps/s, {eta} left, {msg}")
    {
        let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{:.0}", state.per_sec());
        };
        bar.set_style(style.with_key("rate", rate));
    }
    if terminal {
        begin_epoch(&bar, trainer);
        // Whatever was done before `--resume` took no time now.
        bar.reset_eta();
    } else {
        say(
            talk,
            format_args!("training on {engine}: at most {most} epochs of {} steps", trainer.epoch_steps()),
        );
    }
    loop {
        let before = (trainer.epochs_behind() * trainer.epoch_steps()) as u64;
        let ended = if terminal {
            trainer.epoch_watched_blocking(&mut |step| bar.set_position(before + step as u64))?
        } else {
            trainer.epoch_blocking()?
        };
        let Some(epoch) = ended else { break };
        let line = format!("{}: {}", epoch.title(), epoch.headline(trainer.best()));
        if terminal {
            bar.set_message(line);
        } else {
            say(talk, format_args!("epoch {:3} {line}", epoch.index));
        }
        trainer.save_blocking(checkpoint)?;
        if let Some(pace) = &mut pace {
            pace.go_on(trainer);
        }
        if terminal {
            begin_epoch(&bar, trainer);
        }
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

/// Puts the bar where the next epoch begins. It counts training steps, as an epoch may take minutes.
fn begin_epoch(bar: &ProgressBar, trainer: &dyn Training) {
    let (behind, most, steps) = (trainer.epochs_behind(), trainer.epochs_at_most(), trainer.epoch_steps());
    bar.set_prefix(format!("{behind}/{most}"));
    bar.set_length((most * steps) as u64);
    bar.set_position((behind * steps) as u64);
}
