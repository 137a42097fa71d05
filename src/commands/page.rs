//! `querent page`: a model as one HTML file that asks.

use super::choice::Choice;
use super::{Failure, Talk, say};
use querent::Model;
use querent::asking::{expected, html};
use querent::files::write_atomically;
use std::io::Write;
use std::path::PathBuf;

/// Make one HTML file that asks: no server, no network.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A model.safetensors.
    model: PathBuf,
    /// Where to write [default: ask.html in the model's folder].
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What may be spent on a case, until the page is told otherwise: what no longer fits is not asked for.
    #[arg(long, value_name = "COST", default_value_t = f64::INFINITY)]
    budget: f64,
    #[command(flatten)]
    choice: Choice,
}

const HELP: &str = "\
Examples:
  querent page runs/clinic/model.safetensors -o ask.html
  querent page model.safetensors --target 0.9    begins where `querent ask` does
  querent page model.safetensors --budget 20     with a limit for each case

The file holds the model and the code that asks; whoever opens it, from a disk or on a phone, is asked as by `querent ask`. \
What is answered stays in the page. Who has the file has the model: the names and words of its table and the ranges of its \
numbers, but no row of it, unless the method keeps rows to compare with (AACO). Then it is said here and in the page.";

/// Runs the command.
///
/// # Errors
/// The model cannot be read, the budget makes no sense, or the page cannot be written.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let to = args.out.clone().unwrap_or_else(|| args.model.with_file_name("ask.html"));
    let is_page = to
        .extension()
        .is_some_and(|ending| ["html", "htm"].iter().any(|html| ending.eq_ignore_ascii_case(html)));
    if !is_page {
        return Err(Failure::Refused(format!(
            "--out is {}, but a page's name ends in .html: nothing else is written over",
            to.display()
        )));
    }
    let model = args.choice.apply(Model::load(&args.model)?)?;
    let page = html::page(&model, args.budget)?;
    if let Some(expected) = expected(&model) {
        say(talk, expected);
    }
    write_atomically(&to, page.as_bytes())?;
    match model.policy().rows() {
        0 => {}
        rows => writeln!(
            out,
            "the page holds {rows} rows of the training table, which {} compares a case with: whoever has the page has them",
            model.method()
        )?,
    }
    say(talk, format_args!("{} kB", page.len().div_ceil(1000)));
    writeln!(out, "written: {}", to.display())?;
    Ok(())
}
