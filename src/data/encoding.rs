//! How the cells of a table become the columns that the networks read. It travels with the model, so that
//! a session, `querent ask` and `querent eval` take words and numbers as the table has them.
//!
//! | kind | columns |
//! |---|---|
//! | number | the value, clipped to the training rows' quantiles (winsorized); from a thousand training rows on also how far it is through each piece between quantiles, and from two thousand on between places where the classes change (a piecewise linear encoding); missing: their mean |
//! | binary | 0 for the first value, 1 for the second; missing: their mean |
//! | ordinal | 0, 1, 2, … in the order of its levels; missing: their mean |
//! | date | year, month, day of week, and its age: the days before the training rows' latest; missing: their means |
//! | categories | one for each value of the training rows; a value they do not have has a code of its own: none of them is 1 |
//!
//! Where the training rows have missing cells, one more column of the same feature is 1 for a missing
//! cell: acquiring the feature reveals that it is missing.

pub use super::field::{Code, Field, Notice};
pub use super::numbers::short;
use super::ranges::Ranges;
pub use super::words::canonical;
#[cfg(feature = "table")]
pub(crate) use super::words::in_order;
pub(crate) use super::words::listed;
use crate::error::{Error, Result};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// The encoding of a whole table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoding {
    /// The column of the table that is predicted.
    pub target: String,
    /// Cells that mean: not known.
    pub missing: Vec<String>,
    /// The fields of each feature.
    pub features: Vec<Vec<Field>>,
    /// Fields that are known from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<Field>,
    /// What to judge by, as in `problem.toml`.
    #[serde(default)]
    pub metric: Metric,
    /// Of a target that is a number, the ranges that are its classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Ranges>,
}

/// What a policy's answers are judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The share of right answers.
    #[default]
    Accuracy,
    /// F1 averaged over the classes: where they are imbalanced.
    MacroF1,
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Metric::Accuracy => "accuracy",
            Metric::MacroF1 => "macro-F1",
        })
    }
}

impl Encoding {
    /// Whether a cell says that nothing is known: an empty one always does.
    pub fn is_missing(&self, cell: &str) -> bool {
        let cell = cell.trim();
        cell.is_empty() || self.missing.iter().any(|word| word == cell)
    }

    /// Checks that it makes as many columns of each feature as a problem has.
    ///
    /// # Errors
    /// The first feature that does not fit.
    pub fn check(&self, problem: &Problem) -> Result<()> {
        if self.features.len() != problem.features().len() {
            return Err(Error::Problem(format!(
                "the encoding has {} features, the problem {}",
                self.features.len(),
                problem.features().len()
            )));
        }
        if let Some(ranges) = &self.ranges {
            ranges.check()?;
            if ranges.edges.len() + 1 != problem.classes().len() {
                return Err(Error::Problem(format!(
                    "the target has {} ranges, the problem {} classes",
                    ranges.edges.len() + 1,
                    problem.classes().len()
                )));
            }
        }
        let groups = problem.group_of_column();
        let mut at = 0;
        for (index, fields) in self.features.iter().chain(std::iter::once(&self.known)).enumerate() {
            fields.iter().try_for_each(Field::check)?;
            let columns: usize = fields.iter().map(Field::columns).sum();
            let there = groups.get(at..at + columns).is_some_and(|g| g.iter().all(|&g| g as usize == index));
            at += columns;
            let over = groups.get(at).is_some_and(|&group| group as usize == index);
            if !there || over {
                let name = problem.features().get(index).map_or("what is known", |f| f.name.as_str());
                return Err(Error::Problem(format!(
                    "the encoding of `{name}` makes {columns} columns, the problem has another number of them"
                )));
            }
        }
        Ok(())
    }

    /// Encodes the cells of some fields, in their order; a cell in `missing` is a missing one.
    ///
    /// # Errors
    /// Too many or too few cells, or the first one that cannot be read, with its field.
    pub fn encode(&self, fields: &[Field], cells: &[&str]) -> Result<(Vec<f32>, Vec<Notice>)> {
        if fields.len() != cells.len() {
            let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
            return Err(Error::Data(format!(
                "{} value(s) for {} field(s): {}",
                cells.len(),
                fields.len(),
                listed(&names)
            )));
        }
        let mut values = Vec::new();
        let mut notices = Vec::new();
        for (field, cell) in fields.iter().zip(cells) {
            notices.push(if self.is_missing(cell) {
                field.encode_missing(&mut values);
                Notice::Missing
            } else {
                field
                    .encode(cell, &mut values)
                    .map_err(|error| Error::Data(format!("`{}`: {}", field.name, error.message())))?
            });
        }
        Ok((values, notices))
    }

    /// Columns of all fields together.
    pub fn columns(&self) -> usize {
        self.fields().map(Field::columns).sum()
    }

    /// All fields: those of the features in order, then those known from the start.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.features.iter().flatten().chain(&self.known)
    }
}
