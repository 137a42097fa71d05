//! Shows how training goes: a bar on a terminal, plain lines elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use querent::nmppg::Trainer;
use querent::{Engine, Result};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

/// Trains to the end, with a checkpoint after each epoch if there is a place for it.
pub fn train(engine: &Engine, trainer: &mut Trainer, checkpoint: Option<&Path>) -> Result<()> {
    let terminal = std::io::stderr().is_terminal();
    let most = trainer.epochs_at_most();
    // An epoch of the warm-up is shorter on it than a later one.
    let bar = if terminal { ProgressBar::new(1000) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {prefix} epochs, {eta} left, {msg}") {
        bar.set_style(style);
    }
    let begin_epoch = |trainer: &Trainer| {
        bar.set_prefix(format!("{}/{most}", trainer.epochs_behind()));
        bar.set_position((1000.0 * trainer.epoch_span().start) as u64);
    };
    if terminal {
        begin_epoch(trainer);
        bar.reset_eta();
    } else {
        println!("training on {engine}: at most {most} epochs");
    }
    let instances = (trainer.epoch_steps() * trainer.stepper().batch()) as f64;
    loop {
        let before = Instant::now();
        let Some(epoch) = trainer.epoch_blocking()? else { break };
        let rate = instances / before.elapsed().as_secs_f64();
        let how = epoch.headline(trainer.best());
        let line = format!("{}: {how}, {rate:.0} instances/s", epoch.title());
        if terminal {
            begin_epoch(trainer);
            bar.set_message(line);
        } else {
            println!("epoch {:3} {line}", epoch.index);
        }
        if let Some(path) = checkpoint {
            trainer.save_blocking(path)?;
        }
    }
    bar.finish();
    Ok(())
}
