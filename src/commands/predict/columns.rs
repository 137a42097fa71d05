//! Where a table has the columns that a model asks for, and which it does not have.

use super::{Encoding, Error, Failure, Model, TableReader, Talk, say};
use querent::data::nearest::did_you_mean;
use std::collections::HashMap;
use std::path::PathBuf;

/// The columns of a table, as a model sees them.
pub struct Columns {
    path: PathBuf,
    at: HashMap<String, usize>,
    keep: Vec<usize>,
    /// What is not there: in words, one each.
    absent: Vec<String>,
}

impl Columns {
    /// Looks for them.
    ///
    /// # Errors
    /// None is there, or one that is to be kept is not.
    pub fn find(
        table: &TableReader,
        model: &Model,
        encoding: &Encoding,
        keep: &[String],
    ) -> Result<Self, Failure> {
        let header = table.header();
        let at: HashMap<String, usize> = header.iter().cloned().zip(0..).collect();
        let keep = keep.iter().map(|name| table.column(name)).collect::<querent::Result<_>>()?;
        let mut absent = Vec::new();
        // A column that the model knows already is nobody's near miss.
        let free = || {
            let is_free = |name: &&str| !encoding.fields().any(|field| field.name == **name);
            header.iter().map(String::as_str).filter(is_free)
        };
        for (feature, fields) in model.problem().features().iter().zip(&encoding.features) {
            let missing: Vec<&str> = fields
                .iter()
                .map(|field| field.name.as_str())
                .filter(|name| !at.contains_key(*name))
                .collect();
            if let Some(name) = missing.first() {
                let meant = did_you_mean(name, free());
                let whose = &feature.name;
                absent.push(format!("there is no column `{name}`: `{whose}` cannot be had{meant}"));
            }
        }
        for field in encoding.known.iter().filter(|field| !at.contains_key(&field.name)) {
            let meant = did_you_mean(&field.name, free());
            absent.push(format!("there is no column `{}`: it counts as missing{meant}", field.name));
        }
        if !encoding.fields().any(|field| at.contains_key(&field.name)) {
            // The first complaint of the reader names what there is.
            let name = encoding.fields().next().map_or("", |field| &field.name);
            table.column(name)?;
        }
        Ok(Self { path: table.path().to_path_buf(), at, keep, absent })
    }

    /// Says what is not there.
    ///
    /// # Errors
    /// That is not allowed.
    pub fn check(&self, strict: bool, talk: Talk) -> Result<(), Failure> {
        const TOLD: usize = 10;
        if let (true, Some(first)) = (strict, self.absent.first()) {
            return Err(Error::file(&self.path, first.as_str()).into());
        }
        for what in self.absent.iter().take(TOLD) {
            say(talk, format_args!("warning: {}: {what}", self.path.display()));
        }
        if self.absent.len() > TOLD {
            say(talk, format_args!("warning: {} more columns are not there", self.absent.len() - TOLD));
        }
        Ok(())
    }

    /// Where a column is.
    pub fn at(&self, name: &str) -> Option<usize> {
        self.at.get(name).copied()
    }

    /// The cells that are copied; empty ones for a row that cannot be read.
    pub fn kept<'r>(&self, cells: Option<&'r csv::StringRecord>) -> Vec<&'r str> {
        self.keep.iter().map(|&at| cells.and_then(|cells| cells.get(at)).unwrap_or_default()).collect()
    }
}
