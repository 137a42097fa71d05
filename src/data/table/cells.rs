//! The cells of a table as its schema has them, column by column, while they wait for the split.

use super::fit::Raw;
use super::reader::{Cells, TableReader};
use super::schema::Schema;
use super::split::fold;
use super::target::Answers;
use crate::data::encoding::canonical;
use crate::data::numbers::number_in;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::push;
use std::path::PathBuf;

/// Everything read, in the schema's order of columns.
pub(super) struct Loaded<'s> {
    pub columns: Vec<Option<Raw>>,
    pub answers: Answers<'s>,
    pub split: Option<Vec<u8>>,
    schema: &'s Schema,
    path: PathBuf,
    /// Where the columns, the target and the split are in a row.
    at: Vec<Option<usize>>,
    target: usize,
    fold_at: Option<usize>,
}

impl<'s> Loaded<'s> {
    /// Nothing yet, with room for so many rows.
    ///
    /// # Errors
    /// A column is not there, or there is no memory.
    pub fn new(table: &TableReader, schema: &'s Schema, rows: usize) -> Result<Self> {
        let target = table.column(&schema.target.column)?;
        let fold_at = schema.split.column.as_deref().map(|name| table.column(name)).transpose()?;
        let mut at = Vec::new();
        let mut columns: Vec<Option<Raw>> = Vec::new();
        for column in &schema.features {
            if column.ignore {
                at.push(None);
                columns.push(None);
                continue;
            }
            at.push(Some(table.column(&column.name)?));
            columns.push(Some(Raw::new(column, rows)?));
        }
        Ok(Self {
            columns,
            answers: Answers::new(&schema.target),
            split: fold_at.map(|_| Vec::new()),
            schema,
            path: table.path().to_path_buf(),
            at,
            target,
            fold_at,
        })
    }

    /// Whether the schema leaves a row out.
    pub fn drops(&self, cells: &Cells) -> bool {
        let drop = &self.schema.target.drop;
        if drop.is_empty() {
            return false;
        }
        let word = canonical(&cells.cells[self.target]);
        drop.iter().any(|drop| canonical(drop) == word)
    }

    /// Takes a row.
    ///
    /// # Errors
    /// A cell does not fit its kind (with row and column), or there is no memory.
    pub fn push(&mut self, cells: &Cells) -> Result<()> {
        let schema = self.schema;
        let fail = |column: &str, error: Error| {
            if error.kind() == ErrorKind::OutOfMemory {
                return error;
            }
            let (row, line, what) = (cells.row, cells.line, error.message());
            Error::table(&self.path, format!("row {row} (line {line}), column `{column}`: {what}"))
        };
        self.answers.push(&cells.cells[self.target]).map_err(|error| fail(&schema.target.column, error))?;
        for ((raw, column), &at) in self.columns.iter_mut().zip(&schema.features).zip(&self.at) {
            let (Some(raw), Some(at)) = (raw, at) else { continue };
            let cell = &cells.cells[at];
            let trimmed = cell.trim();
            let is_missing = trimmed.is_empty() || schema.table.missing.iter().any(|word| word == trimmed);
            let cell = (!is_missing).then_some(cell);
            // What is too large counts as missing before anything else is known about the column.
            let cell = cell.filter(|cell| {
                !column
                    .missing_above
                    .is_some_and(|most| number_in(cell, column.decimal).is_ok_and(|value| value > most))
            });
            let closed = column.values.is_some();
            raw.push(cell, closed).map_err(|error| fail(&column.name, error))?;
        }
        if let (Some(splits), Some(at)) = (&mut self.split, self.fold_at) {
            let word = cells.cells[at].trim();
            let which = fold(word).ok_or_else(|| {
                let what = format!("`{word}` is none of `train`, `validation`, `test`");
                fail(schema.split.column.as_deref().unwrap_or_default(), Error::Data(what))
            })?;
            push(splits, which, "the split of the rows")?;
        }
        Ok(())
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.answers.rows()
    }
}
