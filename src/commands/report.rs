//! `querent report`: a run as one page.

use super::{Failure, Talk};
use querent::files::write_atomically;
use querent::report::page;
use querent::run::Run;
use querent::{Error, Model};
use std::io::Write;
use std::path::PathBuf;

/// Draw a run as one HTML page that needs nothing else: curve, training, paths, spending, calibration.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The folder of a run, as `querent train` leaves it.
    run: PathBuf,
    /// Where to write [default: report.html in the run's folder].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const HELP: &str = "\
Examples:
  querent report runs/clinic                     writes runs/clinic/report.html
  querent report runs/clinic --out clinic.html   writes elsewhere

With several α or seeds the page has the curve of all models, and the details of each. Every score comes with its standard \
error over the test rows, and the mean over several seeds with the deviation between them. Train with --baselines to have it \
compared with asking nothing, a fixed set and everything.";

/// Runs the command.
///
/// # Errors
/// There is no run, a model of it cannot be read, or the page cannot be written.
pub fn run(args: &Args, _: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let run = Run::load(&args.run)?;
    if run.points.is_empty() {
        return Err(Error::file(&args.run, "no model of this run is finished yet").into());
    }
    let models = run.models(|point| Model::load(args.run.join(&point.model)))?;
    let to = args.out.clone().unwrap_or_else(|| args.run.join("report.html"));
    write_atomically(&to, page(&run, &models).as_bytes())?;
    writeln!(out, "written: {}", to.display())?;
    Ok(())
}
