//! `querent compare` as people run it: whole, killed, with a cell that fails, cell by cell, and with arguments that cannot
//! be.
#![cfg(feature = "cli")]

use crate::command::{Done, clinic, querent};
use crate::common::TempDir;
use flate2::read::MultiGzDecoder;
use querent::methods::METHODS;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Settings of a comparison that is over in a moment; it learns little.
const QUICK: &[&str] = &["--epochs", "1", "--epoch-steps", "20", "--hidden", "16", "--rows", "60"];

fn compare(folder: &Path, arguments: &[&str]) -> Done {
    querent(folder, &[&["compare"], arguments, QUICK].concat(), "")
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The plan of a comparison.
fn plan(out: &Path) -> Value {
    serde_json::from_str(&read(out.join("comparison.json"))).expect("JSON")
}

/// The lines of a table, cell by cell, by the names of its columns.
fn lines(csv: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), head.len(), "{line}");
        head.iter().zip(cells).map(|(name, cell)| (name.to_string(), cell.to_string())).collect()
    };
    lines.map(row).collect()
}

fn unpacked(path: PathBuf) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(&path).expect("opens");
    MultiGzDecoder::new(file).read_to_string(&mut text).expect("unpacks");
    text
}

/// Whatever there is a method for is compared, with what one would do instead.
#[test]
fn all_methods_are_planned() {
    let dir = clinic("compare_all");
    let done =
        compare(&dir.0, &["problem.toml", "--list", "--out", "out", "--seeds", "3,5", "--alphas", "0.1,0.5"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let plan = plan(&dir.0.join("out"));
    let cells = plan["cells"].as_array().expect("a list");
    for name in METHODS.iter().map(|entry| entry.name).chain(["tree", "everything", "nothing"]) {
        let mine: Vec<&Value> = cells.iter().filter(|cell| cell["method"] == name).collect();
        let whole = mine.iter().filter(|cell| cell["alpha"].is_null()).count();
        // A curve a seed, or two α a seed.
        assert!((mine.len(), whole) == (2, 2) || (mine.len(), whole) == (4, 0), "{name}: {mine:?}");
        assert!(
            done.out.lines().any(|line| line.contains(&format!(" {name} ")) && line.ends_with("open")),
            "{}",
            done.out
        );
    }
    let mut folders: Vec<&str> = cells.iter().filter_map(|cell| cell["folder"].as_str()).collect();
    folders.sort_unstable();
    folders.dedup();
    assert_eq!(folders.len(), cells.len(), "each has a folder of its own");
}

#[test]
fn a_comparison_leaves_its_results() {
    let dir = clinic("compare_whole");
    let some = ["problem.toml", "--methods", "nmppg,dime,fixed,tree,everything,nothing", "--out", "out"];
    let done = compare(&dir.0, &some);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("6 cells, 0 done before"), "{}", done.err);
    let out = dir.0.join("out");
    let results = lines(&read(out.join("results.csv")));
    for name in ["nmppg", "dime", "fixed", "fixed set", "tree", "everything", "nothing"] {
        let costs: Vec<f64> = results
            .iter()
            .filter(|row| row["method"] == name)
            .map(|row| row["cost"].parse().expect("a number"))
            .collect();
        assert!(!costs.is_empty() && costs.len() <= 7, "{name}: {costs:?}");
        assert!(done.out.contains(name), "{}", done.out);
        // No two points of a curve fall onto one another.
        let mut apart = costs.clone();
        apart.dedup();
        assert_eq!(apart.len(), costs.len(), "{name}: {costs:?}");
    }
    // Every step of every row says the same as the results.
    let steps = lines(&unpacked(out.join("evaluation.csv.gz")));
    let asked = |row: &&std::collections::BTreeMap<String, String>| {
        !["everything", "nothing"].contains(&&*row["method"])
    };
    for row in results.iter().filter(asked) {
        let mine = |step: &&std::collections::BTreeMap<String, String>| {
            step["method"] == row["method"] && step["tradeoff"] == row["tradeoff"] && step["action"] == "stop"
        };
        let ends: Vec<_> = steps.iter().filter(mine).collect();
        assert_eq!(ends.len(), 60, "{row:?}");
        let cost: f64 =
            ends.iter().map(|step| step["cost"].parse::<f64>().expect("a number")).sum::<f64>() / 60.0;
        let right = ends.iter().filter(|step| step["guess"] == step["label"]).count() as f64 / 60.0;
        assert!((cost - row["cost"].parse::<f64>().expect("a number")).abs() < 1e-6, "{row:?}");
        assert!((right - row["accuracy"].parse::<f64>().expect("a number")).abs() < 1e-9, "{row:?}");
    }
    let areas = lines(&read(out.join("areas.csv")));
    assert_eq!(areas.len(), 10, "each two of five curves");
    let page = read(out.join("report.html"));
    assert!(page.contains("has the highest macro-F1 on average") && page.contains("--epochs 1"));
    assert!(page.contains("what is asked after the first answer"));
    assert!(
        contexts_have_their_rows(&out, &steps) >= 3,
        "nmppg, dime and the fixed list ask something first"
    );
    // Nothing is loaded from anywhere: the only address is the name of SVG.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert!(read(out.join("curves.svg")).contains("everything asked"));
    // Again: nothing is done twice. Another seed: only what is new is.
    let again = compare(&dir.0, &some);
    assert!(again.code == Some(0) && again.err.contains("6 cells, 6 done before"), "{}", again.err);
    let two = ["problem.toml", "--methods", "tree,fixed", "--seeds", "0,1", "--out", "out"];
    let more = compare(&dir.0, &two);
    assert!(more.code == Some(0) && more.err.contains("4 cells, 2 done before"), "{}", more.err);
    assert!(more.out.contains(" ± "), "{}", more.out);
}

/// Every row that was asked the most frequent first question answered it in one way. How many curves that was looked at of.
fn contexts_have_their_rows(out: &Path, steps: &[std::collections::BTreeMap<String, String>]) -> usize {
    let mut looked_at = 0;
    for cell in std::fs::read_dir(out.join("cells")).expect("cells") {
        let outcome = read(cell.expect("a cell").path().join("outcome.json"));
        let outcome: Value = serde_json::from_str(&outcome).expect("JSON");
        for curve in outcome["curves"].as_array().expect("a list") {
            let Some(contexts) = curve["paths"]["contexts"].as_array() else { continue };
            let share = |row: &Value| row[0].as_f64().expect("a share");
            let shares = curve["paths"]["shares"].as_array().expect("a list");
            let names = curve["paths"]["rows"].as_array().expect("a list");
            let (first, _) = names
                .iter()
                .zip(shares)
                .filter(|(name, _)| *name != "STOP")
                .max_by(|a, b| share(a.1).total_cmp(&share(b.1)))
                .expect("a feature");
            let tradeoff = curve["paths"]["tradeoff"].as_f64().expect("a number");
            let asked = steps.iter().filter(|step| {
                step["method"] == curve["name"].as_str().expect("a name")
                    && step["tradeoff"].parse() == Ok(tradeoff)
                    && step["step"] == "1"
                    && step["action"] == first.as_str().expect("a name")
            });
            let rows: u64 = contexts.iter().map(|context| context["rows"].as_u64().expect("a count")).sum();
            assert_eq!(rows, asked.count() as u64, "{}: {first}", curve["name"]);
            assert!(contexts.len() >= 2, "{}", curve["name"]);
            looked_at += 1;
        }
    }
    looked_at
}

/// Beside one model for a range of α, a model for each: two curves, the second put together from a cell a point.
#[test]
fn each_alpha_alone_makes_a_curve_too() {
    let dir = clinic("compare_alone");
    let done = compare(
        &dir.0,
        &["problem.toml", "--methods", "nmppg", "--separate", "--alphas", "0.001,0.3", "--out", "out"],
    );
    assert_eq!(done.code, Some(0), "{}", done.err);
    let results = lines(&read(dir.0.join("out/results.csv")));
    let alone: Vec<&str> = results
        .iter()
        .filter(|row| row["method"] == "nmppg (each α alone)")
        .map(|row| row["tradeoff"].as_str())
        .collect();
    assert_eq!(alone, ["0.001", "0.3"]);
    let together = results.iter().filter(|row| row["method"] == "nmppg");
    let alphas: Vec<f64> = together.map(|row| row["tradeoff"].parse().expect("a number")).collect();
    assert!(!alphas.is_empty() && alphas.iter().all(|alpha| (0.001..=0.3).contains(alpha)), "{alphas:?}");
    assert_eq!(read(dir.0.join("out/times.csv")).lines().count(), 4, "a line a cell, and the head");
}

/// A method under other settings is another curve. Cells of the method itself are the same with and without it.
#[test]
fn a_variant_stands_beside_its_method() {
    let dir = clinic("compare_variant");
    let alone = ["problem.toml", "--methods", "dime", "--set", "dime:batch=64", "--out", "out"];
    assert_eq!(compare(&dir.0, &alone).code, Some(0));
    let before = plan(&dir.0.join("out"))["cells"].clone();
    let more = ["--variant", "no chance=dime", "--set", "no chance:epsilon=0"];
    let done = compare(&dir.0, &[&alone[..], &more].concat());
    assert!(done.code == Some(0) && done.err.contains("2 cells, 1 done before"), "{}", done.err);
    let out = dir.0.join("out");
    assert_eq!(plan(&out)["cells"][0], before[0]);
    let results = lines(&read(out.join("results.csv")));
    let of = |name: &str| -> Vec<String> {
        let mine = results.iter().filter(|row| row["method"] == name);
        mine.map(|row| format!("{} {} {}", row["tradeoff"], row["loss"], row["cost"])).collect()
    };
    assert!(!of("dime").is_empty() && !of("no chance").is_empty());
    assert_ne!(of("dime"), of("no chance"), "its own setting makes no difference");
    // The same settings by another way: those of the method count for its variant as well.
    let same = ["--methods", "dime", "--set", "dime:batch=64", "--set", "dime:epsilon=0", "--out", "same"];
    assert_eq!(compare(&dir.0, &[&["problem.toml"], &same[..]].concat()).code, Some(0));
    let same = lines(&read(dir.0.join("same/results.csv")));
    let same = same.iter().map(|row| format!("{} {} {}", row["tradeoff"], row["loss"], row["cost"]));
    assert_eq!(of("no chance"), same.collect::<Vec<_>>());
    // Also where the method itself is not compared.
    let without =
        ["problem.toml", "--methods", "tree", "--set", "dime:batch=64", "--list", "--out", "without"];
    assert_eq!(compare(&dir.0, &[&without[..], &more].concat()).code, Some(0));
    let folder = |out: &str| plan(&dir.0.join(out))["cells"][1]["folder"].clone();
    assert_eq!(folder("without"), folder("out"), "the same cell");
    let page = read(out.join("report.html"));
    assert!(page.contains("--variant no chance=dime") && page.contains("--set no chance:epsilon=0"));
}

/// A comparison that is killed when it is gone.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a comparison until one more cell is done, and kills it by a signal that nothing can catch.
fn kill_after_a_cell(dir: &TempDir, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_querent"));
    command.arg("compare").args(arguments).args(QUICK).current_dir(&dir.0);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = Killed(command.spawn().expect("starts"));
    let lines = BufReader::new(run.0.stderr.take().expect("piped")).lines();
    let line = lines.map_while(Result::ok).find(|line| line.contains("seed 0, curve: "));
    println!("killed after {line:?}");
    assert!(line.is_some() && run.0.try_wait().expect("a state").is_none(), "over before it could be killed");
}

#[test]
fn killed_twice_it_ends_with_the_same_bytes() {
    let dir = clinic("compare_killed");
    let of = |out: &'static str| {
        [
            "problem.toml",
            "--methods",
            "nmppg,gdfs,difa,dime,fixed,tree,everything,nothing",
            "--jobs",
            "1",
            "--out",
            out,
        ]
    };
    assert_eq!(compare(&dir.0, &of("whole")).code, Some(0));
    for _ in 0..2 {
        kill_after_a_cell(&dir, &of("killed"));
        assert!(!dir.0.join("killed/results.csv").exists(), "killed before the end");
    }
    let done = compare(&dir.0, &of("killed"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(!done.err.contains(" 0 done before") && !done.err.contains(" 8 done before"), "{}", done.err);
    for file in ["comparison.json", "results.csv", "areas.csv", "evaluation.csv.gz", "curves.svg"] {
        let [a, b] = ["whole", "killed"].map(|out| std::fs::read(dir.0.join(out).join(file)).expect("reads"));
        assert!(!a.is_empty() && a == b, "{file} differs");
    }
    // The control: another seed has other bytes.
    let other = ["problem.toml", "--methods", "nmppg", "--seeds", "1", "--out", "other"];
    assert_eq!(compare(&dir.0, &other).code, Some(0));
    assert!(
        !read(dir.0.join("whole/results.csv"))
            .contains(read(dir.0.join("other/results.csv")).lines().nth(1).expect("a line"))
    );
}

#[test]
fn a_cell_that_fails_is_told_and_stops_no_other() {
    let dir = clinic("compare_failed");
    let some = ["problem.toml", "--methods", "fixed,tree,nothing", "--out", "out"];
    assert_eq!(compare(&dir.0, &[&some[..], &["--list"]].concat()).code, Some(0));
    // A file where the folder of the first cell should be.
    let out = dir.0.join("out");
    let plan = plan(&out);
    let folder = out.join(plan["cells"][0]["folder"].as_str().expect("a folder"));
    std::fs::create_dir_all(out.join("cells")).expect("makes");
    std::fs::write(&folder, "in the way").expect("writes");
    let done = compare(&dir.0, &some);
    assert_eq!(done.code, Some(2), "{}", done.out);
    assert!(done.err.contains("1 of 3 cells failed"), "{}", done.err);
    let told = |line: &str| line.starts_with("failed: ") && line.contains(", fixed, seed 0, curve: ");
    assert!(done.out.lines().any(told), "{}", done.out);
    let results = read(out.join("results.csv"));
    assert!(
        results.contains(",tree,") && results.contains(",nothing,") && !results.contains(",fixed,"),
        "{results}"
    );
    assert!(read(out.join("report.html")).contains("Failed:"));
    // One by one, as on a cluster: it says why, and what is done is put together.
    let one = querent(&dir.0, &["compare", "--out", "out", "--cell", "0"], "");
    assert_eq!(one.code, Some(2), "{}", one.err);
    std::fs::remove_file(&folder).expect("removes");
    let one = querent(&dir.0, &["compare", "--out", "out", "--cell", "0"], "");
    assert_eq!(one.code, Some(0), "{}", one.err);
    let all = querent(&dir.0, &["compare", "--out", "out", "--collect"], "");
    assert!(all.code == Some(0) && all.out.contains("fixed set"), "{}{}", all.out, all.err);
    // A table that is another one by now is not taken for the one that was planned.
    let again =
        compare(&dir.0, &["problem.toml", "--methods", "tree", "--seeds", "9", "--list", "--out", "out"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let table = read(dir.0.join("clinic.csv"));
    std::fs::write(dir.0.join("clinic.csv"), table + "\n").expect("writes");
    let changed = querent(&dir.0, &["compare", "--out", "out", "--cell", "0"], "");
    assert!(changed.code == Some(2) && changed.err.contains("has changed since"), "{}", changed.err);
    assert!(
        read(
            out.join(self::plan(&out)["cells"][0]["folder"].as_str().expect("a folder")).join("failure.txt")
        )
        .contains("has changed")
    );
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let dir = clinic("compare_refused");
    let problem = read(dir.0.join("problem.toml"));
    let without = |part: &str| {
        problem
            .replace(&format!("{part} = 0.15"), &format!("{part} = 0"))
            .replace("train = 0.7", "train = 0.85")
    };
    std::fs::write(dir.0.join("unvalidated.toml"), without("validation")).expect("writes");
    std::fs::write(dir.0.join("untested.toml"), without("test")).expect("writes");
    for (arguments, says) in [
        (vec!["unvalidated.toml"], "training and validation need some"),
        (vec!["untested.toml"], "there are no test rows"),
        (vec!["problem.toml", "--methods", "nmppg,magic"], "there is no method `magic`; there are nmppg"),
        (vec!["problem.toml", "--seeds", ""], "there is no seed"),
        (vec!["problem.toml", "--seeds", "one"], "`one` is no seed"),
        (vec!["problem.toml", "--alphas", "0.1,-1"], "`-1` is no α"),
        (vec!["problem.toml", "problem.toml"], "two tables are called"),
        (vec!["nowhere"], "there is no data set `nowhere`"),
        (vec!["problem.toml", "--set", "hidden=[8]"], "say which method"),
        (vec!["problem.toml", "--methods", "tree", "--set", "gdfs:hidden=[8]"], "`gdfs` is not compared"),
        (vec!["problem.toml", "--methods", "gdfs", "--set", "gdfs:hidden=[0]"], "at least one layer"),
        (vec!["problem.toml", "--methods", "gdfs", "--set", "gdfs:nonsense=1"], "nonsense"),
        (vec!["problem.toml", "--variant", "soft=nmpg"], "did you mean `nmppg`?"),
        (vec!["problem.toml", "--variant", "soft=nmppg"], "say what is other than in nmppg"),
        (vec!["problem.toml", "--methods", "tree", "--set", "soft:rollout=Soft"], "`soft` is not compared"),
        (vec!["--cell", "0"], "there is no comparison here"),
        (vec!["--collect"], "there is no comparison here"),
        (vec![], "there is no comparison here"),
        (vec!["problem.toml", "--points", "0"], "--points is 0"),
    ] {
        let done = compare(&dir.0, &[&arguments[..], &["--out", "out"]].concat());
        assert!(done.code == Some(2) && done.err.contains(says), "{arguments:?}: {}{}", done.out, done.err);
        assert!(!dir.0.join("out").exists(), "{arguments:?}: something was written");
    }
}
