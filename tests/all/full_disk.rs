//! A disk that is full: the run ends with an error that names the file and the cause, what was there
//! before is untouched, and nothing half-written is left.
#![cfg(all(unix, feature = "report"))] // the example draws

use crate::common::{TempDir, example};
use std::path::Path;
use std::process::{Command, Output};

/// What the example is run with: a second or two.
const ARGUMENTS: [&str; 6] = ["--engine", "cpu", "--quick", "--test-size", "200", "--out"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks how a run ended that could not write a file.
fn check_failed(run: &Output, file: &Path, cause: &str) {
    let complaint = text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{complaint}");
    let line = complaint.lines().find(|line| line.starts_with("error: ")).expect("an error");
    let name = file.display().to_string();
    assert!(line.contains(&name) && line.contains(cause), "neither {name} nor {cause} in: {line}");
    assert!(!complaint.contains("panicked"), "{complaint}");
    println!("{line}");
}

/// Runs `syn1` in a shell that lets no file grow beyond so many bytes. The signal that comes with the
/// refusal is ignored, as the write then fails with an error, as on a full disk.
fn limited(program: &Path, folder: &Path, bytes: usize, more: &[&str]) -> Output {
    let blocks = bytes / 512;
    let script = format!("trap '' XFSZ; ulimit -f {blocks} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(program).args(ARGUMENTS).arg(folder).args(more);
    command.output().expect("sh")
}

#[test]
fn a_file_that_may_not_grow() {
    let program = example("syn1");
    let folder = TempDir::new("full-disk");
    let path = |name: &str| folder.0.join(name);

    // The first checkpoint of a run does not fit: whatever had its name stays.
    std::fs::write(path("checkpoint.safetensors"), "of an earlier run").expect("writes");
    let run = limited(&program, &folder.0, 64 << 10, &[]);
    check_failed(&run, &path("checkpoint.safetensors"), "File too large");
    assert_eq!(std::fs::read(path("checkpoint.safetensors")).expect("reads"), b"of an earlier run");
    assert_eq!(folder.files(), ["checkpoint.safetensors"]);

    // The control: with room enough, the same command goes through and writes them all.
    let run = limited(&program, &folder.0, 64 << 20, &[]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let files = folder.files();
    let whole = |name: &str| std::fs::read(path(name)).expect("reads");
    let (checkpoint, model) = (whole("checkpoint.safetensors"), whole("model.safetensors"));

    // The model of a run that is done does not fit: the earlier model stays, and so does all else.
    let run = limited(&program, &folder.0, 64 << 10, &["--resume"]);
    check_failed(&run, &path("model.safetensors"), "File too large");
    assert_eq!(whole("model.safetensors"), model);
    assert_eq!(whole("checkpoint.safetensors"), checkpoint);
    assert_eq!(folder.files(), files);

    // The same without an earlier one: no model, rather than half of one.
    std::fs::remove_file(path("model.safetensors")).expect("removes");
    let run = limited(&program, &folder.0, 64 << 10, &["--resume"]);
    check_failed(&run, &path("model.safetensors"), "File too large");
    assert_eq!(folder.files().len(), files.len() - 1);
    assert!(!path("model.safetensors").exists());
}

/// A disk of its own for the run, and really full. This needs the right to mount one: root, or a user
/// who may open a namespace.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full() {
    let namespace = ["-m", "-rm"].into_iter().find(|flag| {
        let probe = ["sh", "-c", "mount -t tmpfs none /mnt"];
        Command::new("unshare").arg(flag).args(probe).output().is_ok_and(|probe| probe.status.success())
    });
    let Some(namespace) = namespace else {
        eprintln!("SKIPPED: a disk of 256 KiB cannot be mounted here (unshare, mount -t tmpfs)");
        return;
    };
    let program = example("syn1");
    let folder = TempDir::new("tiny-disk");
    // The disk is gone with the shell, so that this has to look at what is left on it.
    let script = r#"
        mount -t tmpfs -o size=256k none "$DISK" || exit 99
        printf 'of an earlier run' >"$DISK/checkpoint.safetensors"
        "$@" "$DISK"
        code=$?
        echo "left: $(ls -A "$DISK" | tr '\n' ' ')"
        echo "holds: $(cat "$DISK/checkpoint.safetensors")"
        echo "free: $(df -P "$DISK" | awk 'NR == 2 { print $4 }')"
        exit $code
    "#;
    let mut command = Command::new("unshare");
    command.arg(namespace).args(["sh", "-c", script, "sh"]).arg(&program).args(ARGUMENTS);
    let run = command.env("DISK", &folder.0).output().expect("unshare");
    let shown = text(&run.stdout);
    println!("{shown}");
    check_failed(&run, &folder.0.join("checkpoint.safetensors"), "No space left on device");
    let line = |name: &str| shown.lines().find_map(|line| line.strip_prefix(name)).expect(name).trim();
    assert_eq!(line("left:"), "checkpoint.safetensors");
    assert_eq!(line("holds:"), "of an earlier run");
    let free: usize = line("free:").parse().expect("a number");
    assert!(free > 240, "only {free} KiB are free again");
}
