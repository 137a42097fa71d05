//! `querent ask`: one case, asked through in the terminal or by another program.

mod advance;
mod terminal;

use super::choice::Choice;
use super::{Failure, Talk, interrupt, say};
use querent::Model;
use querent::asking::{expected, lines};
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use terminal::Terminal;

/// Ask for one measurement after the other, then answer.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A model.safetensors.
    model: PathBuf,
    /// What may be spent: what no longer fits is not asked for.
    #[arg(long, value_name = "COST", default_value_t = f64::INFINITY)]
    budget: f64,
    #[command(flatten)]
    choice: Choice,
    /// An answer in advance, given when it is asked for; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "json")]
    answer: Vec<String>,
    /// Say with each question, and at the end, what else would have been asked and how near the stop is.
    #[arg(long, conflicts_with = "json")]
    why: bool,
    /// Speak JSON, a line at a time, for programs.
    #[arg(long)]
    json: bool,
    /// With --json: any number of cases, one after the other.
    #[arg(long, requires = "json")]
    repeat: bool,
}

// Examples fit 80 columns; a paragraph is one line, which clap breaks where the terminal ends.
const HELP: &str = "\
Examples:
  querent ask model.safetensors
  querent ask model.safetensors --spend 4       as much as costs 4 on average
  querent ask model.safetensors --target 0.9    as little as reaches this score
  querent ask model.safetensors --budget 10     never more than 10
  querent ask model.safetensors --answer age=31 --answer cough=mild
  printf '38.9\\nyes\\nn/a\\n' | querent ask model.safetensors

Answer with a number or a word as the table has them, in its units; with n/a if a measurement cannot be had (something \
else is asked for then); with `missing` if it was made and gave nothing. `back` undoes the last answer, `why` says what \
else would be asked and how near the stop is, `?` what can be answered. Upper and lower case are the same. A word that \
looks mistyped is asked for again; said again, it is taken. A number outside of the training rows' range, or a word they \
do not have, is taken with a warning. Where a word of the table is also one of these, a colon in front tells them apart: \
`:back`.

With --json each line of output is one object, each line of input answers one:
  {\"ask\":\"temperature\",\"feature\":0,\"cost\":1.0,\"spent\":0.0,
   \"fields\":[{\"name\":\"temperature\",\"unit\":\"°C\",…}],\"belief\":{\"flu\":0.4,…}}
      answered by {\"answer\":38.9}, or {\"answer\":[…]} for several fields;
      {\"answer\":null} for n/a, {\"answer\":[null]} for a missing one
  {\"given\":[fields]}
      what is known from the start, answered by {\"answer\":[…]}
  {\"warning\":\"…\"}, {\"error\":\"…\"}
      the question is asked again after an error
  {\"predict\":\"flu\",\"belief\":{…},\"spent\":3.0,\"asked\":[…],\"why\":{…}}
      the last line of a case
Instead of an answer, {\"back\":true} undoes the last one and {\"why\":true} is told
  {\"why\":{\"wanted\":[{\"feature\":\"temperature\",\"share\":0.7},…],
   \"stop\":{\"share\":0.1},\"stops\":false}}

With --repeat, {\"next\":true} after the last line (or at any time) begins the next case, {\"back\":true} opens the one that \
has ended again, and the end of the input between two cases is a good end. docs/asking.md has an example.

The exit code is 0 if an answer was reached, 2 if the input ended before, or after Ctrl-C.";

impl From<lines::Failure> for Failure {
    fn from(failure: lines::Failure) -> Self {
        match failure {
            lines::Failure::Line(error) => Self::Output(error),
            ended @ lines::Failure::Ended(_) => Self::Refused(ended.to_string()),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The model cannot be read, the budget makes no sense, or the input ended too early.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let model = args.choice.apply(Model::load(&args.model)?)?;
    if let (Some(expected), false) = (expected(&model), args.json) {
        say(talk, expected);
    }
    let session = model.session().with_budget(args.budget)?;
    interrupt::answer("interrupted: this case has no answer, and nothing was kept of it", true);
    let mut lines = std::io::stdin().lock().lines();
    let mut next_line = move || lines.next().transpose();
    if args.json {
        return Ok(lines::talk(&session, args.repeat, &mut next_line, out)?);
    }
    let answers = advance::in_advance(&model, &args.answer)?;
    let echo = !std::io::stdin().is_terminal();
    let terminal = Terminal { talk, out, next_line: &mut next_line, answers, echo, why: args.why };
    terminal.case(&session)
}
