//! `querent predict`: what a model would ask of each row of a table, and what it answers.

mod columns;
mod output;

use super::choice::Choice;
use super::oddities::Oddities;
use super::progress::Meter;
use super::{Failure, Talk, interrupt, say};
use columns::Columns;
use output::{Output, Row};
use querent::data::encoding::{Encoding, short};
use querent::data::table::{Cells, TableReader};
use querent::{Error, ErrorKind, Model, Prediction, Session};
use rayon::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Ask a model through rows without labels and write what it asks and answers.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A model.safetensors.
    model: PathBuf,
    /// A table with the model's columns, in the same units; `-` is standard input.
    table: PathBuf,
    /// Where the answers go, as CSV; `-` is standard output.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Columns of the table to copy in front of each answer, such as a number of the case.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    keep: Vec<String>,
    /// What may be spent on one row: what no longer fits is not asked for.
    #[arg(long, value_name = "COST", default_value_t = f64::INFINITY)]
    budget: f64,
    #[command(flatten)]
    choice: Choice,
    /// Take an empty cell for a measurement that cannot be had, so that something else is asked for
    /// [default: as in training, asked for, paid for and found missing].
    #[arg(long)]
    unavailable: bool,
    /// Refuse the table if a row is bad or one of the model's columns is not there.
    #[arg(long)]
    strict: bool,
}

// Examples fit 80 columns; a paragraph is one line, which clap breaks where the terminal ends.
const HELP: &str = "\
Examples:
  querent predict model.safetensors new.csv -o answers.csv
  querent predict model.safetensors new.csv -o answers.csv --keep visit
  querent predict model.safetensors new.csv -o answers.csv --spend 4
  querent predict model.safetensors new.csv -o answers.csv --unavailable
  zcat new.csv.gz | querent predict model.safetensors - > answers.csv

The table needs no labels; if it has the target's column, that is ignored. A column `row` counts its rows from 1, \
`answer` is the most probable class, `asked` what was asked for, in order and with ; in between, `cost` what that costs; \
then a column for each class has its probability. `problem` says why a row has no answer: it has too few cells, or a word \
where a number was asked for; the other rows are answered all the same.

A missing cell is what it was in training: asked for, paid for and found missing; with --unavailable it cannot be had, and \
something else is asked for instead. So it is in any case with a feature whose column is not in the table. Cells that are \
not asked for are not looked at.";

/// Rows that are answered side by side: what is in memory at a time.
const BLOCK: usize = 512;

/// A row that was read, or why it was not.
struct Read {
    row: u64,
    line: u64,
    cells: Result<csv::StringRecord, Error>,
}

/// Runs the command.
///
/// # Errors
/// The model or the table cannot be read, do not fit together, or the answers cannot be written.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let model = args.choice.apply(Model::load(&args.model)?)?;
    let Some(encoding) = model.encoding() else {
        let what = "the model was not trained on a table with a header: it knows no columns";
        return Err(Error::file(&args.model, what).into());
    };
    let fresh = model.session().with_budget(args.budget)?;
    refuse_same_file(&args.table, &args.out)?;
    interrupt::answer(
        "interrupted: what is not yet written is left out; a file is not written at all",
        false,
    );
    let (table, mut meter) = Meter::open(&args.table, talk)?;
    let path = table.path().to_path_buf();
    let columns = Columns::find(&table, &model, encoding, &args.keep)?;
    columns.check(args.strict, talk)?;
    let mut to = Output::begin(&args.out, out, &model, &args.keep)?;
    let mut oddities = Oddities::new(talk, args.strict);
    let unavailable = args.unavailable.then_some(encoding);
    let of = Answered { fresh: &fresh, columns: &columns, unavailable };
    let sums = answer_all(table, &of, &mut to, &mut oddities, &mut meter)?;
    meter.finish();
    if sums.rows == 0 {
        return Err(Error::file(path, "there are no rows").into());
    }
    let written = to.finish()?;
    oddities.report(encoding, "have no answer");
    let answered = (sums.rows - sums.bad).max(1) as f64;
    let told = format!(
        "{} row(s) answered, {:.2} asked and {} spent on average",
        sums.rows - sums.bad,
        sums.asked as f64 / answered,
        short(sums.spent / answered)
    );
    match written {
        true => writeln!(out, "written: {}: {told}", args.out.display())?,
        false => say(talk, told),
    }
    Ok(())
}

