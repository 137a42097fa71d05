//! Named data sets: where their files are, whether they are the right ones, and what their columns are.
//!
//! The files are looked for in a data folder ([`data_dir`]), a folder for each data set; nothing is downloaded.
//! Each is checked before it is read.

mod files;
mod folder;
mod idx;
mod list;
mod tables;

pub use files::{Found, State};
pub use folder::{data_dir, data_dir_set};
pub use idx::{Idx, read_idx};
pub use list::CATALOG;

use super::table::schema::Schema;
use super::table::{Prepared, TableReader, prepare};
use crate::data::encoding::{Code, Encoding, Field, Metric};
use crate::error::{Error, Result};
use std::path::Path;

/// A file of a data set.
#[derive(Clone, Copy, Debug)]
pub struct FileEntry {
    /// Its name in the data set's folder.
    pub name: &'static str,
    /// What it must be.
    pub sum: Sum,
}

/// What a file's content must be.
#[derive(Clone, Copy, Debug)]
pub enum Sum {
    /// Its SHA-256.
    Sha256(&'static str),
    /// One of these git blob ids (`git hash-object`), where no SHA-256 is known.
    GitBlob(&'static [&'static str]),
}

/// How a data set is read.
#[derive(Clone, Copy)]
enum Source {
    /// A table: the schema and the rows, from the folder.
    Table(fn(&Path) -> Result<(Schema, TableReader)>),
    /// Images as IDX files.
    Images,
    /// Made from a seed.
    Synthetic(fn(u64) -> Result<super::Dataset>),
}

/// A data set of the catalog.
pub struct Entry {
    /// Its name, and that of its folder.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Training, validation and test rows.
    pub sizes: [usize; 3],
    /// Features that can be asked for.
    pub features: usize,
    /// Classes.
    pub classes: usize,
    /// What it is judged by.
    pub metric: Metric,
    /// Its files.
    pub files: &'static [FileEntry],
    /// Where to get them.
    pub origin: &'static str,
    /// Its licence.
    pub licence: &'static str,
    source: Source,
}

/// The data set of a name.
///
/// # Errors
/// There is none; the error says which there are.
pub fn find(name: &str) -> Result<&'static Entry> {
    CATALOG.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = CATALOG.iter().map(|entry| entry.name).collect();
        Error::Data(format!("there is no data set `{name}`; there are {}", names.join(", ")))
    })
}

impl Entry {
    /// Whether it is made from a seed.
    pub fn is_synthetic(&self) -> bool {
        matches!(self.source, Source::Synthetic(_))
    }

    /// Whether its rows are bytes that stay bytes.
    pub fn is_images(&self) -> bool {
        matches!(self.source, Source::Images)
    }

    /// Its schema and rows, for a data set that is a table.
    ///
    /// # Errors
    /// It is not a table, or a file is not there or not the right one.
    pub fn table(&self, data_dir: &Path) -> Result<(Schema, TableReader)> {
        self.check(data_dir)?;
        match self.source {
            Source::Table(open) => open(&data_dir.join(self.name)),
            _ => Err(Error::Data(format!("`{}` is not a table", self.name))),
        }
    }

    /// Reads it, ready to be trained on. The seed matters only to synthetic ones.
    ///
    /// # Errors
    /// A file is not there, is not the right one, or cannot be read.
    pub fn load(&self, data_dir: &Path, seed: u64) -> Result<Prepared> {
        match self.source {
            Source::Table(_) => {
                let (schema, rows) = self.table(data_dir)?;
                prepare(rows, &schema)
            }
            Source::Images => {
                self.check(data_dir)?;
                idx::load(&data_dir.join(self.name), self.sizes, self.metric)
            }
            Source::Synthetic(make) => {
                let raw = make(seed)?;
                let problem = raw.problem();
                // Nothing is clipped: the tasks are what they are.
                let field = |name: &str| Field {
                    name: name.to_string(),
                    unit: String::new(),
                    code: Code::Number {
                        low: -1e30,
                        high: 1e30,
                        fill: 0.0,
                        seen: [-10.0, 10.0],
                        missing_above: None,
                        decimal: None,
                        knots: Vec::new(),
                    },
                    flag: false,
                };
                let encoding = Encoding {
                    target: "y".into(),
                    missing: Vec::new(),
                    features: problem.features().iter().map(|feature| vec![field(&feature.name)]).collect(),
                    known: Vec::new(),
                    metric: self.metric,
                    ranges: None,
                };
                encoding.check(problem)?;
                let rows = raw.sizes().map(|size| (0..size as u32).collect());
                Ok(Prepared { data: raw.standardized(), encoding, rows, metric: self.metric })
            }
        }
    }
}
