//! What the training rows decide about a column: how its cells become numbers, and how those are scaled.

use super::counts::MOST_WORDS;
use super::knots::{Numbers, most_cuts};
use super::schema::{Column, Kind, Missing, Preprocessing, Schema};
use super::target::spelling;
use crate::data::dates::{self, Order, PARTS};
use crate::data::encoding::{Code, Field, canonical, in_order, listed};
use crate::data::nearest::did_you_mean;
use crate::data::numbers::{Decimal, number_in};
use crate::data::ranges::quantile;
use crate::data::{Normalization, encoding::Notice};
use crate::error::{Error, Result};
use crate::memory::{push, reserve};
use std::collections::HashMap;

/// How the cells of a column become one number each.
#[derive(Clone, Copy)]
pub(super) enum Reading {
    Number(Option<Decimal>),
    /// The days since 1970.
    Date(Order),
}

/// A column's cells while they wait for the split.
pub(super) enum Raw {
    /// NaN where missing.
    Numbers { reading: Reading, cells: Vec<f32> },
    /// Index into the words; `NONE` where missing.
    Words { words: Vec<String>, of: HashMap<String, u32>, cells: Vec<u32> },
}

const NONE: u32 = u32::MAX;
/// What memory is asked for.
const CELLS: &str = "the cells of a column";

/// The rows that encodings are learned from.
#[derive(Clone, Copy)]
pub(super) struct Training<'a> {
    pub rows: &'a [u32],
    /// The class of each row of the table.
    pub labels: &'a [u32],
    /// How many classes there are; 0 where they are not known, and `labels` has none.
    pub classes: usize,
}

impl Raw {
    /// No cells yet, and room for so many.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn new(column: &Column, rows: usize) -> Result<Self> {
        let mut raw = Self::empty(column);
        match &mut raw {
            Raw::Numbers { cells, .. } => reserve(cells, rows, CELLS)?,
            Raw::Words { cells, .. } => reserve(cells, rows, CELLS)?,
        }
        Ok(raw)
    }

    fn empty(column: &Column) -> Self {
        let numbers = |reading| Raw::Numbers { reading, cells: Vec::new() };
        match column.kind {
            Kind::Numeric => numbers(Reading::Number(column.decimal)),
            Kind::Date => numbers(Reading::Date(column.dates.unwrap_or_default())),
            _ => {
                let words: Vec<String> =
                    column.values.iter().flatten().map(|word| canonical(word).to_string()).collect();
                let of = words.iter().cloned().zip(0..).collect();
                Raw::Words { words, of, cells: Vec::new() }
            }
        }
    }

    /// Takes the next row's cell. `closed`: no other words than those that are there.
    pub fn push(&mut self, cell: Option<&str>, closed: bool) -> Result<()> {
        match (self, cell) {
            (Raw::Numbers { cells, .. }, None) => push(cells, f32::NAN, CELLS)?,
            (Raw::Numbers { cells, reading }, Some(cell)) => {
                let number = match reading {
                    Reading::Number(decimal) => number_in(cell, *decimal).map_err(|error| {
                        let advice = spelling(cell, *decimal).unwrap_or_default();
                        Error::Data(format!("{}{advice}", error.message()))
                    })?,
                    Reading::Date(order) => dates::parse_in(cell, *order)? as f64,
                };
                push(cells, number as f32, CELLS)?;
            }
            (Raw::Words { cells, .. }, None) => push(cells, NONE, CELLS)?,
            (Raw::Words { words, of, cells }, Some(cell)) => {
                let word = canonical(cell);
                let index = match of.get(word) {
                    Some(&index) => index,
                    None if closed => {
                        let near = did_you_mean(word, words.iter().map(String::as_str));
                        return Err(Error::Data(format!("`{word}` is none of {}{near}", listed(words))));
                    }
                    None if words.len() == MOST_WORDS => {
                        return Err(Error::Data(format!(
                            "`{word}` is different word number {} of this categorical column: is it an id or text? Then \
                             set ignore = true",
                            MOST_WORDS + 1
                        )));
                    }
                    None => {
                        words.push(word.to_string());
                        of.insert(word.to_string(), words.len() as u32 - 1);
                        words.len() as u32 - 1
                    }
                };
                push(cells, index, CELLS)?;
            }
        }
        Ok(())
    }

    pub fn is_missing(&self, row: u32) -> bool {
        match self {
            Raw::Numbers { cells, .. } => cells[row as usize].is_nan(),
            Raw::Words { cells, .. } => cells[row as usize] == NONE,
        }
    }

    /// Whether all rows have the same value. A column that is so in the training rows only is useless, but
    /// another split of the rows may change that.
    fn is_constant(&self) -> bool {
        match self {
            Raw::Numbers { cells, .. } => cells.iter().all(|cell| *cell == cells[0]),
            Raw::Words { cells, .. } => cells.iter().all(|&cell| cell == cells[0] && cell != NONE),
        }
    }

    /// Cuts by classes that it may get at most, if it has so many rows in all.
    pub fn most_cuts(&self, rows: u64, pieces: Option<usize>) -> usize {
        let Raw::Numbers { cells, reading: Reading::Number(_) } = self else { return 0 };
        let mut sorted: Vec<f64> =
            cells.iter().filter(|cell| !cell.is_nan()).map(|&cell| cell.into()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        most_cuts(&sorted, rows, pieces)
    }

    /// Appends the columns of a row's cell.
    pub fn encode(&self, field: &Field, row: u32, out: &mut Vec<f32>) -> Notice {
        match self {
            Raw::Numbers { cells, .. } if !cells[row as usize].is_nan() => {
                field.encode_number(cells[row as usize].into(), out)
            }
            // Words were checked when they were read; those of a category may be new.
            Raw::Words { words, cells, .. } if cells[row as usize] != NONE => {
                field.encode(&words[cells[row as usize] as usize], out).unwrap_or_else(|_| {
                    field.encode_missing(out);
                    Notice::Missing
                })
            }
            _ => {
                field.encode_missing(out);
                Notice::Missing
            }
        }
    }
}

