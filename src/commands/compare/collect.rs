//! Puts the outcomes of the cells together: tables for programs, a page for people.

use super::cell::{EVALUATION, head};
use super::plan::Plan;
use super::text;
use crate::commands::Failure;
use querent::compare::{Cell, Outcome, Standing, State, Times};
use querent::files::{Writing, write_atomically};
use querent::policy::evaluate::quoted;
use querent::report::{Notes, comparison, curves, save};
use querent::{Error, nmppg};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

/// Writes all that can be said by now. Of cells that have failed a moment ago the reason is known, also where their folder
/// cannot say it. How many have failed.
///
/// # Errors
/// A file cannot be written, or no cell is done.
pub fn run(
    plan: &Plan,
    folder: &Path,
    known: &[(usize, String)],
    out: &mut impl Write,
) -> Result<usize, Failure> {
    let (mut done, mut cells, mut failed, mut open) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, cell) in plan.cells.iter().enumerate() {
        let why = known.iter().find(|(failed, _)| *failed == number).map(|(_, why)| why.clone());
        match cell.state(folder) {
            State::Done(outcome) => {
                done.push(*outcome);
                cells.push(cell);
            }
            State::Failed(why) => failed.push((cell, why)),
            State::Open => match why {
                Some(why) => failed.push((cell, why)),
                None => open.push(cell),
            },
        }
    }
    if done.is_empty() {
        let mut why = String::from("no cell is done yet");
        failed.iter().for_each(|(cell, said)| why += &format!("\n  failed: {}: {said}", cell.name()));
        return Err(Failure::Refused(why));
    }
    let standings = Standing::all(&done);
    write_atomically(&folder.join("results.csv"), results(&done).as_bytes())?;
    write_atomically(&folder.join("times.csv"), times(&done, &cells).as_bytes())?;
    write_atomically(&folder.join("areas.csv"), areas(&standings).as_bytes())?;
    evaluation(folder, &cells)?;
    save(&curves(&standings), folder.join("curves"))?;
    let notes = Notes {
        querent: plan.querent.clone(),
        settings: plan.options.words(),
        failed: failed.iter().map(|(cell, why)| format!("{}: {why}", cell.name())).collect(),
        open: open.len(),
        about: nmppg::NAME.into(),
    };
    write_atomically(&folder.join("report.html"), comparison(&standings, &notes).as_bytes())?;
    text::show(&standings, out)?;
    for (cell, why) in &failed {
        writeln!(out, "failed: {}: {why}", cell.name())?;
    }
    if !open.is_empty() {
        writeln!(out, "not done yet: {} of {} cells", open.len(), plan.cells.len())?;
    }
    Ok(failed.len())
}

/// A line for each point.
fn results(done: &[(Outcome, Times)]) -> String {
    let mut csv = String::from(
        "table,method,seed,tradeoff,metric,score,score_error,cost,accuracy,macro_f1,loss,questions,first,first_share\n",
    );
    for (outcome, _) in done {
        for curve in &outcome.curves {
            for p in &curve.points {
                let (first, share) = p.first.first().cloned().unwrap_or_default();
                // Writing to a string cannot fail.
                let _ = writeln!(
                    csv,
                    "{},{},{},{},{},{},{},{},{},{},{},{},{},{share}",
                    quoted(&outcome.table),
                    quoted(&curve.name),
                    outcome.seed,
                    p.tradeoff,
                    outcome.metric,
                    p.score,
                    p.score_error,
                    p.cost,
                    p.accuracy,
                    p.macro_f1,
                    p.loss,
                    p.acquisitions,
                    quoted(&first)
                );
            }
        }
    }
    csv
}

/// What each cell took: apart from the results, which are the same whenever they are made.
fn times(done: &[(Outcome, Times)], cells: &[&Cell]) -> String {
    let mut csv =
        String::from("table,method,seed,what,epochs,training_seconds,evaluation_seconds,all_seconds\n");
    for ((outcome, times), cell) in done.iter().zip(cells) {
        let _ = writeln!(
            csv,
            "{},{},{},{},{},{:.3},{:.3},{:.3}",
            quoted(&cell.table),
            quoted(&cell.method),
            cell.seed,
            cell.what(),
            outcome.epochs,
            times.training,
            times.evaluation,
            times.all
        );
    }
    csv
}

/// What lies between each two curves.
fn areas(standings: &[Standing]) -> String {
    let mut csv = String::from("table,one,other,difference,standard_error,seeds,up_to_cost\n");
    for standing in standings {
        for (index, one) in standing.methods.iter().enumerate() {
            for other in &standing.methods[index + 1..] {
                let Some(between) = standing.between(one, other) else { continue };
                let _ = writeln!(
                    csv,
                    "{},{},{},{},{},{},{}",
                    quoted(&standing.table),
                    quoted(&one.name),
                    quoted(&other.name),
                    between.mean,
                    between.error,
                    between.seeds,
                    standing.reach
                );
            }
        }
    }
    csv
}

/// The cells' evaluation files as one: packed parts follow each other, so nothing is unpacked.
fn evaluation(folder: &Path, cells: &[&Cell]) -> Result<(), Failure> {
    let head = head()?;
    let mut all = Writing::begin(&folder.join(EVALUATION))?;
    all.write(&head)?;
    for cell in cells {
        let path = folder.join(&cell.folder).join(EVALUATION);
        match std::fs::read(&path) {
            Ok(bytes) => all.write(bytes.strip_prefix(&head[..]).unwrap_or(&bytes))?,
            // What is asked at once has no steps.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(&path, error).into()),
        }
    }
    Ok(all.finish()?)
}
