//! The commands as people run them: interrupted and resumed, several α and seeds, the report, help.
#![cfg(feature = "cli")]

use crate::command::{QUICK, clinic, querent, train_quickly};
use crate::common::TempDir;
use querent::Model;
use std::path::Path;

#[test]
fn several_models_make_a_report() {
    let dir = clinic("report");
    // A name that would break a careless page.
    let path = dir.0.join("problem.toml");
    let text = std::fs::read_to_string(&path).expect("reads");
    let text = text.replace("group = \"blood\"", "group = \"<script>alert(1)</script> & \\\"blood\\\"\"");
    std::fs::write(&path, text).expect("writes");
    let several = ["problem.toml", "--alphas", "0.001,0.1", "--seeds", "0,1", "--baselines", "--out", "run"];
    train_quickly(&dir.0, &several);
    for place in ["alpha_0.001_seed_0", "alpha_0.001_seed_1", "alpha_0.1_seed_0", "alpha_0.1_seed_1"] {
        let model = Model::load(dir.0.join("run").join(place).join("model.safetensors")).expect("loads");
        assert_eq!(model.problem().known_columns(), 8, "age and its three pieces, and four seasons");
        assert_eq!(model.encoding().expect("of a table").known.len(), 2);
    }
    // All is there: nothing is trained again.
    let again = querent(&dir.0, &[&["train"], &several[..], &["--resume"], QUICK].concat(), "");
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_eq!(again.err.matches("finished before").count(), 4, "{}", again.err);

    let done = querent(&dir.0, &["report", "run"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let page = std::fs::read_to_string(dir.0.join("run/report.html")).expect("written");
    for part in [
        "performance against cost",
        "What is asked, and why",
        "Questions step by step",
        "Features and spending",
        "Answers by true class",
        "Calibration",
        "Training",
        "What was tried, and what was not",
        "the same for everybody",
        "nothing asked",
        "everything asked",
        "Known before asking starts: age, season",
    ] {
        assert!(page.contains(part), "`{part}` is not on the page");
    }
    assert!(!page.contains("<script"), "a name became a script");
    // `url(#…)` is a part of the page itself.
    let page_alone = page.replace("url(#", "");
    for outside in ["src=", "href=", "url(", "@import"] {
        assert!(!page_alone.contains(outside), "the page needs something else: {outside}");
    }
    assert_eq!(page.matches("<details").count(), 4);

    let model = "run/alpha_0.001_seed_0/model.safetensors";
    let done = querent(&dir.0, &["eval", model, "--json"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let test: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(test["instances"], 240);
    // The whole table in raw units, through the other door: the same rows are among them.
    let done = querent(&dir.0, &["eval", model, "clinic.csv", "--json"], "");
    let all: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(all["instances"], 1600);
    let apart = all["loss"].as_f64().expect("a number") - test["loss"].as_f64().expect("a number");
    assert!(apart.abs() < 0.2, "{apart}");
    // A problem that has changed since is noticed.
    let text = std::fs::read_to_string(&path).expect("reads").replace("cost = 40.0", "cost = 41.0");
    std::fs::write(&path, text).expect("writes");
    let done = querent(&dir.0, &["eval", model], "");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("has changed since"), "{}", done.err);
}

#[test]
fn what_is_known_is_given_first() {
    let dir = clinic("known");
    train_quickly(&dir.0, &["problem.toml", "--alpha", "0", "--out", "run"]);
    let model = "run/model.safetensors";
    let answers =
        ["age=31", "season=winter", "temperature_c=38.9", "cough=mild", "sore_throat=no", "aches=yes"];
    let more = ["strep_test=negative", "crp_mg_l=20", "white_cells=missing", "xray=n/a"];
    let mut arguments = vec!["ask", model];
    answers.iter().chain(&more).for_each(|answer| arguments.extend(["--answer", answer]));
    let done = querent(&dir.0, &arguments, "");
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(done.out.starts_with("Known from the start:\nage (years) (a number, "), "{}", done.out);
    assert!(done.out.lines().last().expect("lines").starts_with("answer: "), "{}", done.out);
    let done = querent(&dir.0, &["ask", model, "--answer", "height=180"], "");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("NAME=VALUE") && done.err.contains("`temperature_c`"), "{}", done.err);
    let done = querent(&dir.0, &["ask", model, "--json"], "{\"answer\":[31,\"winter\"]}\n");
    let first = done.out.lines().next().expect("asks");
    assert!(first.starts_with("{\"given\":[{"), "{first}");
    // What comes next is up to a model that has hardly learned anything.
    let second = done.out.lines().nth(1).expect("goes on");
    assert!(second.contains("\"ask\":") || second.contains("\"predict\":"), "{second}");
}

/// Ctrl-C in training, then --resume: the same weights as without.
#[cfg(unix)]
#[test]
fn an_interrupted_training_goes_on() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let dir = clinic("interrupted");
    let arguments = |out: &'static str| {
        ["train", "problem.toml", "--engine", "cpu", "--epochs", "2", "--epoch-steps", "40", "--out", out]
    };
    let whole = querent(&dir.0, &arguments("whole"), "");
    assert_eq!(whole.code, Some(0), "{}", whole.err);
    let mut child = Command::new(env!("CARGO_BIN_EXE_querent"))
        .args(arguments("parts"))
        .current_dir(&dir.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines =
        BufReader::new(child.stderr.take().expect("piped")).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.starts_with("epoch   2 ")), "no epoch");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("ends").code(), Some(2), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("--resume goes on from there")), "{rest:?}");
    assert!(!dir.0.join("parts/model.safetensors").exists());
    let begun = querent::run::Run::load(&dir.0.join("parts")).expect("a record of what was tried");
    assert!(begun.points.is_empty() && begun.tried.contains_key("nmppg"), "no model is finished");
    let forgotten = querent(&dir.0, &arguments("parts"), "");
    assert!(forgotten.code == Some(2) && forgotten.err.contains("was interrupted here"), "{}", forgotten.err);
    let resumed = querent(&dir.0, &[&arguments("parts")[..], &["--resume"]].concat(), "");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(whole.err.contains("trying ") && !resumed.err.contains("trying "), "{}", resumed.err);
    assert!(!resumed.err.contains("epoch   0 "), "{}", resumed.err);
    let [one, other] =
        ["whole", "parts"].map(|run| Model::load(dir.0.join(run).join("model.safetensors")).expect("loads"));
    assert_eq!(one.network("policy"), other.network("policy"));
    assert_eq!(one.network("predictor"), other.network("predictor"));
}

