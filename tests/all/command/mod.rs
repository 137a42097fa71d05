//! Runs `querent` as people do, in a folder of its own.

use crate::common::{TempDir, assets};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What came of a command.
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs `querent` in a folder, with this on its standard input.
pub fn querent(folder: &Path, arguments: &[&str], input: &str) -> Done {
    querent_with(folder, &[], arguments, input)
}

/// The same, with these variables set.
pub fn querent_with(folder: &Path, variables: &[(&str, &Path)], arguments: &[&str], input: &str) -> Done {
    let mut command = Command::new(env!("CARGO_BIN_EXE_querent"));
    command.args(arguments).current_dir(folder);
    command.env_remove("RUST_LOG").env_remove("QUERENT_DATA").env_remove("XDG_DATA_HOME");
    command.envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    // A command that needs no input may have ended before it is written.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Done { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// Settings for a run that is over in a moment; it learns little.
pub const QUICK: &[&str] = &["--engine", "cpu", "--epochs", "1", "--epoch-steps", "20", "--hidden", "16"];

/// Trains quickly; panics if that fails.
pub fn train_quickly(folder: &Path, arguments: &[&str]) {
    let done = querent(folder, &[&["--quiet", "train"], arguments, QUICK].concat(), "");
    assert_eq!(done.code, Some(0), "{}", done.err);
}

/// A folder with the clinic's table and its problem.
pub fn clinic(name: &str) -> TempDir {
    let dir = TempDir::new(name);
    for file in ["clinic.csv", "prices.csv"] {
        std::fs::copy(assets().join("clinic").join(file), dir.0.join(file)).expect("copies");
    }
    let init = ["init", "clinic.csv", "--target", "diagnosis", "--prices", "prices.csv"];
    let done = querent(&dir.0, &init, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    dir
}
