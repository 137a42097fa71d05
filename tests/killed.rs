//! A training run that is killed, by a signal that nothing can catch, and started again with
//! `--resume`, as often as it takes, ends with the very bits of a run that nobody disturbed.
//! A binary of its own: kills are timed by how long epochs take, which other tests would change.
#![cfg(feature = "report")] // the example draws

#[path = "all/common/mod.rs"]
mod common;

use common::{TempDir, example, weights};
use querent::Model;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Eleven epochs of a fraction of a second.
fn syn1(program: &Path, folder: &Path, seed: u64, resume: bool) -> Command {
    let mut command = Command::new(program);
    command.args(["--engine", "cpu", "--quick", "--epochs", "2", "--test-size", "200"]);
    command.arg("--seed").arg(seed.to_string()).arg("--out").arg(folder);
    if resume {
        command.arg("--resume");
    }
    command
}

/// A run whose lines are read as they come. It is gone when this is.
struct Run {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Run {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the example starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    /// Waits for so many epochs and gives the last one's number; `None` if the run ends before.
    fn epochs(&mut self, count: usize) -> Option<usize> {
        let mut epochs = self.lines.by_ref().filter_map(|line| {
            let line = line.expect("text");
            let number = line.strip_prefix("epoch")?.split_whitespace().next()?.parse().ok()?;
            println!("  {line}");
            Some(number)
        });
        epochs.nth(count - 1)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn to_the_end(command: Command) {
    let mut run = Run::start(command);
    run.lines.by_ref().for_each(|line| println!("  {}", line.expect("text")));
    assert!(run.child.wait().expect("ends").success());
}

fn load(folder: &Path) -> Model {
    Model::load(folder.join("model.safetensors")).unwrap_or_else(|error| panic!("{error}"))
}

/// The history without the seconds, which no two runs share.
fn history(model: &Model) -> Vec<querent::policy::history::Epoch> {
    let epochs = model.history().iter().cloned();
    epochs.map(|epoch| querent::policy::history::Epoch { seconds: 0.0, ..epoch }).collect()
}

#[test]
fn a_run_killed_three_times_ends_with_equal_bits() {
    let program = example("syn1");
    let folder = TempDir::new("killed");
    let (undisturbed, killed, other) =
        (folder.0.join("undisturbed"), folder.0.join("killed"), folder.0.join("other"));
    let begin = Instant::now();
    to_the_end(syn1(&program, &undisturbed, 0, false));
    let expected = load(&undisturbed);
    let epochs = expected.history().len();
    let epoch = begin.elapsed() / epochs as u32;

    // An epoch's line comes just before its checkpoint is written: a kill at once is likely to hit that,
    // and the epoch is done again. The second kill is in the middle of an epoch, the third anywhere.
    let anywhere = epoch.mul_f64(f64::from(begin.elapsed().subsec_nanos() % 1000) / 1000.0);
    let mut last = None;
    for (round, delay) in [Duration::ZERO, epoch / 2, anywhere].into_iter().enumerate() {
        let mut run = Run::start(syn1(&program, &killed, 0, round > 0));
        // At least one checkpoint is complete when the second epoch's line is there.
        let at = run.epochs(2).expect("an epoch's line");
        std::thread::sleep(delay);
        let running = run.child.try_wait().expect("a state").is_none();
        assert!(running, "the run was over before it could be killed");
        drop(run);
        println!("killed {delay:?} after the line of epoch {at} of {epochs}");
        assert!(!killed.join("model.safetensors").exists(), "killed in training, but there is a model");
        assert!(last < Some(at), "the run went back to epoch {at}, though {last:?} had been reached");
        last = Some(at);
    }
    to_the_end(syn1(&program, &killed, 0, true));

    let resumed = load(&killed);
    assert_eq!(weights(&resumed), weights(&expected));
    assert_eq!(history(&resumed), history(&expected));
    // Nor is anything left of a write that a kill may have hit.
    let names = std::fs::read_dir(&killed).expect("lists").flatten().map(|entry| entry.path());
    let remains: Vec<_> =
        names.filter(|path| path.extension().is_some_and(|ending| ending == "tmp")).collect();
    assert!(remains.is_empty(), "{remains:?}");

    // The control: another seed gives other bits.
    to_the_end(syn1(&program, &other, 1, false));
    assert_ne!(weights(&load(&other)), weights(&expected));
}

/// The objective of each run of a sweep.
fn objectives(json: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(json).unwrap_or_else(|error| panic!("{}: {error}", json.display()));
    let rows: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    rows.as_array().expect("rows").iter().map(|row| row["objective"].as_f64().expect("a number")).collect()
}

/// Killed in its second run: the first is not trained again, the second goes on, the third has not begun.
#[test]
fn a_sweep_that_was_killed_goes_on() {
    let program = example("syn1");
    let folder = TempDir::new("killed_sweep");
    let sweep = |name: &str, resume: bool| {
        let mut command = syn1(&program, &folder.0.join(name), 0, resume);
        command.args(["--sweep", "0.01,0.02,0.05", "--seeds", "0", "--set", "epoch_steps=10"]);
        command.arg("--json").arg(folder.0.join(name).with_extension("json"));
        command
    };
    to_the_end(sweep("undisturbed", false));
    let expected = objectives(&folder.0.join("undisturbed.json"));
    assert_eq!(expected.len(), 3);

    let mut run = Run::start(sweep("killed", false));
    let epochs = load(&folder.0.join("undisturbed/alpha_0.01_seed_0")).history().len();
    run.epochs(epochs + 2).expect("an epoch's line of the second run");
    drop(run);
    assert!(!folder.0.join("killed.json").exists(), "the sweep was over before it could be killed");
    assert!(!folder.0.join("killed/alpha_0.05_seed_0").exists());
    let mut resumed = Run::start(sweep("killed", true));
    let trained = std::iter::from_fn(|| resumed.epochs(1)).count();
    assert!(resumed.child.wait().expect("ends").success());
    println!("{trained} epochs after the kill, of {} in all", 3 * epochs);
    assert!(trained < 2 * epochs && trained >= epochs);
    assert_eq!(objectives(&folder.0.join("killed.json")), expected);
}
