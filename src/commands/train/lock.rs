//! One process at a time in the folder of a run: two would write over each other's checkpoints.

use crate::commands::Failure;
use querent::Error;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

/// The file that is locked, and says by whom. It stays when the run is over: the system gives the lock back however a
/// process ends, and removing the file would leave two with a lock on two files of that name.
pub const FILE: &str = ".lock";

/// A folder that is this process's own as long as this lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the folder.
    ///
    /// # Errors
    /// Another process has it, or the file cannot be written.
    pub fn take(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        let failed = |error| Failure::from(Error::io(&path, error));
        let mut file = open(&path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0).map_err(failed)?;
                write!(file, "process {}", std::process::id()).map_err(failed)?;
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Some systems do not let one read what another has locked.
                let _ = file.read_to_string(&mut holder);
                let holder = if holder.is_empty() { "another process" } else { &holder };
                let what =
                    format!("{holder} is training in it: wait until it is done, or --out writes elsewhere");
                return Err(Error::file(folder, what).into());
            }
            // A file system without locks is no reason not to train.
            Err(TryLockError::Error(error)) => {
                log::warn!("{}: {error}: nothing keeps another process out", path.display());
            }
        }
        Ok(Self { _file: file })
    }

    /// Takes the folder, as soon as no other process has it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn wait(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        let file = open(&path)?;
        // A file system without locks is no reason not to work.
        if let Err(error) = file.lock() {
            log::warn!("{}: {error}: nothing keeps another process out", path.display());
        }
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| Error::io(path, error).into())
}
