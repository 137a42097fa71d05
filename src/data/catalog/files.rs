//! Whether a data set's files are there and the right ones.

use super::{Entry, FileEntry, Sum};
use crate::error::{Error, Result};
use sha1::Digest;
use std::io::Read;
use std::path::Path;

/// What was found of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It is the right one.
    Right,
    /// It is not there.
    Absent,
    /// It is another one, with this sum.
    Wrong(String),
}

/// A file of a data set, and what was found of it.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name.
    pub name: &'static str,
    /// What was found.
    pub state: State,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Feeds a file through a digest, piece by piece.
fn digest<D: Digest>(path: &Path, mut state: D) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hex(&state.finalize()));
        }
        state.update(&buffer[..read]);
    }
}

impl FileEntry {
    fn state(&self, folder: &Path) -> Result<State> {
        let path = folder.join(self.name);
        let failed = |error| Error::io(&path, error);
        let len = match std::fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(State::Absent),
            Err(error) => return Err(failed(error)),
        };
        let (sum, right) = match self.sum {
            Sum::Sha256(wanted) => {
                let sum = digest(&path, sha2::Sha256::new()).map_err(failed)?;
                let right = sum == wanted;
                (format!("SHA-256 {sum}"), right)
            }
            Sum::GitBlob(wanted) => {
                let mut state = sha1::Sha1::new();
                state.update(format!("blob {len}\0"));
                let sum = digest(&path, state).map_err(failed)?;
                let right = wanted.contains(&sum.as_str());
                (format!("git blob {sum}"), right)
            }
        };
        Ok(if right { State::Right } else { State::Wrong(sum) })
    }
}

impl Entry {
    /// Looks at each of its files.
    ///
    /// # Errors
    /// A file that is there cannot be read.
    pub fn look(&self, data_dir: &Path) -> Result<Vec<Found>> {
        let folder = data_dir.join(self.name);
        self.files.iter().map(|file| Ok(Found { name: file.name, state: file.state(&folder)? })).collect()
    }

    /// Makes sure that all of its files are there and the right ones.
    ///
    /// # Errors
    /// The first that is not, and where to get it.
    pub fn check(&self, data_dir: &Path) -> Result<()> {
        for Found { name, state } in self.look(data_dir)? {
            let path = data_dir.join(self.name).join(name);
            let get = format!("get it from {} and put it there", self.origin);
            match state {
                State::Right => {}
                State::Absent => {
                    return Err(Error::file(
                        path,
                        format!(
                            "the file is not there; {get}. Data sets were looked for in {}: {}. \
                             `querent data list` shows which are there",
                            data_dir.display(),
                            super::folder::ways()
                        ),
                    ));
                }
                State::Wrong(sum) => {
                    return Err(Error::file(path, format!("this is another file ({sum}); {get}")));
                }
            }
        }
        Ok(())
    }
}
