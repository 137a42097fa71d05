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
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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
    let bar = if terminal { ProgressBar::new(WHOLE) } else { ProgressBar::hidden() };
    // Training steps a second.
    let speed = Arc::new(AtomicU64::new(0));
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {prefix} epochs, {rate} steps/s, {eta} left, {msg}")
    {
        let speed = speed.clone();
        let rate = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}", speed.load(Ordering::Relaxed));
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
        let (span, steps) = (trainer.epoch_span(), trainer.epoch_steps());
        let mut begun: Option<(Instant, usize)> = None;
        let ended = if terminal {
            trainer.epoch_watched_blocking(&mut |step| {
                let (at, first) = *begun.get_or_insert_with(|| (Instant::now(), step));
                if step > first {
                    let rate = (step - first) as f64 / at.elapsed().as_secs_f64();
                    speed.store(rate.round() as u64, Ordering::Relaxed);
                }
                bar.set_position(place(&span, step as f64 / steps.max(1) as f64));
            })?
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

/// The length of a training's bar.
const WHOLE: u64 = 100_000;

/// The bar's place so far into an epoch: as an epoch may take minutes, it moves within one, and as those of the warm-up are
/// soon over, they are shorter on it.
fn place(span: &Range<f64>, share: f64) -> u64 {
    (WHOLE as f64 * (span.start + share * (span.end - span.start))) as u64
}

/// Puts the bar where the next epoch begins.
fn begin_epoch(bar: &ProgressBar, trainer: &dyn Training) {
    bar.set_prefix(format!("{}/{}", trainer.epochs_behind(), trainer.epochs_at_most()));
    bar.set_position(place(&trainer.epoch_span(), 0.0));
}
