//! A table that does not fit into memory: told before its rows are read, or trained on in part; and an error, no abort,
//! where the system gives no more.
#![cfg(all(unix, feature = "cli"))]

use crate::command::{Done, QUICK, clinic, querent};
use crate::common::TempDir;
use querent::run::Run;
use std::io::Write;
use std::process::{Command, Stdio};

/// The clinic's table so many times over.
fn clinics(name: &str, times: usize) -> TempDir {
    let dir = clinic(name);
    let table = std::fs::read_to_string(dir.0.join("clinic.csv")).expect("reads");
    let (head, rows) = table.split_once('\n').expect("a header");
    std::fs::write(dir.0.join("clinic.csv"), format!("{head}\n{}", rows.repeat(times))).expect("writes");
    dir
}

/// Trains quickly at one α.
fn train(dir: &TempDir, arguments: &[&str]) -> Done {
    querent(&dir.0, &[&["train", "problem.toml", "--alpha", "0.05"], arguments, QUICK].concat(), "")
}

/// The same with so many KiB of addresses, and something that writes its standard input.
fn train_within(dir: &TempDir, kib: u64, arguments: &[&str], input: impl FnOnce(&mut dyn Write)) -> Done {
    let script = format!("ulimit -v {kib} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_querent"));
    command.args(["train", "problem.toml", "--alpha", "0.05"]).args(arguments).args(QUICK);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.current_dir(&dir.0).spawn().expect("sh");
    input(&mut child.stdin.take().expect("piped"));
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Checks that it was an error that was told.
fn check_refused(done: &Done, what: &str) {
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(!done.err.contains("panicked") && !done.err.contains("memory allocation of"), "{}", done.err);
    let line = done.err.lines().find(|line| line.starts_with("error: ")).expect("an error");
    assert!(line.contains(what), "no {what} in: {line}");
    println!("{line}");
}

#[test]
fn what_does_not_fit_is_told_before_it_is_read() {
    let dir = clinics("does-not-fit", 10);
    let done = train(&dir, &["--memory", "56M"]);
    check_refused(&done, "clinic.csv: 16000 rows of 10 columns, which become 199, need about 76 MB");
    check_refused(&done, "there are 59 MB (--memory). `querent train … --sample 5100` takes so many");
    assert!(!dir.0.join("runs").exists());

    // What was advised fits, and is said.
    let done = train(&dir, &["--memory", "56M", "--sample", "5100", "--out", "some"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("training on 5100 of 16000 rows, chosen at random\n"), "{}", done.err);
    assert!(done.err.contains("3570 training, 765 validation and 765 test rows"), "{}", done.err);
    let run = Run::load(&dir.0.join("some")).expect("a run");
    assert_eq!((run.sample, run.sizes), (Some(5100), [3570, 765, 765]));

    // The same rows are found again: by another run, and by whoever evaluates.
    let again = train(&dir, &["--sample", "5100", "--out", "again"]);
    assert_eq!((again.code, again.out.lines().nth(2)), (Some(0), done.out.lines().nth(2)), "{}", again.err);
    let eval = querent(&dir.0, &["eval", "some/model.safetensors", "--json"], "");
    assert!(
        eval.out.contains("\"instances\": 765") || eval.out.contains("\"instances\":765"),
        "{}",
        eval.out
    );
    assert!(eval.out.contains(&format!("{}", run.points[0].test.loss)), "{}", eval.out);

    // A run is gone on with as it was begun.
    let done = train(&dir, &["--sample", "5000", "--out", "some", "--resume"]);
    check_refused(&done, "begun with --sample 5100");
    // More rows than there are: all of them.
    let done = train(&dir, &["--sample", "99999", "--out", "all"]);
    assert!(done.code == Some(0) && !done.err.contains("at random"), "{}", done.err);

    check_refused(&train(&dir, &["--sample", "0"]), "at least 1");
    let done = querent(&dir.0, &["train", "syn1", "--sample", "10"], "");
    check_refused(&done, "`syn1` is a data set of the catalog");
    assert_eq!(train(&dir, &["--memory", "8X"]).code, Some(2));
}

/// Rows of a split are counted: a sample has the same shares of them.
#[test]
fn a_sample_keeps_the_shares_of_a_split() {
    let dir = clinic("sample-split");
    let file = dir.0.join("problem.toml");
    let problem = std::fs::read_to_string(&file).expect("reads");
    let split = "[split]\ntrain = 1200\nvalidation = 300\ntest = 100\n";
    let begin = problem.find("[split]").expect("a split");
    let end = begin + 1 + problem[begin + 1..].find("\n[").expect("more behind it");
    std::fs::write(&file, format!("{}{split}{}", &problem[..begin], &problem[end..])).expect("writes");
    let done = train(&dir, &["--sample", "800"]);
    assert!(done.err.contains("600 training, 150 validation and 50 test rows"), "{}", done.err);
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_is_an_error() {
    let dir = clinics("limit", 40);
    let nothing = |_: &mut dyn Write| ();
    // From where the process just starts to where its rows do not fit, whatever was said.
    for kib in [40_000, 60_000, 80_000, 100_000] {
        check_refused(&train_within(&dir, kib, &["--out", "run"], nothing), "(what `ulimit -v` leaves)");
        check_refused(
            &train_within(&dir, kib, &["--out", "run", "--memory", "1T"], nothing),
            "(what `ulimit -v` leaves)",
        );
    }
    // The control: a part of it fits, and so does all with more.
    let done = train_within(&dir, 100_000, &["--out", "some", "--sample", "1600"], nothing);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let done = train_within(&dir, 500_000, &["--out", "all"], nothing);
    assert_eq!(done.code, Some(0), "{}", done.err);
}

/// Of a pipe nobody knows how long it is: rows are read until there is no memory for more.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_without_end_is_an_error() {
    let dir = clinic("pipe");
    let table = std::fs::read_to_string(dir.0.join("clinic.csv")).expect("reads");
    let (head, rows) = table.split_once('\n').expect("a header");
    let file = dir.0.join("problem.toml");
    let problem = std::fs::read_to_string(&file).expect("reads").replace("\"clinic.csv\"", "\"/dev/stdin\"");
    std::fs::write(file, problem).expect("writes");
    let done = train_within(&dir, 90_000, &["--out", "run"], |input| {
        let mut written = writeln!(input, "{head}");
        while written.is_ok() {
            written = input.write_all(rows.as_bytes());
        }
    });
    check_refused(&done, "there is no memory for the cells of ");
}

/// So are threads that cannot be had.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_cannot_be_had_are_an_error() {
    let dir = clinic("threads");
    let script = "ulimit -v 100000 && RAYON_NUM_THREADS=500 exec \"$0\" train problem.toml --engine cpu";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_querent")]).current_dir(&dir.0);
    let output = command.output().expect("sh");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    check_refused(&Done { code: output.status.code(), out: String::new(), err }, "RAYON_NUM_THREADS=1");
}
