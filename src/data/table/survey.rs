//! A first look at a table that is to be trained on: how many rows it has, and what they will take in memory. It keeps
//! none of them.

use super::cells::Loaded;
use super::fit::{Training, fit_field};
use super::reader::{Cells, TableReader};
use super::sample::Sample;
use super::schema::Schema;
use crate::data::Normalization;
use crate::error::Result;

/// Rows that are looked at to learn how many columns the encoding has: enough for every number to be cut into as many
/// pieces as in a longer table (those that classes cut are counted as if there were as many as there may be).
const LOOKED_AT: usize = 10_000;
/// Questions of a case that are counted with, at most, as training has it by default.
const QUESTIONS: usize = 30;

/// What is known of a table before it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey {
    /// Rows, without those that the schema drops.
    pub rows: u64,
    /// Columns of the table that are used, the target not counted.
    pub used: usize,
    /// Columns that they become, about: rather too many than too few.
    pub columns: usize,
    /// What can be asked for.
    features: usize,
    classes: usize,
    /// The larger of the shares that validate and that test.
    evaluated: f64,
}

impl Survey {
    /// Bytes that a run takes besides its rows, about: networks, tapes, what is written.
    pub const BESIDES: u64 = 48 << 20;

    /// Reads a table once.
    ///
    /// # Errors
    /// The file cannot be read, a column is not there, or one of the first rows does not fit.
    pub fn of(mut table: TableReader, schema: &Schema) -> Result<Self> {
        let mut loaded = Loaded::new(&table, schema, 0)?;
        let (mut cells, mut rows) = (Cells::default(), 0);
        while table.next(&mut cells)? {
            if loaded.drops(&cells) {
                continue;
            }
            if loaded.rows() < LOOKED_AT {
                loaded.push(&cells)?;
            }
            rows += 1;
        }
        let split = &schema.split;
        let all = split.train + split.validation + split.test;
        let evaluated = if split.column.is_some() { 0.5 } else { split.validation.max(split.test) / all };
        Ok(Self {
            rows,
            used: loaded.columns.iter().flatten().count(),
            columns: columns(schema, &loaded, rows),
            features: schema.groups()?.len(),
            classes: schema.target.classes.len().max(schema.target.bins.unwrap_or(2)),
            evaluated,
        })
    }

    /// Bytes that training on so many rows takes, about: the most of what is there while they are split, encoded, trained
    /// on (as they are, and once more as the engine has them) and evaluated.
    pub fn needs(&self, rows: u64) -> u64 {
        let raw = 4 * self.used as u64;
        let encoded = 4 * self.columns as u64;
        let questions = self.features.min(QUESTIONS) as u64;
        // An episode, with what it asked and believed.
        let episode = 160 + 80 * questions + 8 * self.classes as u64;
        let split = raw + 48;
        let encoding = raw + encoded + 32;
        let training = 2 * encoded + 24;
        let evaluating = encoded + 24 + (self.evaluated * episode as f64) as u64;
        let row = split.max(encoding).max(training).max(evaluating);
        rows.saturating_mul(row).saturating_add(Self::BESIDES)
    }

    /// The most rows that so many bytes are enough for.
    pub fn fitting(&self, bytes: u64) -> u64 {
        let row = (self.needs(1 << 20) - Self::BESIDES) >> 20;
        bytes.saturating_sub(Self::BESIDES) / row.max(1)
    }

    /// So many of the rows at random; all if there are no more.
    pub fn sample(&self, rows: u64) -> Sample {
        Sample { rows: rows.min(self.rows), of: self.rows }
    }
}

/// How many columns the encoding of so many rows has at most, by the first of them, whose classes may be others than those of the
/// rest. What cannot be told from these rows counts as one; what is wrong with it is said when all are there.
fn columns(schema: &Schema, loaded: &Loaded<'_>, of: u64) -> usize {
    let rows: Vec<u32> = (0..loaded.rows() as u32).collect();
    let training = Training { rows: &rows, labels: &[], classes: 0 };
    let fields = loaded.columns.iter().enumerate().filter_map(|(index, raw)| Some((index, raw.as_ref()?)));
    fields
        .map(|(index, raw)| {
            let mut normalization = Normalization { mean: Vec::new(), scale: Vec::new() };
            let field = fit_field(schema, index, raw, training, true, &mut normalization);
            field.map_or(1, |field| field.columns()) + raw.most_cuts(of, schema.preprocessing.pieces)
        })
        .sum()
}