/// Learns a field from the training rows, and how its columns are normalized.
pub(super) fn fit_field(
    schema: &Schema,
    index: usize,
    raw: &Raw,
    train: Training<'_>,
    may_flag: bool,
    normalization: &mut Normalization,
) -> Result<Field> {
    let column = &schema.features[index];
    let present: Vec<u32> = train.rows.iter().copied().filter(|&row| !raw.is_missing(row)).collect();
    if present.is_empty() {
        return tells_nothing(column, "has no value in any training row".into());
    }
    let some_missing = present.len() < train.rows.len();
    let flag = may_flag && some_missing && schema.preprocessing.missing == Missing::Flag;
    let mut fit = Fit { column, how: &schema.preprocessing, rows: train.rows.len(), normalization };
    let code = match raw {
        Raw::Numbers { cells, reading } => {
            let values: Vec<f64> = present.iter().map(|&row| cells[row as usize].into()).collect();
            match reading {
                Reading::Number(decimal) => {
                    let rows = present.iter().map(|&row| row as usize);
                    let labelled = rows.map(|row| (f64::from(cells[row]), train.labels[row]));
                    let knots = |sorted: &[f64]| {
                        let numbers = Numbers { sorted, labelled, classes: train.classes };
                        numbers.knots(schema.preprocessing.pieces)
                    };
                    fit.numbers(values, *decimal, raw.is_constant(), knots)?
                }
                Reading::Date(order) => fit.dates(&values, *order, raw.is_constant())?,
            }
        }
        Raw::Words { words, cells, .. } => {
            let present: Vec<u32> = present.iter().map(|&row| cells[row as usize]).collect();
            fit.words(words, &present, raw.is_constant())?
        }
    };
    if flag {
        fit.normalize(0.0, 1.0);
    }
    Ok(Field { name: column.name.clone(), unit: column.unit.clone(), code, flag })
}

fn tells_nothing<T>(column: &Column, what: String) -> Result<T> {
    Err(Error::Data(format!("column `{}` {what}, so it can tell nothing: set ignore = true", column.name)))
}

