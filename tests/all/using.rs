//! A trained model in use, as people do it: rows without labels, evaluation from any folder, and a conversation that
//! forgives slips.
#![cfg(feature = "cli")]

use crate::command::{self, querent, train_quickly};
use crate::common::TempDir;
use querent::Model;
use serde_json::Value;

const MODEL: &str = "run/model.safetensors";

/// A folder with the clinic's problem and a model that was trained for a moment, and that asks for all it can: its doubt
/// is never below zero.
pub fn clinic(name: &str) -> TempDir {
    let dir = command::clinic(name);
    let run = ["problem.toml", "--method", "gdfs", "--set", "warm_up_epochs=1", "--out", "run"];
    train_quickly(&dir.0, &run);
    let path = dir.0.join(MODEL);
    let model = Model::load(&path).and_then(|model| model.with_tradeoff(0.0)).expect("has a threshold");
    model.save(&path).expect("saves");
    dir
}

/// The first rows of the clinic's table, cell by cell, with the header.
fn rows(dir: &TempDir, count: usize) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(dir.0.join("clinic.csv")).expect("reads");
    text.lines().take(count + 1).map(|line| line.split(',').map(String::from).collect()).collect()
}

fn write(dir: &TempDir, name: &str, rows: &[Vec<String>]) -> String {
    let text: String = rows.iter().map(|row| row.join(",") + "\n").collect();
    std::fs::write(dir.0.join(name), &text).expect("writes");
    text
}

fn read(dir: &TempDir, name: &str) -> Vec<Vec<String>> {
    let rows = csv_lines(&std::fs::read_to_string(dir.0.join(name)).expect("written"));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    rows
}

/// Cells of a CSV text; those with quotes have no quotes and newlines inside.
fn csv_lines(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                c => cells.last_mut().expect("one").push(c),
            }
        }
        cells
    };
    text.lines().map(cells).collect()
}

