//! Writing files so that nobody ever sees half of one.

use crate::error::{Error, Result};
use std::io::Write;
use std::path::Path;

/// Writes a file under a temporary name beside its place, then renames it. If anything fails, the
/// old file is untouched and nothing is left behind.
///
/// # Errors
/// What the system reports, with the path.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|error| {
        // The failure itself is what matters; that there may be nothing to remove does not.
        let _ = std::fs::remove_file(&temporary);
        Error::io(path, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut left: Vec<_> =
            std::fs::read_dir(&dir).expect("lists").flatten().map(|e| e.file_name()).collect();
        left.sort();
        assert_eq!(left, ["a", "taken"]);
        std::fs::remove_dir_all(&dir).expect("cleans up");
    }
}