/// How rows are answered.
struct Answered<'a, 'm> {
    fresh: &'a Session<'m>,
    columns: &'a Columns,
    /// Missing cells cannot be had: what says which are missing.
    unavailable: Option<&'a Encoding>,
}

/// What all rows came to.
#[derive(Default)]
struct Sums {
    rows: u64,
    bad: u64,
    asked: usize,
    spent: f64,
}

/// Reads, answers and writes, block after block.
fn answer_all<W: Write>(
    mut table: TableReader,
    of: &Answered<'_, '_>,
    to: &mut Output<'_, W>,
    oddities: &mut Oddities,
    meter: &mut Meter,
) -> Result<Sums, Failure> {
    let path = table.path().to_path_buf();
    let mut sums = Sums::default();
    loop {
        let block = read_block(&mut table, sums.rows)?;
        if block.is_empty() {
            return Ok(sums);
        }
        let answers: Vec<Option<Result<Prediction, Error>>> = block
            .par_iter()
            .map_init(
                || of.fresh.clone(),
                |session, read| Some(answer(session, of, read.cells.as_ref().ok()?)),
            )
            .collect();
        for (read, answer) in block.into_iter().zip(answers) {
            sums.rows += 1;
            let place = format!("row {} (line {})", read.row, read.line);
            let (cells, answer) = match (read.cells, answer) {
                (Ok(cells), Some(Ok(done))) => (Some(cells), Ok(done)),
                (Ok(cells), Some(Err(error))) => {
                    (Some(cells), Err(Error::file(&path, format!("{place}: {}", error.message()))))
                }
                (Err(error), _) => (None, Err(error)),
                // A row that was read is answered.
                (Ok(cells), None) => (Some(cells), Err(Error::file(&path, place))),
            };
            match &answer {
                Ok(done) => {
                    sums.asked += done.asked.len();
                    sums.spent += done.spent;
                    done.odd.iter().for_each(|odd| oddities.cell(&odd.column, &odd.cell, &odd.notice));
                }
                Err(_) => sums.bad += 1,
            }
            let kept = of.columns.kept(cells.as_ref());
            to.row(&Row { number: read.row, kept: &kept, answer: &answer })?;
            if let Err(error) = answer {
                oddities.bad_row(error)?;
            }
        }
        to.flush()?;
        meter.tell(sums.rows);
        if interrupt::pressed() {
            return Err(Failure::Refused(format!("interrupted after {} row(s)", sums.rows)));
        }
    }
}

/// The next rows, none at the end; `before` were read already.
fn read_block(table: &mut TableReader, before: u64) -> Result<Vec<Read>, Failure> {
    let mut block = Vec::with_capacity(BLOCK);
    let mut cells = Cells::default();
    while block.len() < BLOCK {
        let row = before + block.len() as u64 + 1;
        match table.next(&mut cells) {
            Ok(false) => break,
            Ok(true) => block.push(Read { row, line: cells.line, cells: Ok(cells.cells.clone()) }),
            // The row itself is bad: the reader goes on with the next one.
            Err(error) if error.kind() == ErrorKind::Data => {
                block.push(Read { row, line: 0, cells: Err(error) });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(block)
}

fn answer(
    session: &mut Session<'_>,
    of: &Answered<'_, '_>,
    cells: &csv::StringRecord,
) -> Result<Prediction, Error> {
    let can_be_had = |cell: &&str| of.unavailable.is_none_or(|encoding| !encoding.is_missing(cell));
    session.ask_row(|name| of.columns.at(name).and_then(|at| cells.get(at)).filter(can_be_had))
}

/// Answers must not take the place of the table they are about.
fn refuse_same_file(table: &Path, out: &Path) -> Result<(), Failure> {
    let same = match (table.canonicalize(), out.canonicalize()) {
        (Ok(table), Ok(out)) => table == out && table.is_file(),
        _ => false,
    };
    if same {
        return Err(Failure::Refused(format!(
            "-o {} is the table itself: the answers would take its place; name another file",
            out.display()
        )));
    }
    Ok(())
}
