//! `querent train` and its folder: begun anew, gone on with under other settings, within a time, over several seeds;
//! numbers as people write them; the report's uncertainty.
#![cfg(feature = "cli")]

use crate::command::{Done, QUICK, querent, querent_with, train_quickly};
use crate::common::TempDir;
use querent::Model;
use querent::policy::history::Phase;
use querent::run::Run;
use std::path::Path;
use std::time::Instant;

/// Two features that say something about two classes, and one that does not.
fn tiny(name: &str, costs: [f64; 3], metric: &str) -> TempDir {
    let dir = TempDir::new(name);
    let mut table = String::from("a,b,c,y\n");
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
    };
    for _ in 0..180 {
        let [a, b, c, noise] = [0; 4].map(|_| random());
        let label = if a + 0.5 * b + 0.3 * noise > 0.0 { "yes" } else { "no" };
        table += &format!("{a:.4},{b:.4},{c:.4},{label}\n");
    }
    std::fs::write(dir.0.join("t.csv"), table).expect("writes");
    let feature = |name: &str, cost: f64| {
        format!("[[feature]]\nname = \"{name}\"\nkind = \"numeric\"\ncost = {cost:?}\n")
    };
    let features: String =
        ["a", "b", "c"].iter().zip(costs).map(|(name, cost)| feature(name, cost)).collect();
    let target = format!("[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\nmetric = \"{metric}\"\n");
    std::fs::write(dir.0.join("problem.toml"), format!("[table]\npath = \"t.csv\"\n{target}{features}"))
        .expect("writes");
    dir
}

fn train(dir: &TempDir, arguments: &[&str]) -> Done {
    querent(&dir.0, &[&["train", "problem.toml"], arguments, QUICK].concat(), "")
}

fn refused(dir: &TempDir, arguments: &[&str], says: &[&str]) {
    let done = train(dir, arguments);
    assert_eq!(done.code, Some(2), "{arguments:?}: {}{}", done.out, done.err);
    for says in says {
        assert!(done.err.contains(says), "{arguments:?}: `{says}` is not in {}", done.err);
    }
}

fn succeeded(dir: &TempDir, arguments: &[&str]) -> Done {
    let done = train(dir, arguments);
    assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.err);
    done
}

