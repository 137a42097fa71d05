//! What a command is about: a `problem.toml`, or a data set of the catalog.

use super::room::Room;
use super::{Failure, Talk, progress};
use querent::data::catalog::{self, Entry};
use querent::data::table::{Prepared, Schema, Survey, TableReader, prepare_some};
use querent::{Error, Result};
use std::path::{Path, PathBuf};

/// Where rows come from.
pub enum Source {
    /// A `problem.toml`.
    File(PathBuf),
    /// A data set of the catalog, and its folder.
    Named(&'static Entry, PathBuf),
}

impl Source {
    /// Tells which one an argument means.
    ///
    /// # Errors
    /// It is neither.
    pub fn find(said: &str, data_dir: Option<&Path>) -> Result<Self> {
        let path = Path::new(said);
        if path.is_file() || path.extension().is_some_and(|ending| ending == "toml") {
            return Ok(Self::File(path.to_path_buf()));
        }
        match catalog::find(said) {
            // Those without files need no folder.
            Ok(entry) if entry.is_synthetic() => Ok(Self::Named(entry, PathBuf::new())),
            Ok(entry) => Ok(Self::Named(entry, catalog::data_dir(data_dir)?)),
            Err(error) => Err(Error::file(path, format!("there is no such file, and {error}"))),
        }
    }

    /// Reads it, ready to be trained on: what there is room for.
    ///
    /// # Errors
    /// What is wrong with the file, the table or the data set, or that it does not fit.
    pub fn load(&self, seed: u64, room: &Room, talk: Talk) -> Result<Prepared, Failure> {
        match self {
            Self::File(path) => {
                let schema = Schema::load(path).map_err(|error| table_instead(path, error))?;
                let file = schema.table_path(path);
                let open = |done| TableReader::open(&file).map(|table| progress::watched(table, done, talk));
                let mut sample = None;
                if room.looks(&file) {
                    let survey = Survey::of(open("counted")?, &schema)?;
                    sample = Some(room.sample(&survey, &file, talk)?);
                }
                Ok(prepare_some(open("read")?, &schema, sample)?)
            }
            Self::Named(entry, dir) => Ok(entry.load(dir, seed)?),
        }
    }

    /// The `problem.toml`, as seen from anywhere; `None` for a data set of the catalog.
    pub fn file(&self) -> Option<String> {
        let Self::File(path) = self else { return None };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Some(path.display().to_string())
    }

    /// The data folder that its files are in, as seen from anywhere; `None` for what is not in one.
    pub fn data_dir(&self) -> Option<String> {
        match self {
            Self::Named(entry, dir) if !entry.is_synthetic() => {
                let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
                Some(dir.display().to_string())
            }
            _ => None,
        }
    }

    /// The name for folders and titles.
    pub fn name(&self) -> String {
        match self {
            Self::Named(entry, _) => entry.name.to_string(),
            Self::File(path) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
                match folder {
                    Some(folder) if stem == "problem" && !folder.is_empty() => folder.into_owned(),
                    _ => stem.into_owned(),
                }
            }
        }
    }

    /// Whether another seed gives other rows.
    pub fn is_synthetic(&self) -> bool {
        matches!(self, Self::Named(entry, _) if entry.is_synthetic())
    }
}

/// What is wrong with a file that is no problem: that it is a table, if it is one.
fn table_instead(path: &Path, error: Error) -> Error {
    if path.extension().is_some_and(|ending| ending == "toml") || !path.is_file() {
        return error;
    }
    match TableReader::open(path) {
        Ok(table) if table.header().len() > 1 => {
            let shown = table.header().iter().take(8).map(|name| format!("`{name}`")).collect::<Vec<_>>();
            let more = if table.header().len() > 8 { ", …" } else { "" };
            let name = path.display();
            Error::file(
                path,
                format!(
                    "this is a table, and a problem file is needed, which says what its columns are and what they cost. \
                     `querent init {name} --target COLUMN` writes one, problem.toml, where COLUMN is what is to be \
                     predicted: {}{more}. Look it through, then train on that",
                    shown.join(", ")
                ),
            )
        }
        Ok(_) => error,
        // A file of another program: which one, and what to do about it.
        Err(table) => table,
    }
}
