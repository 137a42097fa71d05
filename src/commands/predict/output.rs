//! Answers as CSV: to standard output, or to a file that takes its place when it is whole.

use super::{Error, Failure, Model, Prediction};
use querent::files::{Writing, clear_remains};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The columns in front of the classes, and the one behind them.
const FRONT: [&str; 4] = ["row", "answer", "asked", "cost"];
const BEHIND: &str = "problem";

/// A line of the table.
pub struct Row<'a> {
    pub number: u64,
    pub kept: &'a [&'a str],
    pub answer: &'a Result<Prediction, Error>,
}

enum Place<'o, W> {
    Standard(&'o mut W),
    New(Writing),
    /// What cannot be renamed to: a pipe, a terminal, `/dev/null`.
    Stream(File),
}

/// Where answers go.
pub struct Output<'o, W: Write> {
    place: Place<'o, W>,
    path: &'o Path,
    model: &'o Model,
    /// What was not written yet.
    lines: csv::Writer<Vec<u8>>,
}

impl<'o, W: Write> Output<'o, W> {
    /// Opens it and writes the header.
    ///
    /// # Errors
    /// It cannot be written, or two of its columns would have one name.
    pub fn begin(
        path: &'o Path,
        standard: &'o mut W,
        model: &'o Model,
        keep: &[String],
    ) -> Result<Self, Failure> {
        let classes = model.problem().classes();
        let own = || FRONT.iter().copied().chain([BEHIND]);
        if let Some(name) = keep.iter().find(|name| own().any(|own| own == **name) || classes.contains(name))
        {
            return Err(Failure::Refused(format!(
                "--keep {name}: the answers have a column `{name}` of their own; rename it in the table"
            )));
        }
        // The system would say so only when all is done.
        if path.is_dir() {
            return Err(Error::file(path, "this is a folder: name a file for the answers").into());
        }
        let place = if path == Path::new("-") {
            Place::Standard(standard)
        } else if path.exists() && !path.is_file() {
            let file = File::options().write(true).open(path);
            Place::Stream(file.map_err(|error| Error::io(path, error))?)
        } else {
            clear_remains(path);
            Place::New(Writing::begin(path)?)
        };
        let mut output = Self { place, path, model, lines: csv::Writer::from_writer(Vec::new()) };
        // A class may be called as one of our columns.
        let class = |class: &String| match own().any(|own| own == class) {
            true => format!("p({class})"),
            false => class.clone(),
        };
        let header = keep.iter().cloned().chain(FRONT.map(String::from)).chain(classes.iter().map(class));
        output.line(header.chain([BEHIND.to_string()]).collect())?;
        Ok(output)
    }

    /// Writes a row.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn row(&mut self, row: &Row<'_>) -> Result<(), Failure> {
        let problem = self.model.problem();
        let mut cells: Vec<String> = row.kept.iter().map(|cell| cell.to_string()).collect();
        cells.push(row.number.to_string());
        match row.answer {
            Ok(done) => {
                let asked = done.asked.iter().map(|&feature| problem.features()[feature].name.as_str());
                cells.push(problem.classes()[done.class].clone());
                cells.push(asked.collect::<Vec<_>>().join(";"));
                cells.push(without_rounding(done.spent));
                cells.extend(done.belief.iter().map(f32::to_string));
                cells.push(String::new());
            }
            Err(error) => {
                cells.extend(std::iter::repeat_n(String::new(), 3 + problem.classes().len()));
                cells.push(match error {
                    Error::File { what, .. } => what.clone(),
                    other => other.message(),
                });
            }
        }
        self.line(cells)
    }

    fn line(&mut self, cells: Vec<String>) -> Result<(), Failure> {
        self.lines.write_record(&cells).map_err(|error| self.failed(error.into()))
    }

    /// Passes on what was written so far.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let empty = csv::Writer::from_writer(Vec::new());
        let lines = std::mem::replace(&mut self.lines, empty).into_inner();
        let lines = lines.map_err(|error| self.failed(error.into_error()))?;
        match &mut self.place {
            Place::Standard(out) => {
                out.write_all(&lines)?;
                out.flush()?;
            }
            Place::New(file) => file.write(&lines)?,
            Place::Stream(file) => {
                file.write_all(&lines).map_err(|error| Error::io(self.path, error))?;
            }
        }
        Ok(())
    }

    /// Writes the rest. Whether there is a new file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> Result<bool, Failure> {
        self.flush()?;
        match self.place {
            Place::New(file) => file.finish().map(|()| true).map_err(Failure::from),
            _ => Ok(false),
        }
    }

    fn failed(&self, error: std::io::Error) -> Failure {
        match self.place {
            Place::Standard(_) => error.into(),
            _ => Error::io(self.path, error).into(),
        }
    }
}

/// A sum of costs without the last digits that adding up has left.
fn without_rounding(sum: f64) -> String {
    let text = format!("{sum:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_written_as_people_would() {
        for (sum, text) in [(0.1 + 0.2, "0.3"), (17.0, "17"), (0.0, "0"), (100.0, "100"), (2.25, "2.25")] {
            assert_eq!(without_rounding(sum), text);
        }
    }
}