fn bytes(dir: &TempDir, file: &str) -> Vec<u8> {
    std::fs::read(dir.0.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn a_run_is_begun_anew_only_if_so_said() {
    let dir = tiny("force", [1.0, 1.0, 1.0], "accuracy");
    train_quickly(&dir.0, &["problem.toml", "--alphas", "0.01,0.1", "--out", "run"]);
    std::fs::write(dir.0.join("run/notes.txt"), "mine").expect("writes");
    let before = bytes(&dir, "run/alpha_0.01_seed_0/model.safetensors");
    let again = ["--alpha", "0.2", "--out", "run"];
    refused(&dir, &again, &["there is a run in it already", "--resume", "--force", "--out"]);
    refused(&dir, &[&again[..], &["--force", "--resume"]].concat(), &["cannot be used with"]);
    // What is wrong with the rest is known before anything is removed.
    refused(&dir, &["--alpha", "-1", "--out", "run", "--force"], &["alpha is -1"]);
    assert!(bytes(&dir, "run/alpha_0.01_seed_0/model.safetensors") == before, "it was removed");
    succeeded(&dir, &[&again[..], &["--force"]].concat());
    let record = Run::load(&dir.0.join("run")).expect("a run");
    assert_eq!(record.points.iter().map(|point| point.alpha).collect::<Vec<_>>(), [0.2]);
    assert!(!dir.0.join("run/alpha_0.01_seed_0/model.safetensors").exists(), "of the run before");
    assert!(!dir.0.join("run/alpha_0.01_seed_0/checkpoint.safetensors").exists());
    assert_eq!(bytes(&dir, "run/notes.txt"), b"mine", "not ours");
    // Where there is none, it changes nothing.
    succeeded(&dir, &["--alpha", "0.2", "--out", "other", "--force"]);
}

#[test]
fn what_a_kill_left_half_written_is_cleared() {
    let dir = tiny("remains", [1.0, 1.0, 1.0], "accuracy");
    std::fs::create_dir_all(dir.0.join("run")).expect("a folder");
    let ours =
        ["run.json", "checkpoint.safetensors", "model.safetensors"].map(|file| format!("run/{file}.77.tmp"));
    let left = || {
        for file in ours.iter().map(String::as_str).chain(["run/notes.77.tmp"]) {
            std::fs::write(dir.0.join(file), "half").expect("writes");
        }
    };
    // Killed before there was anything, and in the middle of a run.
    for arguments in
        [&["--alpha", "0.2", "--out", "run"][..], &["--alpha", "0.2", "--out", "run", "--resume"]]
    {
        left();
        // Neither a model nor a record of it is there yet; the second time, a checkpoint is.
        for file in ["run/run.json", "run/model.safetensors"] {
            std::fs::remove_file(dir.0.join(file)).ok();
        }
        succeeded(&dir, arguments);
        assert!(ours.iter().all(|file| !dir.0.join(file).exists()), "{arguments:?}");
        assert_eq!(bytes(&dir, "run/notes.77.tmp"), b"half", "not ours");
    }
}

#[test]
fn going_on_with_other_settings_names_them() {
    let dir = tiny("other-settings", [1.0, 1.0, 1.0], "accuracy");
    succeeded(&dir, &["--alpha", "0.1", "--out", "run"]);
    let says = ["networks.dropout was 0.3, now it is 0.1", "--force"];
    refused(&dir, &["--alpha", "0.1", "--dropout", "0.1", "--out", "run", "--resume"], &says);
    // Not finished: only its checkpoint is there. It is not lost by forgetting to say that the run goes on.
    std::fs::remove_file(dir.0.join("run/run.json")).expect("removes");
    let interrupted = ["checkpoint.safetensors", "was interrupted here", "--resume", "--force"];
    refused(&dir, &["--alpha", "0.1", "--out", "run"], &interrupted);
    let other = ["--alpha", "0.1", "--dropout", "0.1", "--out", "run", "--resume"];
    let done = train(&dir, &other);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("checkpoint.safetensors") && done.err.contains(says[0]), "{}", done.err);
    assert!(!done.err.contains("temperatures"), "what is the same is not named: {}", done.err);
    let weights = || Model::load(dir.0.join("run/model.safetensors")).expect("loads").network("policy");
    let trained = weights();
    succeeded(&dir, &["--alpha", "0.1", "--out", "run", "--resume"]);
    assert!(weights() == trained, "what was finished is not trained again");
    let before = bytes(&dir, "run/model.safetensors");
    // A model of another α is not written over.
    let says = ["model.safetensors", "α 0.1, seed 0", "α 0.2"];
    refused(&dir, &["--alpha", "0.2", "--out", "run", "--resume"], &says);
    assert!(bytes(&dir, "run/model.safetensors") == before, "it was written over");
}

/// Two processes in one folder would write over each other's checkpoints.
#[test]
fn one_process_trains_in_a_folder() {
    let dir = tiny("lock", [1.0, 1.0, 1.0], "accuracy");
    std::fs::create_dir(dir.0.join("run")).expect("a folder");
    let mut file = std::fs::File::create(dir.0.join("run/.lock")).expect("a file");
    std::io::Write::write_all(&mut file, b"process 4711").expect("writes");
    file.lock().expect("nobody has it");
    let run = ["--alpha", "0.1", "--out", "run"];
    for more in [&[][..], &["--resume"], &["--force"]] {
        refused(&dir, &[&run, more].concat(), &["run", "process 4711 is training in it", "--out"]);
    }
    // However that process ends, the lock is gone with it.
    drop(file);
    succeeded(&dir, &run);
    let holder = std::fs::read_to_string(dir.0.join("run/.lock")).expect("reads");
    assert!(holder.starts_with("process ") && !holder.ends_with("4711"), "{holder}");
}

/// Ranges that were given and ranges that were found are not taken for each other.
#[test]
fn a_given_range_is_not_a_found_one() {
    let dir = tiny("given-range", [1.0, 1.0, 1.0], "accuracy");
    succeeded(&dir, &["--range", "0.01,0.2", "--out", "given"]);
    let before = bytes(&dir, "given/model.safetensors");
    refused(&dir, &["--out", "given", "--resume"], &["α 0.01 to 0.2", "the range of α that is found"]);
    refused(&dir, &["--range", "0.01,0.3", "--out", "given", "--resume"], &["α 0.01 to 0.3"]);
    assert!(bytes(&dir, "given/model.safetensors") == before, "it was written over");
    let done = succeeded(&dir, &["--range", "0.01,0.2", "--out", "given", "--resume"]);
    assert!(done.err.contains("finished before"), "{}", done.err);
    succeeded(&dir, &["--out", "found"]);
    let done = succeeded(&dir, &["--out", "found", "--resume"]);
    assert!(done.err.contains("finished before"), "{}", done.err);
    refused(&dir, &["--range", "0.01,0.2", "--out", "found", "--resume"], &["--range 0.01,0.2"]);
}

#[test]
fn a_price_that_nothing_is_worth_is_warned_of() {
    let dir = tiny("worthless", [2.0, 3.0, 5.0], "accuracy");
    // ln 2 = 0.693 nats: a question of 2 is worth it below 0.347.
    for (alpha, warned) in [("0.34", false), ("0.36", true)] {
        let done = succeeded(&dir, &["--alpha", alpha, "--out", alpha]);
        assert_eq!(done.err.contains("no question can be worth its price"), warned, "{}", done.err);
        assert!(
            !warned || (done.err.contains("`a` for 2") && done.err.contains("below 0.347")),
            "{}",
            done.err
        );
    }
    let done = succeeded(&dir, &["--range", "0.1,3", "--out", "range"]);
    assert!(!done.err.contains("worth its price"), "{}", done.err);
    let done = succeeded(&dir, &["--range", "1,3", "--out", "beyond"]);
    assert!(done.err.contains("worth its price"), "{}", done.err);
}

#[test]
fn numbers_are_refused_as_they_were_written() {
    let dir = tiny("numbers", [1.0, 1.0, 1.0], "accuracy");
    for (flag, value, says) in [
        ("--alpha", "-0.1", "alpha is -0.1, but it must be a finite number, zero or more"),
        ("--alpha", "0,05", "no comma: 0.05"),
        ("--alpha", "-0,05", "no comma: -0.05"),
        ("--alpha", "much", "'much' for '--alpha"),
        ("--alphas", "0,05", "such as 0.05"),
        ("--alphas", "0.1,-0.2", "alpha is -0.2"),
        ("--range", "-0.1,0.2", "-0.1 to 0.2"),
        ("--range", "0,05", "such as 0.05"),
        ("--dropout", "-0.1", "dropout is -0.1"),
        ("--dropout", "0,1", "no comma: 0.1"),
        ("--seeds", "-1", "it must be a whole number, zero or more"),
        ("--horizon", "1.5", "it must be a whole number"),
        ("--minutes", "0", "--minutes is 0"),
        ("--minutes", "-2", "--minutes is -2"),
        ("--minutes", "nan", "--minutes is NaN"),
        ("--minutes", "1,5", "no comma: 1.5"),
    ] {
        refused(&dir, &[flag, value, "--out", "x"], &[says]);
    }
    for (flag, value, says) in [
        ("--epochs", "-1", "it must be a whole number, zero or more"),
        ("--epochs", "0", "stage_epochs is 0"),
        ("--epoch-steps", "0", "epoch_steps is 0"),
        ("--epoch-steps", "1,5", "it must be a whole number"),
    ] {
        let done = querent(&dir.0, &["train", "problem.toml", flag, value, "--out", "x"], "");
        assert!(done.code == Some(2) && done.err.contains(says), "{flag} {value}: {}", done.err);
    }
    let gdfs = ["--method", "gdfs", "--out", "x", "--thresholds"];
    for (value, says) in [("-1", "zero or more, but it is -1"), ("nan", "but it is NaN")] {
        refused(&dir, &[&gdfs[..], &[value]].concat(), &[says]);
    }
    assert!(!dir.0.join("x").exists(), "something was written");
}

/// A schedule that would take much longer is made shorter, and every stage of it gone through. How long that took is
/// printed: machines are too noisy to assert it.
#[test]
fn a_run_keeps_to_its_time() {
    let dir = tiny("minutes", [1.0, 1.0, 1.0], "accuracy");
    let seconds = 6.0;
    let minutes = (seconds / 60.0).to_string();
    let run = ["train", "problem.toml", "--engine", "cpu", "--minutes", &minutes, "--out", "run"];
    // An epoch of so many steps would take longer than all of the time.
    let long = ["--epoch-steps", "60000"];
    let start = Instant::now();
    let done = querent(&dir.0, &[&run[..], &long].concat(), "");
    let took = start.elapsed().as_secs_f64();
    println!("{took:.2} s of {seconds}\n{}", done.err);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(
        done.err.contains("training steps each, where the whole schedule has 28 of 60000"),
        "{}",
        done.err
    );
    let model = Model::load(dir.0.join("run/model.safetensors")).expect("loads");
    let stages: Vec<Phase> = model.history().iter().map(|epoch| epoch.phase).collect();
    for phase in
        [Phase::WarmUp, Phase::Stage(0), Phase::Stage(1), Phase::Stage(2), Phase::Stage(3), Phase::Stage(4)]
    {
        assert!(stages.contains(&phase), "{phase:?} is not in {stages:?}");
    }
    // It is finished, however many steps would be measured now.
    let again = querent(&dir.0, &[&run[..], &long, &["--resume"]].concat(), "");
    assert!(again.code == Some(0) && again.err.contains("finished before"), "{}", again.err);
    // A run that goes on has time only for what is left: here all its epochs are behind it, and a moment is enough.
    let mut record = Run::load(&dir.0.join("run")).expect("a run");
    record.points.clear();
    record.save(&dir.0.join("run")).expect("saves");
    let short = ["train", "problem.toml", "--engine", "cpu", "--minutes", "1e-6", "--out", "run", "--resume"];
    let resumed = querent(&dir.0, &[&short[..], &long].concat(), "");
    assert!(resumed.code == Some(0) && resumed.err.contains("what is left fits"), "{}", resumed.err);
    // Other methods have schedules of other lengths. What a slow machine calls too short names what is enough.
    for method in ["gdfs", "difa", "dime", "ol", "fixed"] {
        let run = |minutes: f64| {
            let minutes = minutes.to_string();
            let run = ["train", "problem.toml", "--engine", "cpu", "--method", method, "--out", method];
            let start = Instant::now();
            let done = querent(&dir.0, &[&run[..], &["--minutes", &minutes], &long].concat(), "");
            println!("{method}: {:.2} of {minutes} min\n{}", start.elapsed().as_secs_f64() / 60.0, done.err);
            done
        };
        let mut done = run(0.05);
        for _ in 0..3 {
            let Some((_, needed)) = done.err.split_once("with their validations, need about ") else { break };
            assert_eq!(done.code, Some(2), "{method}: {}", done.err);
            let needed: f64 = needed.trim().parse().expect("a number of minutes");
            done = run(2.0 * needed);
        }
        assert_eq!(done.code, Some(0), "{method}: {}", done.err);
        assert!(done.err.contains("training steps each, where the whole schedule has"), "{}", done.err);
    }
    // Enough time: the run is that without a limit, if nothing is tried on the table first.
    for (out, more) in [("free", &[][..]), ("enough", &["--minutes", "20"])] {
        let same = ["--alpha", "0.05", "--set", "input_noise=0.3", "--out", out];
        let done = succeeded(&dir, &[&same, more].concat());
        assert_eq!(done.err.contains("the whole schedule fits"), !more.is_empty(), "{}", done.err);
    }
    let [free, enough] =
        ["free", "enough"].map(|run| Model::load(dir.0.join(run).join("model.safetensors")).expect("loads"));
    assert_eq!(free.network("policy"), enough.network("policy"));
    refused(
        &dir,
        &["--alpha", "0.05", "--minutes", "1e-6", "--out", "none"],
        &["--minutes 0.000001 is too short", "need about"],
    );
}

/// Input noise helps some tables and harms others: that is tried, unless somebody has decided it.
#[test]
fn what_only_trying_can_tell_is_tried() {
    let dir = tiny("tried", [1.0, 1.0, 1.0], "accuracy");
    let done = succeeded(&dir, &["--alpha", "0.05", "--out", "run"]);
    // The width was said.
    assert!(done.err.contains("trying input_noise on a predictor that sees everything"), "{}", done.err);
    assert!(done.err.contains("  input_noise=0: validation loss "), "{}", done.err);
    let taken = done.err.contains(" without: taken");
    let better: &[String] = if taken { &["input_noise=0".into()] } else { &[] };
    let record = Run::load(&dir.0.join("run")).expect("a run");
    assert_eq!(record.tried["nmppg"], better);
    let again = succeeded(&dir, &["--alpha", "0.05", "--out", "run", "--resume"]);
    assert!(!again.err.contains("trying") && again.err.contains("finished before"), "{}", again.err);
    let said = succeeded(&dir, &["--alpha", "0.05", "--set", "predictor.input_noise=0.1", "--out", "said"]);
    assert!(!said.err.contains("trying"), "{}", said.err);
    assert!(Run::load(&dir.0.join("said")).expect("a run").tried["nmppg"].is_empty());
}

/// Means and deviations over seeds, the best of several models, and a page on which every score has its error.
#[test]
fn several_seeds_are_summed_up() {
    let dir = tiny("seeds", [1.0, 1.0, 1.0], "accuracy");
    let done = succeeded(&dir, &["--alphas", "0,2", "--seeds", "0,1,2", "--baselines", "--out", "run"]);
    let record = Run::load(&dir.0.join("run")).expect("a run");
    let over = record.over_seeds();
    assert_eq!(over.len(), 2);
    let scores: Vec<f64> = record.points[..3].iter().map(|point| point.test.accuracy).collect();
    let mean = scores.iter().sum::<f64>() / 3.0;
    let deviation = (scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    assert!((over[0].score.mean - mean).abs() < 1e-12 && (over[0].score.deviation - deviation).abs() < 1e-12);
    let line = done.out.lines().find(|line| line.contains("α 0, mean of 3 seeds")).expect("a line");
    assert!(line.contains(&format!("{mean:.4} ± {deviation:.4}")), "{line}");
    let best = record.points.iter().map(|point| point.validation.expect("known")).fold(0.0, f64::max);
    let named = record
        .points
        .iter()
        .find(|point| done.out.contains(&format!("querent ask run/{}", point.model)))
        .expect("one is named");
    assert_eq!(named.validation, Some(best));
    assert!(done.out.contains("Ask it (the best by the validation rows: α "), "{}", done.out);

    let done = querent(&dir.0, &["report", "run"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let page = std::fs::read_to_string(dir.0.join("run/report.html")).expect("written");
    assert_eq!(page.matches("<th>accuracy</th>").count(), 1, "a column is there twice");
    assert!(page.contains("one standard error over the 27 test rows"), "no word about the errors");
    assert!(page.contains("mean of 3 seeds, α 0"));
    assert!(!page.contains("the same for everybody: <"), "asking nothing has a line of its own");
    let error = record.points[0].test.uncertainty.expect("known").accuracy;
    assert!(error > 0.02 && page.contains(&format!("± {error:.4}")), "{error}");
    // Seeds that find ranges of their own are compared place by place.
    succeeded(&dir, &["--seeds", "0,1", "--out", "found"]);
    let over = Run::load(&dir.0.join("found")).expect("a run").over_seeds();
    assert!(over.len() == 7 && over.iter().all(|over| over.seeds == 2), "{over:?}");
    // A program finds the curve that travels with a model, and what to choose by it.
    let file = format!("found/{}", Run::load(&dir.0.join("found")).expect("a run").points[0].model);
    let done = querent(&dir.0, &["eval", &file, "--json"], "");
    let value: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    let model = Model::load(dir.0.join(&file)).expect("loads");
    assert_eq!(value["curve"].as_array().map(Vec::len), Some(model.curve().len()));
    let knee = model.choices().expect("of many α").knee;
    assert_eq!(value["choices"]["knee"]["alpha"].as_f64(), Some(knee.alpha));
}

/// At 80 columns an example has one line, and a paragraph is broken only where the line is full.
#[test]
fn help_is_wrapped_once() {
    for verb in ["train", "report", "init", "eval", "predict", "ask", "data", "methods", "info"] {
        let done = querent_with(Path::new("."), &[("COLUMNS", Path::new("80"))], &[verb, "--help"], "");
        let (_, after) = done.out.split_once("Examples:\n").expect("examples");
        let mut paragraphs = after.split("\n\n");
        for line in paragraphs.next().expect("examples").lines() {
            let begins = ["querent", "zcat", "zstd", "printf"].iter().any(|word| line[2..].starts_with(word));
            assert!(line.starts_with("  ") && begins, "{verb}: a broken example: {line}");
        }
        // Lines of JSON stand as they are.
        for paragraph in paragraphs.filter(|paragraph| !paragraph.contains("\n  ")) {
            let lines: Vec<&str> = paragraph.trim_end().lines().collect();
            let full = |line: &&str| (60..=100).contains(&line.chars().count());
            assert!(lines[..lines.len() - 1].iter().all(full), "{verb}: {paragraph}");
        }
    }
}

/// Nothing but our own lines, whatever the machine's drivers have to say.
#[cfg(target_os = "linux")]
#[test]
fn drivers_are_not_asked_where_there_is_no_device() {
    let devices = ["/dev/dri", "/dev/nvidia0", "/dev/dxg"];
    if devices.iter().any(|device| Path::new(device).exists()) {
        eprintln!("SKIPPED: there is a device");
        return;
    }
    let dir = tiny("quiet-drivers", [1.0, 1.0, 1.0], "accuracy");
    let arguments =
        ["--quiet", "train", "problem.toml", "--epochs", "1", "--epoch-steps", "20", "--hidden", "16"];
    // An empty variable is as good as none to the loader.
    let done = querent_with(&dir.0, &[("XDG_RUNTIME_DIR", Path::new(""))], &arguments, "");
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
}
