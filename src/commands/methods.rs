//! `querent methods`: which there are, and what can be set.

use super::{Failure, write_table};
use querent::data::synthetic;
use querent::methods::{METHODS, Tradeoff, find};
use serde_json::Value;
use std::io::Write;

/// List the methods, or the settings of one with their defaults.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A method.
    name: Option<String>,
}

const HELP: &str = "\
Examples:
  querent methods           what there is
  querent methods gdfs      what can be set with --set, and what it is otherwise
  querent train syn1 --method gdfs --set stage_epochs=3";

/// Runs the command.
///
/// # Errors
/// There is no method of that name.
pub fn run(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        let rows: Vec<Vec<String>> = METHODS
            .iter()
            .map(|entry| vec![entry.name.into(), tradeoff(entry.tradeoff).into(), entry.about.into()])
            .collect();
        return Ok(write_table(out, 3, &rows)?);
    };
    let entry = find(name)?;
    writeln!(out, "{}: {}; {}", entry.name, entry.about, tradeoff(entry.tradeoff))?;
    // Some defaults depend on the table: a large one is what they are for otherwise.
    let data = synthetic::syn1(0, [20_000, 10, 10])?;
    let mut rows = Vec::new();
    fields(&mut rows, "", &(entry.defaults)(&data));
    write_table(out, 1, &rows)?;
    writeln!(
        out,
        "These are for a large table whose features cost 1 each. What follows from a table (α, thresholds, dropout, steps) is \
         noted in its run.\ndocs/methods.md says what they mean."
    )?;
    Ok(())
}

fn tradeoff(of: Tradeoff) -> &'static str {
    match of {
        Tradeoff::Alpha => "one training for a range of α, or for one",
        Tradeoff::One => "a training for each α",
        Tradeoff::Threshold => "one training for all thresholds",
    }
}

/// The settings by their dotted names.
fn fields(rows: &mut Vec<Vec<String>>, before: &str, value: &Value) {
    match value {
        Value::Object(inside) => {
            for (name, value) in inside {
                let name = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
                fields(rows, &name, value);
            }
        }
        value => rows.push(vec![before.into(), value.to_string()]),
    }
}
