//! What fails in the middle of a run: its folder becomes read-only, or there are no more file handles. The run ends with an
//! error that says what and where, and goes on to the bits of an undisturbed one. A disk that is full is in `full_disk.rs`.
#![cfg(all(unix, feature = "cli"))]

use crate::command::{clinic, querent};
use crate::common::weights;
use querent::Model;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A run of seven epochs or so.
const TRAIN: [&str; 12] = [
    "train",
    "problem.toml",
    "--engine",
    "cpu",
    "--alpha",
    "0.05",
    "--epochs",
    "2",
    "--epoch-steps",
    "100",
    "--hidden",
    "16",
];

fn model(run: PathBuf) -> Vec<f64> {
    weights(&Model::load(run.join("model.safetensors")).unwrap_or_else(|error| panic!("{error}")))
}

/// A folder that nothing can be written to. It is as before when this is gone, so that it can be removed.
struct ReadOnly(PathBuf);

impl ReadOnly {
    /// By permissions, or, as these do not bind root, by an attribute; `None` if both do not help.
    fn new(folder: &Path) -> Option<Self> {
        let made = Self(folder.to_path_buf());
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o555)).expect("changes");
        let is_writable = || std::fs::write(folder.join("probe"), "").is_ok();
        if is_writable() {
            std::fs::remove_file(folder.join("probe")).expect("removes");
            let _ = Command::new("chattr").arg("+i").arg(folder).output();
        }
        (!is_writable()).then_some(made)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).output();
        let _ = std::fs::remove_file(self.0.join("probe"));
        let _ = std::fs::set_permissions(&self.0, PermissionsExt::from_mode(0o755));
    }
}

#[test]
fn a_folder_that_becomes_read_only() {
    let dir = clinic("read-only");
    let done = querent(&dir.0, &[&TRAIN[..], &["--out", "whole"]].concat(), "");
    assert_eq!(done.code, Some(0), "{}", done.err);

    let mut command = Command::new(env!("CARGO_BIN_EXE_querent"));
    command.args(TRAIN).args(["--out", "run"]).current_dir(&dir.0);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    // When the second epoch's line is there, the first one's checkpoint is.
    assert!(lines.any(|line| line.starts_with("epoch   1 ")), "there is a second epoch");
    let run = dir.0.join("run");
    let Some(read_only) = ReadOnly::new(&run) else {
        eprintln!("SKIPPED: a folder cannot be made read-only here (chmod, chattr +i)");
        let _ = child.kill();
        let _ = child.wait();
        return;
    };
    let said: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("ends").code(), Some(2), "{said:?}");
    let error = said.iter().find(|line| line.starts_with("error: ")).expect("an error");
    println!("{error}");
    assert!(error.contains("run/checkpoint.safetensors: "), "{error}");
    assert!(error.contains("not permitted") || error.contains("denied"), "{error}");
    assert!(!run.join("model.safetensors").exists());

    // As long as it is so, going on is an error as well; afterwards it ends as if nothing had been.
    let resume = [&TRAIN[..], &["--out", "run", "--resume"]].concat();
    let done = querent(&dir.0, &resume, "");
    assert!(done.code == Some(2) && !done.err.contains("panicked"), "{}", done.err);
    drop(read_only);
    let done = querent(&dir.0, &resume, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(model(run), model(dir.0.join("whole")));
}

#[test]
fn without_file_handles() {
    let dir = clinic("handles");
    let mut codes = Vec::new();
    // Three are there from the start, and the loader needs one for libraries. A checkpoint needs one beside the lock.
    for handles in 4..=6 {
        let out = format!("run{handles}");
        let script = format!("ulimit -n {handles} && exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_querent")]).args(TRAIN).args(["--out", &out]);
        let output = command.current_dir(&dir.0).output().expect("sh");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{handles} handles: {said}");
        let code = output.status.code().expect("no signal");
        let error = said.lines().find(|line| line.starts_with("error: "));
        println!("{handles} handles: exit code {code} {}", error.unwrap_or_default());
        assert!(code == 0 || error.is_some_and(|line| line.contains("Too many open files")), "{said}");
        codes.push(code);
        if code == 2 {
            let done = querent(&dir.0, &[&TRAIN[..], &["--out", &out, "--resume"]].concat(), "");
            assert_eq!(done.code, Some(0), "{}", done.err);
        }
    }
    assert!(codes.contains(&0) && codes.contains(&2), "{codes:?}");
    // Whatever happened on the way, all end with the same bits.
    let expected = model(dir.0.join("run6"));
    (4..6).for_each(|handles| assert_eq!(model(dir.0.join(format!("run{handles}"))), expected));
}