#[test]
fn rows_without_labels_are_answered() {
    let dir = clinic("predict");
    let labelled = rows(&dir, 600);
    write(&dir, "labelled.csv", &labelled);
    let bare: Vec<Vec<String>> = labelled.iter().map(|row| row[..row.len() - 1].to_vec()).collect();
    let text = write(&dir, "new.csv", &bare);
    // One that was killed in the middle has left its half: the next one clears it.
    let half = dir.0.join("out.csv.4000000000.tmp");
    std::fs::write(&half, "visit,row,ans").expect("writes");
    let done = querent(&dir.0, &["predict", MODEL, "new.csv", "-o", "out.csv", "--keep", "visit"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(!half.exists());
    assert!(done.out.starts_with("written: out.csv: 600 row(s) answered, "), "{}", done.out);
    let out = read(&dir, "out.csv");
    let header = "visit,row,answer,asked,cost,cold,flu,pneumonia,strep,problem";
    assert_eq!(out[0].join(","), header);

    // As the library answers, row by row.
    let model = Model::load(dir.0.join(MODEL)).expect("loads");
    let (classes, features) = (model.problem().classes(), model.problem().features());
    for (number, (cells, row)) in bare[1..].iter().zip(&out[1..]).enumerate() {
        let cell = |name: &str| bare[0].iter().position(|column| column == name).map(|at| cells[at].as_str());
        let done = model.predict(cell).expect("answers");
        let asked: Vec<&str> = done.asked.iter().map(|&at| features[at].name.as_str()).collect();
        let belief: Vec<String> = done.belief.iter().map(f32::to_string).collect();
        assert_eq!(row[0], cells[0]);
        assert_eq!(row[1], (number + 1).to_string());
        assert_eq!((row[2].as_str(), row[3].as_str()), (classes[done.class].as_str(), &*asked.join(";")));
        assert_eq!(row[4].parse::<f64>().expect("a number"), done.spent);
        assert!(!done.asked.is_empty(), "{row:?}");
        assert_eq!((&row[5..9], row[9].as_str()), (&belief[..], ""));
    }
    // As `eval` asks.
    let traces = ["eval", MODEL, "labelled.csv", "--traces", "traces.csv"];
    assert_eq!(querent(&dir.0, &traces, "").code, Some(0));
    let last = read(&dir, "traces.csv").into_iter().filter(|row| row[2] == "stop").collect::<Vec<_>>();
    assert_eq!(last.len(), 600);
    for (end, row) in last.iter().zip(&out[1..]) {
        assert_eq!((&end[3], &end[6]), (&row[2], &row[4]));
    }
    // Labels are ignored, and pipes are as good as files.
    let piped = querent(&dir.0, &["--quiet", "predict", MODEL, "-", "--keep", "visit"], &text);
    assert_eq!(piped.code, Some(0), "{}", piped.err);
    assert_eq!(piped.err, "");
    assert_eq!(piped.out, std::fs::read_to_string(dir.0.join("out.csv")).expect("reads"));
    let other = ["--quiet", "predict", MODEL, "labelled.csv", "--keep", "visit", "--out", "-"];
    assert_eq!(querent(&dir.0, &other, "").out, piped.out);
    let cheap = querent(&dir.0, &["predict", MODEL, "new.csv", "--budget", "2"], "");
    for row in &csv_lines(&cheap.out)[1..] {
        assert!(row[3].parse::<f64>().expect("a number") <= 2.0, "{row:?}");
    }
}

#[test]
fn an_empty_cell_may_be_out_of_reach() {
    let dir = clinic("unavailable");
    let mut table = rows(&dir, 100);
    let ask = |flags: &[&str]| {
        let all = [&["--quiet", "predict", MODEL, "new.csv"], flags].concat();
        let done = querent(&dir.0, &all, "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        csv_lines(&done.out).into_iter().skip(1).map(|row| row[2].clone()).collect::<Vec<_>>()
    };
    write(&dir, "new.csv", &table);
    let whole = ask(&[]);
    // What was asked of each row first is not there any more.
    let model = Model::load(dir.0.join(MODEL)).expect("loads");
    let encoding = model.encoding().expect("of a table");
    for (row, asked) in table[1..].to_vec().iter().zip(&whole) {
        let first = asked.split(';').next().expect("one is asked");
        let features = model.problem().features();
        let feature = features.iter().position(|feature| feature.name == first).expect("one of them");
        let at = table[1..].iter().position(|other| other == row).expect("a row") + 1;
        for field in &encoding.features[feature] {
            let column = table[0].iter().position(|name| *name == field.name).expect("a column");
            table[at][column].clear();
        }
    }
    write(&dir, "new.csv", &table);
    let (missing, unavailable) = (ask(&[]), ask(&["--unavailable"]));
    let first = |asked: &str| asked.split(';').next().unwrap_or_default().to_string();
    for ((whole, missing), unavailable) in whole.iter().zip(&missing).zip(&unavailable) {
        assert_eq!(first(missing), first(whole), "asked for, and found missing");
        assert!(!unavailable.split(';').any(|asked| asked == first(whole)), "{unavailable}");
        assert!(!unavailable.is_empty(), "something else is worth its price");
    }
}

#[test]
fn one_bad_row_does_not_refuse_a_table() {
    let dir = clinic("bad-rows");
    let mut table = rows(&dir, 8);
    let at = |name: &str| table[0].iter().position(|column| column == name).expect("there");
    let (age, season, label, aches) = (at("age"), at("season"), at("diagnosis"), at("aches"));
    table[2][age] = "old".into();
    table[3].truncate(4);
    table[4][season] = "wintr".into();
    table[5][age] = String::new();
    table[6][label] = "fluu".into();
    write(&dir, "new.csv", &table);
    let done = querent(&dir.0, &["predict", MODEL, "new.csv", "-o", "out.csv"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let out = read(&dir, "out.csv");
    let bad: Vec<usize> = (1..out.len()).filter(|&row| out[row][1].is_empty()).collect();
    assert_eq!((out.len(), &bad[..]), (9, &[2, 3][..]));
    assert_eq!(out[2][8], "row 2 (line 3): `age`: `old` is not a number");
    assert!(out[3][8].starts_with("row 3 (line 4) has 4 cells, but the header has 14"), "{:?}", out[3]);
    for says in ["row 2 (line 3)", "2 row(s) have no answer", "`season`: 1 cell(s)", "did you mean `winter`?"]
    {
        assert!(done.err.contains(says), "`{says}` is not in {}", done.err);
    }
    // Labels count for `eval`.
    let done = querent(&dir.0, &["eval", MODEL, "new.csv", "--json"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let value: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!((&value["instances"], &value["bad_rows"]), (&5.into(), &3.into()));
    assert_eq!(value["unseen"]["season"]["wintr"], 1);
    assert!(
        done.err.contains("`fluu` is no class") && done.err.contains("did you mean `flu`?"),
        "{}",
        done.err
    );
    assert!(done.err.contains("3 row(s) left out"), "{}", done.err);

    std::fs::remove_file(dir.0.join("out.csv")).expect("removes");
    let before = dir.files();
    let mut renamed = rows(&dir, 3);
    renamed[0][aches] = "ache".into();
    write(&dir, "renamed.csv", &renamed);
    for (arguments, says) in [
        (vec!["predict", MODEL, "new.csv", "-o", "out.csv", "--strict"], "row 2 (line 3): `age`"),
        (vec!["eval", MODEL, "new.csv", "--strict"], "row 2 (line 3), column `age`"),
        (vec!["predict", MODEL, "new.csv", "--keep", "vist"], "did you mean `visit`?"),
        (vec!["predict", MODEL, "new.csv", "-o", "new.csv"], "is the table itself"),
        (vec!["predict", MODEL, "new.csv", "-o", "run"], "this is a folder"),
        (vec!["predict", MODEL, "-"], "standard input: the file is empty"),
        (vec!["predict", MODEL, "prices.csv", "-o", "out.csv"], "there is no column"),
        (vec!["predict", MODEL, "none.csv", "-o", "out.csv"], "none.csv"),
        (vec!["predict", MODEL, "renamed.csv", "--strict"], "there is no column `aches`"),
        (vec!["eval", MODEL, "renamed.csv"], "did you mean `ache`?"),
    ] {
        let done = querent(&dir.0, &arguments, "");
        assert_eq!(done.code, Some(2), "{arguments:?}: {}", done.out);
        assert!(done.err.contains(says), "{arguments:?}: {}", done.err);
    }
    std::fs::remove_file(dir.0.join("renamed.csv")).expect("removes");
    assert_eq!(dir.files(), before, "something was left");
    // A column that is not there cannot be had.
    write(&dir, "renamed.csv", &renamed);
    let done = querent(&dir.0, &["predict", MODEL, "renamed.csv"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let hint = "there is no column `aches`: `aches` cannot be had; did you mean `ache`?";
    assert!(done.err.contains(hint), "{}", done.err);
    assert!(csv_lines(&done.out)[1..].iter().all(|row| !row[2].contains("aches") && !row[1].is_empty()));
}

#[test]
fn eval_works_from_any_folder() {
    let dir = clinic("any-folder");
    let here = querent(&dir.0, &["eval", MODEL, "--json"], "");
    assert_eq!(here.code, Some(0), "{}", here.err);
    let elsewhere = TempDir::new("any-folder-else");
    let path = dir.0.join(MODEL).display().to_string();
    let there = querent(&elsewhere.0, &["eval", &path, "--json"], "");
    assert_eq!((there.code, &there.out), (Some(0), &here.out), "{}", there.err);
    let inside = querent(&dir.0.join("run"), &["eval", "model.safetensors", "--json"], "");
    assert_eq!((inside.code, &inside.out), (Some(0), &here.out), "{}", inside.err);
    let value: Value = serde_json::from_str(&here.out).expect("JSON");
    for feature in ["temperature_c", "blood", "xray"] {
        assert!(
            value["first_actions"][feature].is_number() && value["asked"][feature].is_number(),
            "{value:#}"
        );
    }
    assert!(value["curve"].is_null(), "a threshold has no curve of α");
    let rows = |class: &str| value["classes"][class]["rows"].as_u64().expect("a number");
    assert_eq!(rows("cold") + rows("flu") + rows("pneumonia") + rows("strep"), 240);
    // Run and problem move together.
    for name in ["run", "problem.toml", "clinic.csv"] {
        std::fs::rename(dir.0.join(name), elsewhere.0.join(name)).expect("moves");
    }
    let moved = elsewhere.0.join(MODEL).display().to_string();
    let done = querent(&dir.0, &["eval", &moved, "--json"], "");
    assert_eq!((done.code, &done.out), (Some(0), &here.out), "{}", done.err);
    std::fs::remove_file(elsewhere.0.join("problem.toml")).expect("removes");
    let done = querent(&dir.0, &["eval", &moved], "");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("not there any more") && done.err.contains("name a table"), "{}", done.err);
}

#[test]
fn a_conversation_forgives_slips() {
    let dir = clinic("forgives");
    let nothing = "n/a\n".repeat(20);
    let typed = format!("back\n31\nwintr\n?\nWINTER\nwhy\nback\n32\nback\n33\nmonsoon\n{nothing}");
    let done = querent(&dir.0, &["ask", MODEL], &typed);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    for says in [
        "this is the first question",
        "no training row has `wintr`; did you mean `winter`? If not, say it again",
        "back     undoes the last answer",
        " is asked for, the next would be ",
        "; the doubt left is ",
        "answer: ",
    ] {
        assert!(done.out.contains(says), "`{says}` is not in {}", done.out);
    }
    assert_eq!(done.out.matches("Known from the start:").count(), 2, "{}", done.out);
    assert!(done.err.contains("no training row has season = `monsoon`"), "{}", done.err);
    // Said twice, it is meant.
    let twice = querent(&dir.0, &["ask", MODEL], &format!("31\nwintr\nwintr\n{nothing}"));
    assert_eq!(twice.code, Some(0), "{}", twice.out);
    assert!(twice.err.contains("`wintr`"), "{}", twice.err);
    // What was undone leaves no trace.
    let straight = querent(&dir.0, &["ask", MODEL], &format!("31\nwinter\n{nothing}"));
    let undone = querent(&dir.0, &["ask", MODEL], &format!("31\nwinter\nn/a\nback\n{nothing}"));
    assert_eq!(straight.out.lines().last(), undone.out.lines().last());
    let why = querent(&dir.0, &["ask", MODEL, "--why"], &format!("31\nwinter\n{nothing}"));
    assert!(why.out.contains("nothing more can be asked for"), "{}", why.out);
    let done = querent(&dir.0, &["ask", MODEL, "--answer", "temprature_c=38"], "");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("did you mean `temperature_c`?"), "{}", done.err);
}

#[test]
fn a_program_asks_several_cases() {
    let dir = clinic("several");
    let lines = |done: &crate::command::Done| -> Vec<Value> {
        done.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let given = "{\"answer\":[31,\"Winter\"]}\n";
    let nothing = "{\"answer\":null}\n".repeat(7);
    let input = format!(
        "{given}{{\"why\":true}}\n{nothing}{{\"answer\":1}}\n{{\"back\":true}}\n{{\"answer\":null}}\n\
         {{\"nxt\":true}}\n{{\"next\":true}}\n{given}{{\"answer\":null}}\n{{\"next\":true}}\n{given}{nothing}"
    );
    // The table's own words for a missing cell are such words here as well.
    let missing = format!("{{\"answer\":[\"NA\",\"Winter\"]}}\n{nothing}");
    let done = querent(&dir.0, &["ask", MODEL, "--json"], &missing);
    assert!(done.code == Some(0) && !done.out.contains("error"), "{}{}", done.out, done.err);
    let done = querent(&dir.0, &["ask", MODEL, "--json", "--repeat"], &input);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let lines_out = lines(&done);
    let count = |key: &str| lines_out.iter().filter(|line| line.get(key).is_some()).count();
    assert_eq!(
        (count("given"), count("predict"), count("error"), count("warning")),
        (3, 3, 2, 0),
        "{}",
        done.out
    );
    let why = lines_out.iter().find(|line| line.get("why").is_some()).expect("told");
    assert!(why["why"]["wanted"][0]["feature"].is_string() && why["why"]["stop"]["below"] == 0.0, "{why}");
    assert!(done.out.contains("did you mean `next`?"), "{}", done.out);
    let predictions: Vec<&Value> = lines_out.iter().filter(|line| line.get("predict").is_some()).collect();
    assert_eq!(predictions[0], predictions[2], "cases know nothing of each other");
    assert_eq!(predictions[0]["why"]["stop"]["forced"], true);
    // The end of the input in the middle of a case is none; one case alone ends by itself.
    let half = querent(&dir.0, &["ask", MODEL, "--json", "--repeat"], given);
    assert_eq!(half.code, Some(2), "{}", half.out);
    let one =
        querent(&dir.0, &["ask", MODEL, "--json"], &format!("{{\"next\":true}}\n{given}{nothing}{given}"));
    assert_eq!(one.code, Some(0), "{}", one.err);
    assert!(
        one.out.contains("needs --repeat") && one.out.lines().last().is_some_and(|l| l.contains("predict"))
    );
    let alone = querent(&dir.0, &["ask", MODEL, "--repeat"], "");
    assert!(alone.code == Some(2) && alone.err.contains("--json"), "{}", alone.err);
}
