//! What a comparison consists of: tables, and cells, each of one method, table and seed, and, for a method that is trained for
//! one α at a time, α.

use super::outcome::{Outcome, Times};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path};

/// What comes of a cell, in its folder; when it is there, the cell is done.
pub const OUTCOME: &str = "outcome.json";
/// How long it took.
pub const TIMES: &str = "times.json";
/// Why it failed.
pub const FAILURE: &str = "failure.txt";

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its name in pictures and tables.
    pub name: String,
    /// A `problem.toml`, as seen from anywhere, or the name of a data set.
    pub problem: String,
    /// What is in it: the hash of its files, or its name, where the catalog checks them.
    pub content: String,
}

/// A cell: a deterministic piece of work with an outcome of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The table's name.
    pub table: String,
    /// A method, or what is done instead of one.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// The α that it is trained for; `None` for the whole curve.
    pub alpha: Option<f64>,
    /// The hash of what it depends on.
    pub hash: String,
    /// Its folder in that of the comparison.
    pub folder: String,
}

/// How far a cell is.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Its outcome is there.
    Done(Box<(Outcome, Times)>),
    /// It was tried, and failed like this.
    Failed(String),
    /// Neither.
    Open,
}

impl State {
    /// In a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Failed(_) => "failed",
            Self::Open => "open",
        }
    }
}

impl Cell {
    /// What it is, for people.
    pub fn name(&self) -> String {
        format!("{}, {}, seed {}, {}", self.table, self.method, self.seed, self.what())
    }

    /// Which trade-offs it is for.
    pub fn what(&self) -> String {
        self.alpha.map_or("curve".into(), |alpha| format!("α {alpha}"))
    }

    /// How far it is, in the folder of a comparison.
    pub fn state(&self, out: &Path) -> State {
        let here = out.join(&self.folder);
        // What is not there, or not whole, is not done.
        let text = |name: &str| std::fs::read_to_string(here.join(name)).ok();
        if let Some(done) =
            text(OUTCOME).zip(text(TIMES)).and_then(|(outcome, times)| self.done(&outcome, &times))
        {
            return State::Done(Box::new(done));
        }
        text(FAILURE).map_or(State::Open, State::Failed)
    }

    /// What came of it, from the texts of its two files; `None` if they are not whole, or of something else.
    pub fn done(&self, outcome: &str, times: &str) -> Option<(Outcome, Times)> {
        let outcome: Outcome = serde_json::from_str(outcome).ok()?;
        let times = serde_json::from_str(times).ok()?;
        (outcome.hash == self.hash).then_some((outcome, times))
    }
}

/// Checks a plan that somebody else may have written: every cell is of one of the tables, and its folder is inside of that of
/// the comparison, as cells write there.
///
/// # Errors
/// The first cell that is not.
pub fn check(tables: &[Table], cells: &[Cell]) -> Result<()> {
    for (number, cell) in cells.iter().enumerate() {
        let refused = |what: String| Err(Error::Config(format!("cell {number} of the comparison: {what}")));
        if !tables.iter().any(|table| table.name == cell.table) {
            return refused(format!("there is no table `{}` in it", cell.table));
        }
        let mut parts = Path::new(&cell.folder).components();
        if cell.folder.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
            return refused(format!("its folder, `{}`, is not inside of the comparison's", cell.folder));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_inside_of_the_comparison() {
        let tables = [Table { name: "a".into(), problem: "a".into(), content: String::new() }];
        let refused = |table: &str, folder: &str| {
            let [table, method, hash, folder] = [table, "nmppg", "", folder].map(String::from);
            let cell = Cell { table, method, seed: 0, alpha: None, hash, folder };
            check(&tables, &[cell]).err().map(|error| error.to_string())
        };
        assert_eq!(refused("a", "cells/a-nmppg"), None);
        for folder in ["", "/tmp/x", "../x", "cells/../../x", "."] {
            assert!(refused("a", folder).is_some_and(|why| why.contains("not inside")), "{folder}");
        }
        assert!(refused("b", "cells/b").is_some_and(|why| why.contains("no table `b`")));
    }
}
