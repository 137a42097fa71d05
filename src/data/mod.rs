//! Tables to learn from.

pub mod synthetic;

use crate::error::{Error, Result};
use crate::problem::Problem;

/// Rows of a table: all columns of each, and its label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Split {
    /// Row after row.
    pub x: Vec<f32>,
    /// The class of each row.
    pub y: Vec<u32>,
}

/// A fully observed table, split into training, validation and test rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    problem: Problem,
    splits: [Split; 3],
}

/// The splits' names, in order.
const NAMES: [&str; 3] = ["training", "validation", "test"];

impl Dataset {
    /// Checks and keeps a table.
    ///
    /// # Errors
    /// A split whose sizes do not fit the problem, a value that is not a finite number, a label that
    /// is not a class (with row and column), or no training rows.
    pub fn new(problem: Problem, train: Split, validation: Split, test: Split) -> Result<Self> {
        let splits = [train, validation, test];
        for (split, name) in splits.iter().zip(NAMES) {
            check(&problem, split, name)?;
        }
        if splits[0].y.is_empty() {
            return Err(Error::Data("the training split has no rows".into()));
        }
        Ok(Self { problem, splits })
    }

    /// What the table is about.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The training, validation and test rows.
    pub fn splits(&self) -> &[Split; 3] {
        &self.splits
    }

    /// How many rows each split has.
    pub fn sizes(&self) -> [usize; 3] {
        [0, 1, 2].map(|i| self.splits[i].y.len())
    }
}

fn check(problem: &Problem, split: &Split, name: &str) -> Result<()> {
    let (rows, columns) = (split.y.len(), problem.columns());
    if split.x.len() != rows * columns {
        return Err(Error::Data(format!(
            "{name} split: {} values for {rows} rows of {columns} columns",
            split.x.len()
        )));
    }
    if let Some(at) = split.x.iter().position(|value| !value.is_finite()) {
        let (row, column) = (at / columns, at % columns);
        let feature = &problem.features()[problem.group_of_column()[column] as usize].name;
        return Err(Error::Data(format!(
            "{name} split: row {row}, column {column} (feature `{feature}`) is {}, not a finite number",
            split.x[at]
        )));
    }
    let classes = problem.classes().len();
    if let Some(row) = split.y.iter().position(|&label| label as usize >= classes) {
        return Err(Error::Data(format!(
            "{name} split: row {row} has label {}, but the classes are 0 to {}",
            split.y[row] as i32,
            classes - 1
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_tables_are_refused_with_their_place() {
        let problem = || Problem::ungrouped(&[1.0, 1.0], 2).expect("valid");
        let message = |x: Vec<f32>, y: Vec<u32>| {
            Dataset::new(problem(), Split { x, y }, Split::default(), Split::default())
                .expect_err("should have been refused")
                .to_string()
        };
        assert!(message(vec![1.0; 3], vec![0, 1]).contains("3 values for 2 rows of 2 columns"));
        assert!(
            message(vec![1.0, 2.0, 3.0, f32::NAN], vec![0, 1])
                .contains("row 1, column 1 (feature `x2`) is NaN")
        );
        assert!(message(vec![1.0; 4], vec![0, 2]).contains("row 1 has label 2"));
        assert!(message(vec![1.0; 2], vec![u32::MAX]).contains("label -1"));
        assert!(message(vec![], vec![]).contains("no rows"));
    }
}