/// One column on its way to a code.
struct Fit<'a> {
    column: &'a Column,
    how: &'a Preprocessing,
    /// Training rows, those with a missing cell among them.
    rows: usize,
    normalization: &'a mut Normalization,
}

impl Fit<'_> {
    fn normalize(&mut self, mean: f64, scale: f64) {
        let scale = if scale > 0.0 { scale } else { 1.0 };
        self.normalization.mean.push(mean as f32);
        self.normalization.scale.push(scale as f32);
    }

    fn standardize(&mut self, mean: f64, deviation: f64) {
        if self.how.standardize { self.normalize(mean, deviation) } else { self.normalize(0.0, 1.0) }
    }

    fn mean_and_deviation(&self, values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        // Missing cells sit at the mean.
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / self.rows as f64;
        (mean, square.sqrt())
    }

    /// `knots`: of the numbers, rising.
    fn numbers(
        &mut self,
        mut values: Vec<f64>,
        decimal: Option<Decimal>,
        constant: bool,
        knots: impl FnOnce(&[f64]) -> Vec<f64>,
    ) -> Result<Code> {
        // Not a stable sort, which takes memory of its own: equal numbers are the same.
        values.sort_unstable_by(f64::total_cmp);
        let seen = [values[0], values[values.len() - 1]];
        if constant {
            return tells_nothing(self.column, format!("is {} in every row", seen[0]));
        }
        let [low, high] = self.how.winsorize.map(|q| quantile(&values, q));
        // A column that is nearly always the same must not be clipped to that.
        let [low, high] = if low < high { [low, high] } else { seen };
        let knots = knots(&values);
        values.iter_mut().for_each(|value| *value = value.max(low).min(high));
        let (mean, deviation) = self.mean_and_deviation(&values);
        self.standardize(mean, deviation);
        // They are between 0 and 1 already.
        knots.iter().skip(1).for_each(|_| self.normalize(0.0, 1.0));
        let missing_above = self.column.missing_above;
        Ok(Code::Number { low, high, fill: mean, seen, missing_above, decimal, knots })
    }

    fn dates(&mut self, values: &[f64], order: Order, constant: bool) -> Result<Code> {
        let days: Vec<i64> = values.iter().map(|value| *value as i64).collect();
        let seen = days.iter().fold([i64::MAX, i64::MIN], |[a, b], &day| [a.min(day), b.max(day)]);
        if constant {
            return tells_nothing(self.column, format!("is {} in every row", dates::shown(seen[0])));
        }
        let mut fill = [0.0; PARTS];
        for (part, fill) in fill.iter_mut().enumerate() {
            let values: Vec<f64> = days.iter().map(|&day| dates::parts(day, seen[1])[part]).collect();
            let (mean, deviation) = self.mean_and_deviation(&values);
            self.standardize(mean, deviation);
            *fill = mean;
        }
        Ok(Code::Date { order, seen, fill })
    }

    /// `present`: the words of the training rows that have one.
    fn words(&mut self, words: &[String], present: &[u32], constant: bool) -> Result<Code> {
        let mut counts = vec![0usize; words.len()];
        present.iter().for_each(|&word| counts[word as usize] += 1);
        if constant {
            let word = counts.iter().position(|&count| count > 0).map_or("", |at| &words[at]);
            return tells_nothing(self.column, format!("is `{word}` in every row"));
        }
        if self.column.kind == Kind::Categorical {
            // Listed values all get a column; others only if a training row has them.
            let listed = self.column.values.is_some();
            let mut values: Vec<String> =
                (0..words.len()).filter(|&at| listed || counts[at] > 0).map(|at| words[at].clone()).collect();
            if !listed {
                values.sort_by(|a, b| in_order(a, b));
            }
            values.iter().for_each(|_| self.normalize(0.0, 1.0));
            return Ok(Code::Categories { values });
        }
        let levels: Vec<f64> = present.iter().map(|&word| word.into()).collect();
        let (mean, deviation) = self.mean_and_deviation(&levels);
        if self.column.kind == Kind::Ordinal {
            self.standardize(mean, deviation)
        } else {
            self.normalize(0.0, 1.0)
        }
        Ok(Code::Levels { levels: words.to_vec(), fill: mean })
    }
}