#[test]
fn every_command_has_help_with_examples() {
    let here = Path::new(".");
    for verb in
        ["init", "train", "eval", "ask", "predict", "report", "data", "methods", "info", "completions"]
    {
        let done = querent(here, &[verb, "--help"], "");
        assert_eq!(done.code, Some(0), "{verb}");
        assert!(done.out.contains("Examples:\n  querent "), "{verb}: {}", done.out);
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = querent(here, &["completions", shell], "");
        assert_eq!(done.code, Some(0), "{shell}");
        assert!(done.out.contains("prepare") && done.out.contains("alphas"), "{shell}");
    }
}

/// The folder of the catalog's files, if `QUERENT_DATA` says it and they are there.
fn data_sets(names: &[&str]) -> Option<std::path::PathBuf> {
    let Some(set) = std::env::var_os("QUERENT_DATA") else {
        eprintln!("SKIPPED: QUERENT_DATA is not set");
        return None;
    };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join(set);
    if let Some(name) = names.iter().find(|name| !data.join(name).is_dir()) {
        eprintln!("SKIPPED: no {name} in {}", data.display());
        return None;
    }
    Some(data)
}

/// Files are looked for where the flag says, else where the variable says, else in the user's data folder.
#[cfg(unix)]
#[test]
fn the_data_folder_is_as_said() {
    let dir = TempDir::new("data-folder");
    let home = dir.0.join("home");
    let inside = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    let user = home.join(inside).join("querent");
    let (set, empty) = (dir.0.join("set"), Path::new(""));
    let looked = |variables: &[(&str, &Path)], arguments: &[&str], expected: &Path| {
        let expected = expected.display();
        let variables = [&[("HOME", home.as_path())], variables].concat();
        let listed =
            crate::command::querent_with(&dir.0, &variables, &[&["data", "list"], arguments].concat(), "");
        assert_eq!(listed.code, Some(0), "{}", listed.err);
        assert!(listed.out.contains(&format!("looked for in {expected};")), "{expected}: {}", listed.out);
        let refused =
            crate::command::querent_with(&dir.0, &variables, &[&["train", "splice"], arguments].concat(), "");
        assert_eq!(refused.code, Some(2), "{}", refused.out);
        assert!(refused.err.contains(&format!("looked for in {expected}:")), "{expected}: {}", refused.err);
        assert!(refused.err.contains(&format!("else it is {}.", user.display())), "{}", refused.err);
    };
    looked(&[], &[], &user);
    looked(&[("QUERENT_DATA", empty)], &[], &user);
    looked(&[("QUERENT_DATA", &set)], &[], &set);
    looked(&[("QUERENT_DATA", &set)], &["--data-dir", "said"], Path::new("said"));
    // Nobody's folder: what has files is refused, what has none needs no folder.
    let nobody = [("HOME", Path::new("nowhere"))];
    let refused = crate::command::querent_with(&dir.0, &nobody, &["data", "list"], "");
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    assert!(refused.err.contains("--data-dir") && refused.err.contains("QUERENT_DATA"), "{}", refused.err);
    let synthetic = [&["--quiet", "train", "cube_nm", "--out", "run"], QUICK].concat();
    let done = crate::command::querent_with(&dir.0, &nobody, &synthetic, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(querent::run::Run::load(&dir.0.join("run")).expect("reads").data_dir, None);
}

/// A run remembers where its data set was found, and a folder that is said afterwards counts more.
#[cfg(unix)]
#[test]
fn eval_finds_the_data_set_again() {
    let Some(data) = data_sets(&["splice"]) else { return };
    let dir = TempDir::new("data-again");
    let home = dir.0.join("home");
    // As a program sees its own folder: without links on the way there.
    let linked = dir.0.canonicalize().expect("is there").join("linked");
    std::os::unix::fs::symlink(&data, &linked).expect("links");
    train_quickly(&dir.0, &["splice", "--data-dir", "linked", "--out", "run"]);
    let run = querent::run::Run::load(&dir.0.join("run")).expect("reads");
    assert_eq!(run.data_dir, Some(linked.display().to_string()), "seen from anywhere");
    let eval = |variables: &[(&str, &Path)], arguments: &[&str]| {
        let variables = [&[("HOME", home.as_path())], variables].concat();
        let folder = dir.0.join("run");
        crate::command::querent_with(
            &folder,
            &variables,
            &[&["eval", "model.safetensors"], arguments].concat(),
            "",
        )
    };
    let again = eval(&[], &[]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let refused = eval(&[("QUERENT_DATA", &home)], &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    assert!(refused.err.contains(&format!("looked for in {}:", home.display())), "{}", refused.err);
    // Its folder is gone: as if it had never been.
    std::fs::remove_file(&linked).expect("unlinks");
    let refused = eval(&[], &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    assert!(refused.err.contains(&format!("looked for in {}", home.display())), "{}", refused.err);
    for (variables, arguments) in [
        (&[("QUERENT_DATA", data.as_path())][..], vec![]),
        (&[], vec!["--data-dir", &*data.to_string_lossy()]),
    ] {
        let done = eval(variables, &arguments);
        assert_eq!((done.code, done.out), (Some(0), again.out.clone()), "{}", done.err);
    }
}

/// A data set written as a table is read as the data set itself is.
#[test]
fn a_prepared_data_set_is_the_same() {
    let Some(data) = data_sets(&["mortality", "splice"]) else { return };
    let dir = TempDir::new("prepare");
    let data_dir = data.to_string_lossy();
    for name in ["mortality", "splice"] {
        let done = querent(&dir.0, &["data", "prepare", name, "--data-dir", &data_dir], "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        let path = dir.0.join(name).join("problem.toml");
        let schema = querent::data::table::Schema::load(&path).expect("reads");
        let table = querent::data::table::TableReader::open(schema.table_path(&path)).expect("opens");
        let prepared = querent::data::table::prepare(table, &schema).expect("prepares");
        let direct =
            querent::data::catalog::find(name).and_then(|entry| entry.load(&data, 0)).expect("loads");
        assert!(prepared.data == direct.data && prepared.encoding == direct.encoding, "{name}");
    }
    let done = querent(&dir.0, &["data", "prepare", "syn1"], "");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("by its name"), "{}", done.err);
}

/// Every method of the list is trained, resumed, asked, evaluated and drawn by the same commands.
#[test]
fn every_method_goes_through_the_commands() {
    let dir = clinic("methods");
    let listed = querent(&dir.0, &["methods"], "");
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    for entry in querent::methods::METHODS {
        assert!(listed.out.contains(entry.name), "{}", listed.out);
        let one = querent(&dir.0, &["methods", entry.name], "");
        assert!(one.code == Some(0) && one.out.contains("stage_epochs"), "{}{}", one.out, one.err);

        let run = ["problem.toml", "--method", entry.name, "--set", "warm_up_epochs=1", "--out", entry.name];
        train_quickly(&dir.0, &run);
        let file = format!("{}/model.safetensors", entry.name);
        let model = Model::load(dir.0.join(&file)).expect("loads");
        assert_eq!(model.method(), entry.name);
        let again = querent(&dir.0, &[&["train"], &run[..], &["--resume"], QUICK].concat(), "");
        assert!(again.code == Some(0) && again.err.contains("finished before"), "{}", again.err);

        let asked = querent(&dir.0, &["ask", &file, "--budget", "0"], "31\nwinter\n");
        assert_eq!(asked.code, Some(0), "{}", asked.err);
        let drawn = querent(&dir.0, &["report", entry.name], "");
        assert_eq!(drawn.code, Some(0), "{}", drawn.err);

        // To the horizon, whatever the stop rule says.
        let traces = ["eval", &file, "--no-stop", "--horizon", "3", "--traces", "traces.csv"];
        let done = querent(&dir.0, &traces, "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        let text = std::fs::read_to_string(dir.0.join("traces.csv")).expect("written");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("episode,step,action,guess,label,probability,cost,forced_stop"));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len() % 4, 0, "three questions and a stop for each");
        for (episode, rows) in rows.chunks_exact(4).enumerate() {
            for (step, row) in rows.iter().enumerate() {
                assert_eq!((row[0], row[1]), (&*episode.to_string(), &*(step + 1).to_string()));
            }
            let names: Vec<&str> = model.problem().features().iter().map(|f| f.name.as_str()).collect();
            assert!(rows[..3].iter().all(|row| names.contains(&row[2]) && row[7] == "0"), "{rows:?}");
            assert_eq!((rows[3][2], rows[3][7]), ("stop", "1"), "{rows:?}");
            assert_eq!((rows[3][3], rows[3][6]), (rows[2][3], rows[2][6]), "a stop changes nothing");
            let cost = |row: &Vec<&str>| row[6].parse::<f64>().expect("a number");
            assert!(cost(&rows[0]) <= cost(&rows[1]) && cost(&rows[1]) <= cost(&rows[2]));
        }
        // A budget of nothing ends at once, and says so.
        let done =
            querent(&dir.0, &["eval", &file, "--no-stop", "--budget", "0", "--traces", "traces.csv"], "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        let text = std::fs::read_to_string(dir.0.join("traces.csv")).expect("written");
        assert!(
            text.lines().skip(1).all(|line| line.contains(",1,stop,") && line.ends_with(",0,1")),
            "{text}"
        );
    }
}

/// One training for every α: found by itself or said, chosen when asking, and drawn with a slider.
#[test]
fn one_model_for_every_alpha() {
    let dir = clinic("range");
    let quick = ["--engine", "cpu", "--epochs", "2", "--epoch-steps", "60", "--hidden", "32"];
    let found = querent(&dir.0, &[&["train", "problem.toml", "--out", "found"][..], &quick].concat(), "");
    assert_eq!(found.code, Some(0), "{}", found.err);
    assert!(found.err.contains("one model for α from "), "{}", found.err);
    for said in ["What to choose", "querent ask found/model.safetensors --alpha ", "seed 0"] {
        assert!(found.out.contains(said), "`{said}` is not in {}", found.out);
    }
    let file = "found/model.safetensors";
    let model = Model::load(dir.0.join(file)).expect("loads");
    let (range, curve) = (model.alphas().expect("a range"), model.curve().to_vec());
    let last = curve.len() - 1;
    assert!((12..25).contains(&last) && curve.is_sorted_by(|a, b| a.alpha < b.alpha), "{curve:?}");
    assert!(curve[0].alpha == range.from() && curve[last].alpha == range.to());
    let is_there = |alpha: &f64| curve.iter().any(|point| point.alpha == *alpha);
    assert!(range.grid(13).iter().all(is_there), "all 13 that it begins with: {curve:?}");
    assert!(curve.iter().all(|point| point.macro_f1.is_some()));
    // Again: nothing is left to do.
    let arguments = [&["train", "problem.toml", "--out", "found", "--resume"][..], &quick].concat();
    let again = querent(&dir.0, &arguments, "");
    assert!(again.code == Some(0) && again.err.contains("finished before"), "{}", again.err);
    // Said, with the old way beside it in the same run.
    train_quickly(&dir.0, &["problem.toml", "--range", "0.002,0.2", "--out", "said"]);
    let model = Model::load(dir.0.join("said/model.safetensors")).expect("loads");
    assert_eq!(model.alphas().map(<[f64; 2]>::from), Some([0.002, 0.2]));

    // Chosen when asking.
    let everything: f64 = model.problem().features().iter().map(|feature| feature.cost).sum();
    let spend = 0.5 * (curve[0].cost + curve[last].cost);
    let middle = range.middle().to_string();
    for choice in [["--alpha", &middle], ["--spend", &spend.to_string()], ["--target", "0"]] {
        let arguments =
            [&["ask", file][..], &choice, &["--answer", "age=31", "--answer", "season=winter"]].concat();
        let done = querent(&dir.0, &arguments, "n/a\n".repeat(20).as_str());
        assert!(
            done.code == Some(0) && done.out.contains("answer: "),
            "{choice:?}: {}{}",
            done.out,
            done.err
        );
        assert!(done.err.contains("on the validation rows about"), "{}", done.err);
    }
    let alphas = format!("{},{}", range.from(), range.to());
    let done = querent(&dir.0, &["eval", file, "--alphas", &alphas, "--json"], "");
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{}", done.err));
    let cost = |i: usize| value["points"][i]["cost"].as_f64().expect("a number");
    assert!(cost(0) >= cost(1), "{value:#}");
    let shown = querent(&dir.0, &["eval", file, "--alphas", &alphas], "");
    assert!(shown.out.contains("questions") && shown.out.contains(&range.to().to_string()), "{}", shown.out);

    let drawn = querent(&dir.0, &["report", "found"], "");
    assert_eq!(drawn.code, Some(0), "{}", drawn.err);
    let page = std::fs::read_to_string(dir.0.join("found/report.html")).expect("written");
    assert!(page.contains("type=\"range\"") && page.matches("<section data-name=").count() == 7);

    let outside = (2.0 * range.to()).to_string();
    for (arguments, says) in [
        (vec!["ask", file, "--alpha", &outside], format!("trained for α from {range}")),
        (vec!["eval", file, "--alphas", &outside], format!("trained for α from {range}")),
        (vec!["ask", file, "--alpha", "0"], format!("trained for α from {range}")),
        (vec!["ask", file, "--spend", "1e6"], format!("0 to {everything}, what everything costs")),
        (vec!["ask", file, "--spend=-1"], "what everything costs".into()),
        (vec!["ask", file, "--target", "1.1"], "the model reaches a validation macro-F1 of".into()),
        (vec!["ask", file, "--threshold", "0.5"], "--alpha chooses among".into()),
        (vec!["train", "problem.toml", "--range", "0.2,0.1", "--out", "x"], "0.2 to 0.1".into()),
        (vec!["train", "problem.toml", "--range", "0.1,0.1", "--out", "x"], "0.1 to 0.1".into()),
        (vec!["train", "problem.toml", "--range", "0,0.1", "--out", "x"], "0 to 0.1".into()),
        (vec!["train", "problem.toml", "--range", "0.1", "--out", "x"], "two numbers".into()),
        (
            vec!["train", "problem.toml", "--set", "alpha = 0.1", "--out", "x"],
            "say --alpha A or --range".into(),
        ),
        (vec!["train", "problem.toml", "--range", "0.1,nan", "--out", "x"], "alpha must be a number".into()),
        (
            vec!["train", "problem.toml", "--range", "0.1,1", "--method", "gdfs", "--out", "x"],
            "--thresholds instead".into(),
        ),
    ] {
        let done = querent(&dir.0, &arguments, "");
        assert_eq!(done.code, Some(2), "{arguments:?}: {}", done.out);
        assert!(done.err.contains(&says), "{arguments:?}: {}", done.err);
    }
    assert!(!dir.0.join("x").exists(), "something was written");
    // A model of one α has nothing to choose.
    train_quickly(&dir.0, &["problem.toml", "--alpha", "0.1", "--out", "one"]);
    let one = "one/model.safetensors";
    for (arguments, says) in [
        (vec!["ask", one, "--alpha", "0.2"], "trained for one α"),
        (vec!["eval", one, "--alphas", "0.1,0.2"], "trained for a range of α"),
        (vec!["ask", one, "--spend", "3"], "trained for one trade-off"),
        (vec!["ask", one, "--target", "0.5"], "trained for one trade-off"),
    ] {
        let done = querent(&dir.0, &arguments, "");
        assert!(done.code == Some(2) && done.err.contains(says), "{arguments:?}: {}", done.err);
    }
}

/// One training of a method with a threshold has the whole curve, and a threshold can be set afterwards.
#[test]
fn thresholds_make_a_curve() {
    let dir = clinic("thresholds");
    let run = ["problem.toml", "--method", "gdfs", "--thresholds", "0.01,0.5,2", "--out", "run"];
    train_quickly(&dir.0, &run);
    let record = querent::run::Run::load(&dir.0.join("run")).expect("a run");
    let costs: Vec<f64> = record.points.iter().map(|point| point.test.cost).collect();
    assert_eq!((record.points.len(), record.points[0].symbol()), (3, "threshold"));
    assert!(costs[0] >= costs[1] && costs[1] >= costs[2] && costs[2] == 0.0, "{costs:?}");
    // Other thresholds of a finished run take no training; those that were tested before stay as they are.
    let other = ["problem.toml", "--method", "gdfs", "--thresholds", "2,0.5,0.2", "--out", "run"];
    let done = querent(&dir.0, &[&["train"], &other[..], &["--resume"], QUICK].concat(), "");
    assert!(done.code == Some(0) && done.err.contains("tested at other thresholds"), "{}", done.err);
    let tested = querent::run::Run::load(&dir.0.join("run")).expect("a run").points;
    assert_eq!(tested.iter().map(|point| point.alpha).collect::<Vec<_>>(), [2.0, 0.5, 0.2]);
    assert!(tested[0] == record.points[2] && tested[1] == record.points[1], "tested before");
    assert!(tested[2].test.cost >= tested[1].test.cost && tested[2].epochs == tested[1].epochs);
    let again = querent(&dir.0, &[&["train"], &other[..], &["--resume"], QUICK].concat(), "");
    assert!(again.code == Some(0) && again.err.contains("finished before"), "{}", again.err);
    let model = "run/model.safetensors";
    let nothing = querent(&dir.0, &["eval", model, "--threshold", "2", "--json"], "");
    assert!(nothing.out.contains("\"acquisitions\": 0.0"), "{}{}", nothing.out, nothing.err);
    // It travels with the file.
    let moved = Model::load(dir.0.join(model)).and_then(|model| model.with_tradeoff(2.0)).expect("loads");
    moved.save(dir.0.join("moved.safetensors")).expect("saves");
    let loaded = Model::load(dir.0.join("moved.safetensors")).expect("loads");
    assert!(loaded == moved && loaded.session().question().is_none());
    for (arguments, says) in [
        (vec!["eval", model, "--threshold=-1"], "zero or more"),
        (vec!["eval", model, "--horizon", "0"], "the horizon is 0"),
        (vec!["train", "problem.toml", "--method", "nothing", "--out", "x"], "there are nmppg, gdfs"),
        (
            vec!["train", "problem.toml", "--method", "gdfs", "--alpha", "0.1", "--out", "x"],
            "--thresholds instead",
        ),
        (vec!["train", "problem.toml", "--thresholds", "0.1", "--out", "x"], "--alpha instead"),
        (vec!["train", "problem.toml", "--method", "gsmrl", "--range", "0.1,0.2", "--out", "x"], "for one α"),
        (
            vec!["train", "problem.toml", "--method", "gsmrl", "--set", "alpha=0.1", "--out", "x"],
            "say --alpha",
        ),
        (vec!["train", "problem.toml", "--set", "twins=3", "--out", "x"], "rollouts"),
        (vec!["train", "problem.toml", "--set", "nonsense=3", "--out", "x"], "nonsense"),
    ] {
        let done = querent(&dir.0, &arguments, "");
        assert!(done.code == Some(2) && done.err.contains(says), "{arguments:?}: {}", done.err);
    }
    assert!(!dir.0.join("x").exists(), "nothing is written before settings are known to be good");
}
