//! Writing files so that nobody ever sees half of one.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name beside its place, then renames it. If anything fails, the
/// old file is untouched and nothing is left behind. When it is in its place it is on the disk, and so is its name (if
/// the system fails at that last step, the new file stands and the error says so).
///
/// # Errors
/// What the system reports, with the path.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = Writing::begin(path)?;
    file.write(bytes)?;
    file.finish()
}

/// A file that is written piece by piece under a temporary name and takes its place when it is whole. Dropped before
/// that, it leaves nothing behind and the old file untouched.
#[derive(Debug)]
pub struct Writing {
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once it is in its place.
    file: Option<File>,
}

impl Writing {
    /// Begins with an empty file.
    ///
    /// # Errors
    /// What the system reports, with the path.
    pub fn begin(path: &Path) -> Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        // A browser has no processes: asking for the number would panic. It has no files either, as it says itself below.
        let process = if cfg!(target_arch = "wasm32") { 0 } else { std::process::id() };
        name.push(format!(".{process}.tmp"));
        let temporary = path.with_file_name(name);
        let file = File::create(&temporary).map_err(|error| Error::io(path, error))?;
        // Held until it is in its place: by that, what is being written is told from what was left. Where the system knows no
        // locks, nothing is taken for left.
        let _ = file.try_lock();
        Ok(Self { path: path.to_path_buf(), temporary, file: Some(file) })
    }

    /// Appends.
    ///
    /// # Errors
    /// What the system reports, with the path.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes));
        written.map_err(|error| Error::io(&self.path, error))
    }

    /// Puts the file into its place.
    ///
    /// # Errors
    /// What the system reports, with the path.
    pub fn finish(mut self) -> Result<()> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_all);
        let moved = synced.and_then(|()| std::fs::rename(&self.temporary, &self.path));
        moved.map_err(|error| Error::io(&self.path, error))?;
        self.file = None;
        sync_folder_of(&self.path).map_err(|error| Error::io(&self.path, error))
    }
}

/// Has the system write down a folder's new names. Without it a machine that loses power may wake up with the old ones.
#[cfg(unix)]
fn sync_folder_of(path: &Path) -> std::io::Result<()> {
    use std::io::ErrorKind;
    match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        // Some network file systems know no such thing, and a folder may be writable without being readable.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        done => done,
    }
}

/// Elsewhere folders cannot be opened like that; renaming is written down by the system.
#[cfg(not(unix))]
fn sync_folder_of(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// The folder a file is in: a bare name is in the one we are in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Drop for Writing {
    fn drop(&mut self) {
        // Closed first: some systems do not remove a file that is open.
        if self.file.take().is_some() {
            // What went wrong before is what matters; that there may be nothing to remove does not.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Removes what a process that was killed in the middle of [`write_atomically`] has left beside this file. What somebody is
/// writing now stays.
pub fn clear_remains(path: &Path) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    for entry in std::fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let process = found.to_str().and_then(|found| {
            found.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".tmp")?.parse::<u32>().ok()
        });
        if process.is_some() && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            // It is in nobody's way if it stays.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The bytes of a safetensors file with what its header says in order: the crate keeps it in a hash map, so that one model
/// would have other bytes each time it is written.
pub(crate) fn in_order(mut bytes: Vec<u8>) -> Vec<u8> {
    type Header = BTreeMap<String, BTreeMap<String, serde_json::Value>>;
    let start = size_of::<u64>();
    let Some(len) = bytes.first_chunk().map(|&len| u64::from_le_bytes(len) as usize) else { return bytes };
    let Some(header) = bytes.get_mut(start..start + len) else { return bytes };
    let ordered = serde_json::from_slice::<Header>(header).and_then(|header| serde_json::to_vec(&header));
    // In another order it is as long as before, but for the spaces at its end.
    if let Ok(ordered) = ordered
        && ordered.len() <= len
    {
        header.fill(b' ');
        header[..ordered.len()].copy_from_slice(&ordered);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remains_of_a_file_are_cleared_and_nothing_else() {
        let dir = std::env::temp_dir().join(format!("querent-remains-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary folder");
        let stay = ["a", "a.b.tmp", "a.tmp", "ab.7.tmp", "b.8.tmp"];
        for name in stay.iter().chain(&["a.12.tmp", "a.4000000000.tmp"]) {
            std::fs::write(dir.join(name), name).expect("writes");
        }
        // Another one that is being written.
        let mut half = Writing::begin(&dir.join("a")).expect("begins");
        clear_remains(&dir.join("a"));
        half.write(b"whole").expect("writes");
        half.finish().expect("is still there");
        assert_eq!(std::fs::read(dir.join("a")).expect("reads"), b"whole");
        let mut left: Vec<_> =
            std::fs::read_dir(&dir).expect("lists").flatten().map(|e| e.file_name()).collect();
        left.sort();
        assert_eq!(left, stay);
        std::fs::remove_dir_all(&dir).expect("cleans up");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let dir = std::env::temp_dir().join(format!("querent-files-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("taken/inside")).expect("a temporary folder");
        write_atomically(&dir.join("a"), b"one").expect("writes");
        write_atomically(&dir.join("a"), b"two").expect("overwrites");
        assert_eq!(std::fs::read(dir.join("a")).expect("reads"), b"two");
        // A folder stands where the file should go: the rename fails.
        let error = write_atomically(&dir.join("taken"), b"x").expect_err("cannot replace a folder");
        assert!(error.to_string().contains("taken"));
        // Given up in the middle: the old one is there, whole.
        let mut half = Writing::begin(&dir.join("a")).expect("begins");
        half.write(b"thr").expect("writes");
        drop(half);
        assert_eq!(std::fs::read(dir.join("a")).expect("reads"), b"two");
        let mut left: Vec<_> =
            std::fs::read_dir(&dir).expect("lists").flatten().map(|e| e.file_name()).collect();
        left.sort();
        assert_eq!(left, ["a", "taken"]);
        std::fs::remove_dir_all(&dir).expect("cleans up");
    }
}
