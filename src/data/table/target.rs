//! The target's cells, from a word or a number to the class of each row.

use super::schema::{Target, Weights};
use crate::data::encoding::{canonical, listed};
use crate::data::nearest::nearest;
use crate::data::numbers::{Decimal, number_in, written};
use crate::data::ranges::{Ranges, quantile_edges};
use crate::error::{Error, Result};
use crate::memory::push;
use std::collections::HashMap;

/// What memory is asked for.
const ANSWERS: &str = "the cells of the target";

/// The cells that were read so far.
pub(super) enum Answers<'s> {
    /// Classes by their words.
    Words { of: HashMap<&'s str, u32>, classes: &'s [String], labels: Vec<u32> },
    /// Numbers whose ranges are known.
    Cut { ranges: Ranges, labels: Vec<u32> },
    /// Numbers whose ranges the training rows decide.
    Numbers { bins: usize, decimal: Option<Decimal>, values: Vec<f64> },
}

/// What is predicted, once the training rows are known.
pub(super) struct Settled {
    /// The class of each row.
    pub labels: Vec<u32>,
    /// The classes' names.
    pub classes: Vec<String>,
    /// The ranges that they are, if the target is a number.
    pub ranges: Option<Ranges>,
}

impl<'s> Answers<'s> {
    pub fn new(target: &'s Target) -> Self {
        let decimal = target.decimal;
        match (&target.edges, target.bins) {
            (Some(edges), _) => {
                Self::Cut { ranges: Ranges { edges: edges.clone(), decimal }, labels: Vec::new() }
            }
            (None, Some(bins)) => Self::Numbers { bins, decimal, values: Vec::new() },
            (None, None) => {
                let of = target.classes.iter().map(|class| canonical(class)).zip(0..).collect();
                Self::Words { of, classes: &target.classes, labels: Vec::new() }
            }
        }
    }

    /// Takes the next row's cell.
    ///
    /// # Errors
    /// It is no class, or no number.
    pub fn push(&mut self, cell: &str) -> Result<()> {
        match self {
            Self::Words { of, classes, labels } => {
                let word = canonical(cell);
                let label = of.get(word).copied().ok_or_else(|| {
                    Error::Data(format!(
                        "`{word}` is no class: the classes are {}; add it to `classes`, or to `drop` to leave such rows \
                         out{}",
                        listed(classes),
                        misspelt(word, classes)
                    ))
                })?;
                push(labels, label, ANSWERS)?;
            }
            Self::Cut { ranges, labels } => {
                let label = ranges.of_cell(cell).map_err(|error| no_number(cell, ranges.decimal, &error))?;
                push(labels, label, ANSWERS)?;
            }
            Self::Numbers { decimal, values, .. } => {
                let value = number_in(cell, *decimal).map_err(|error| no_number(cell, *decimal, &error))?;
                push(values, value, ANSWERS)?;
            }
        }
        Ok(())
    }

    pub fn rows(&self) -> usize {
        match self {
            Self::Words { labels, .. } | Self::Cut { labels, .. } => labels.len(),
            Self::Numbers { values, .. } => values.len(),
        }
    }

    /// The classes by which rows are dealt to the splits, and how many there are. Of numbers that the training rows are to
    /// cut, the ranges of all rows: each split gets some of every size.
    pub fn strata(&self) -> (Vec<u32>, usize) {
        match self {
            Self::Words { labels, classes, .. } => (labels.clone(), classes.len()),
            Self::Cut { ranges, labels } => (labels.clone(), ranges.edges.len() + 1),
            Self::Numbers { bins, decimal, values } => {
                let ranges = Ranges { edges: quantile_edges(values, *bins), decimal: *decimal };
                (values.iter().map(|value| ranges.of(*value)).collect(), ranges.edges.len() + 1)
            }
        }
    }

    /// The classes, with the ranges that these training rows decide.
    ///
    /// # Errors
    /// Nearly all training rows have the same number, or there are not as many weights as ranges.
    pub fn settle(self, target: &Target, train: &[u32]) -> Result<Settled> {
        let (ranges, labels) = match self {
            Self::Words { labels, classes, .. } => {
                return Ok(Settled { labels, classes: classes.to_vec(), ranges: None });
            }
            Self::Cut { ranges, labels } => (ranges, labels),
            Self::Numbers { bins, decimal, values } => {
                let known: Vec<f64> = train.iter().map(|&row| values[row as usize]).collect();
                let ranges = Ranges { edges: quantile_edges(&known, bins), decimal };
                fewer(target, bins, ranges.edges.len() + 1)?;
                let labels = values.iter().map(|value| ranges.of(*value)).collect();
                (ranges, labels)
            }
        };
        Ok(Settled { labels, classes: ranges.names(), ranges: Some(ranges) })
    }
}

/// Whether fewer ranges than were asked for will do: not for one, and not for weights.
fn fewer(target: &Target, bins: usize, there: usize) -> Result<()> {
    let column = &target.column;
    let fail = |what: String| Err(Error::Data(what));
    if there < 2 {
        return fail(format!(
            "the target `{column}` cannot be cut into {bins} ranges: nearly all training rows have the same number; say \
             where to cut instead, such as edges = [10]"
        ));
    }
    if let Weights::Each(weights) = &target.weights
        && weights.len() != there
    {
        return fail(format!(
            "the target `{column}` has only {there} ranges, as many rows have the same number, but there are {} weights",
            weights.len()
        ));
    }
    if there < bins {
        log::warn!(
            "the target `{column}` is cut into {there} ranges, not {bins}: many rows have the same number; `edges` says \
             exactly where to cut"
        );
    }
    Ok(())
}

fn no_number(cell: &str, decimal: Option<Decimal>, error: &Error) -> Error {
    let what = if cell.trim().is_empty() { "there is no number".to_string() } else { error.message() };
    let advice = spelling(cell, decimal).unwrap_or_else(|| {
        format!(
            "; add `{}` to `drop` to leave such rows out",
            cell.trim().chars().take(40).collect::<String>()
        )
    });
    Error::Data(format!("{what}{advice}"))
}

/// What to say in the problem about a cell that is a number, but not as the column's are said to be.
pub(super) fn spelling(cell: &str, decimal: Option<Decimal>) -> Option<String> {
    let readings = [(Decimal::Point, "."), (Decimal::Comma, ",")];
    let mut fits = readings.iter().filter(|(style, _)| Some(*style) != decimal);
    let (style, mark) = fits.find(|(style, _)| written(cell, *style).is_some())?;
    let value = written(cell, *style)?;
    Some(format!(
        "; if all of its numbers are written like that, say decimal = \"{mark}\", and this is {value}"
    ))
}

/// Of a class that the table has and the problem does not: which of the problem's may be a misspelling of it.
fn misspelt(word: &str, classes: &[String]) -> String {
    nearest(word, classes.iter().map(String::as_str)).first().map_or(String::new(), |class| {
        format!(". One of the two may be misspelt: the problem says `{class}`; did you mean `{word}`?")
    })
}
