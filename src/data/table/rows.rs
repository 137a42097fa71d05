//! Rows of another table, read as a model's own was.

use super::reader::{Cells, TableReader};
use crate::data::Split;
use crate::data::encoding::{Encoding, Field, Notice, canonical, listed};
use crate::data::nearest::did_you_mean;
use crate::error::{Error, ErrorKind, Result};
use crate::problem::Problem;

/// Something that reading came upon and that is no reason to refuse a whole table.
#[derive(Debug)]
pub enum Odd<'a> {
    /// A row that cannot be used: the error says where and why. It is left out.
    Row(Error),
    /// A cell that was taken, but that its author may want to know about.
    Cell {
        /// The column.
        field: &'a Field,
        /// What stands there.
        cell: &'a str,
        /// What is odd about it.
        notice: Notice,
    },
}

/// Reads rows as an encoding has them, in raw units: the columns it knows by name, and the target.
///
/// # Errors
/// A column is not there, or a cell does not fit (with row and column).
pub fn read_rows(table: TableReader, problem: &Problem, encoding: &Encoding) -> Result<Split> {
    read_rows_with(table, problem, encoding, &mut |odd| match odd {
        Odd::Row(error) => Err(error),
        Odd::Cell { .. } => Ok(()),
    })
}

/// As [`read_rows`], with somebody told what is odd, who decides whether to go on: an error of theirs ends it.
///
/// # Errors
/// The file cannot be read, a column is not there, no row can be used, or what `tell` says.
pub fn read_rows_with(
    mut table: TableReader,
    problem: &Problem,
    encoding: &Encoding,
    tell: &mut dyn FnMut(Odd<'_>) -> Result<()>,
) -> Result<Split> {
    let path = table.path().to_path_buf();
    let at = encoding.fields().map(|field| table.column(&field.name)).collect::<Result<Vec<usize>>>()?;
    let target = table.column(&encoding.target)?;
    let mut split = Split::default();
    let (mut cells, mut odd, mut bad) = (Cells::default(), Vec::new(), Bad::default());
    loop {
        match table.next(&mut cells) {
            Ok(false) => break,
            Ok(true) => {}
            Err(error) if error.kind() == ErrorKind::Data => {
                bad.note(&error);
                tell(Odd::Row(error))?;
                continue;
            }
            Err(error) => return Err(error),
        }
        let before = split.x.len();
        let label = label(&cells.cells[target], problem, encoding);
        let label = label.map_err(|what| (encoding.target.as_str(), what));
        let encoded = label.and_then(|label| {
            encode(&cells, &at, encoding, &mut split.x, &mut odd)?;
            Ok(label)
        });
        match encoded {
            Ok(label) => {
                split.y.push(label);
                for (field, at, notice) in odd.drain(..) {
                    tell(Odd::Cell { field, cell: &cells.cells[at], notice })?;
                }
            }
            Err((column, what)) => {
                split.x.truncate(before);
                let (row, line) = (cells.row, cells.line);
                let what = format!("row {row} (line {line}), column `{column}`: {what}");
                let error = Error::table(&path, what);
                bad.note(&error);
                tell(Odd::Row(error))?;
            }
        }
    }
    if split.y.is_empty() {
        let what = match bad {
            Bad { first: None, .. } => "there are no rows".into(),
            Bad { rows, first: Some(first) } => {
                format!("none of its {rows} row(s) can be used; the first: {first}")
            }
        };
        return Err(Error::table(&path, what));
    }
    Ok(split)
}

/// Rows that cannot be used, in case that there are no others.
#[derive(Default)]
struct Bad {
    rows: u64,
    first: Option<String>,
}

impl Bad {
    fn note(&mut self, error: &Error) {
        self.rows += 1;
        self.first.get_or_insert_with(|| error.to_string());
    }
}

/// The class that a cell names.
fn label(cell: &str, problem: &Problem, encoding: &Encoding) -> Result<u32, String> {
    if let Some(ranges) = &encoding.ranges {
        return ranges.of_cell(cell).map_err(|error| error.message());
    }
    let word = canonical(cell);
    let classes = problem.classes();
    match classes.iter().position(|class| canonical(class) == word) {
        Some(label) => Ok(label as u32),
        None => {
            let meant = did_you_mean(word, classes.iter().map(String::as_str));
            Err(format!("`{word}` is no class: the classes are {}{meant}", listed(classes)))
        }
    }
}

/// Appends a row's columns, and puts the fields into `odd` whose cells are. What is wrong comes with its column; something
/// may have been appended then.
fn encode<'e>(
    cells: &Cells,
    at: &[usize],
    encoding: &'e Encoding,
    out: &mut Vec<f32>,
    odd: &mut Vec<(&'e Field, usize, Notice)>,
) -> Result<(), (&'e str, String)> {
    odd.clear();
    for (field, &at) in encoding.fields().zip(at) {
        let cell = &cells.cells[at];
        if encoding.is_missing(cell) {
            field.encode_missing(out);
            continue;
        }
        let notice = field.encode(cell, out).map_err(|error| (field.name.as_str(), error.message()))?;
        if notice.is_new() {
            odd.push((field, at, notice));
        }
    }
    Ok(())
}
