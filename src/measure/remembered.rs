//! Speeds that were measured before, in a small file: measuring again costs seconds, and the answer is the same.

use crate::error::{Error, Result};
use crate::files::write_atomically;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How the file is made: one of another kind is written anew.
const FORMAT: u32 = 1;
/// Speeds in a file, at most: beyond that it begins anew.
const MOST: usize = 1000;

/// Speeds by what was measured, and the file they are kept in.
#[derive(Debug)]
pub struct Remembered {
    path: PathBuf,
    speeds: BTreeMap<String, f64>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    format: u32,
    /// Training instances a second.
    instances_per_second: BTreeMap<String, f64>,
}

impl Remembered {
    /// What a file holds: nothing if it is not there, broken, or of another kind.
    pub fn open(path: PathBuf) -> Self {
        let stored =
            std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Stored>(&bytes).ok());
        let mut speeds = stored
            .filter(|stored| stored.format == FORMAT)
            .map(|stored| stored.instances_per_second)
            .unwrap_or_default();
        speeds.retain(|_, speed| speed.is_finite() && *speed > 0.0);
        Self { path, speeds }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was measured of something.
    pub fn get(&self, what: &str) -> Option<f64> {
        self.speeds.get(what).copied()
    }

    /// Keeps a speed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&mut self, what: String, speed: f64) -> Result<()> {
        if self.speeds.len() >= MOST {
            self.speeds.clear();
        }
        self.speeds.insert(what, speed);
        let stored = Stored { format: FORMAT, instances_per_second: self.speeds.clone() };
        let text = serde_json::to_string_pretty(&stored)
            .map_err(|error| Error::Internal(format!("measured speeds are no JSON: {error}")))?;
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
        }
        write_atomically(&self.path, (text + "\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_kept_and_a_broken_file_is_written_anew() {
        let dir = std::env::temp_dir().join(format!("querent-speeds-{}", std::process::id()));
        let path = dir.join("made/for this.json");
        let mut speeds = Remembered::open(path.clone());
        assert_eq!(speeds.get("a"), None);
        speeds.keep("a".into(), 12.5).expect("writes");
        speeds.keep("b".into(), 3.0).expect("writes");
        assert_eq!(Remembered::open(path.clone()).get("a"), Some(12.5));
        let other = r#"{ "format": 2, "instances_per_second": { "a": 1.0 } }"#;
        let mad = r#"{ "format": 1, "instances_per_second": { "a": -1.0, "b": 0.0 } }"#;
        for broken in ["", "{", "[1]", "{\"format\":1}", other, mad] {
            std::fs::write(&path, broken).expect("writes");
            let mut speeds = Remembered::open(path.clone());
            assert_eq!((speeds.get("a"), speeds.get("b")), (None, None), "{broken}");
            speeds.keep("a".into(), 7.0).expect("writes");
            assert_eq!(Remembered::open(path.clone()).get("a"), Some(7.0), "{broken}");
        }
        // Where a folder is in its place nothing can be kept, and that is said.
        let taken = dir.join("taken");
        std::fs::create_dir_all(&taken).expect("a folder");
        assert!(Remembered::open(taken).keep("a".into(), 1.0).is_err());
        std::fs::remove_dir_all(&dir).expect("cleans up");
    }
}
