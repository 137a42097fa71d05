//! Tables, problems and answers that cannot be: each is refused with a message that names the culprit and
//! its place, exit code 2, and no file left behind; what only looks odd is accepted.
#![cfg(feature = "cli")]

use crate::command::{QUICK, querent, train_quickly};
use crate::common::TempDir;
use std::fmt::Write as _;

/// A table of 60 rows that is fine: two features, two classes.
fn good() -> String {
    let mut text = String::from("u,v,y\n");
    for row in 0..60 {
        let _ = writeln!(text, "{},{},{}", row * 7 % 13, ["a", "b", "c"][row % 3], ["no", "yes"][row % 2]);
    }
    text
}

const PROBLEM: &str = "\
[table]
path = \"t.csv\"
[target]
column = \"y\"
classes = [\"no\", \"yes\"]
[[feature]]
name = \"u\"
kind = \"numeric\"
cost = 1.0
[[feature]]
name = \"v\"
kind = \"categorical\"
cost = 2.0
";

struct Bench(TempDir);

impl Bench {
    fn new(name: &str) -> Self {
        Self(TempDir::new(&format!("bad-tables-{name}")))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.0.join(name), bytes).expect("writes");
    }

    /// The command must be refused, say all of `says` and leave no new file.
    fn refuse(&self, what: &str, arguments: &[&str], says: &[&str]) {
        let before = self.0.files();
        let done = querent(&self.0.0, arguments, "");
        assert_eq!(done.code, Some(2), "{what}: {}{}", done.out, done.err);
        assert!(done.err.starts_with("error: "), "{what}: {}", done.err);
        assert!(!done.err.contains("panicked"), "{what}: {}", done.err);
        for part in says {
            assert!(done.err.contains(part), "{what}: `{part}` is not in: {}", done.err);
        }
        assert_eq!(self.0.files(), before, "{what}: left a file");
    }

    /// `init` must refuse a table of these bytes.
    fn refuse_init(&self, what: &str, bytes: impl AsRef<[u8]>, says: &[&str]) {
        self.write("t.csv", bytes);
        self.refuse(what, &["init", "t.csv", "--target", "y"], says);
    }

    /// `train` must refuse this table with this problem.
    fn refuse_train(&self, what: &str, table: impl AsRef<[u8]>, problem: &str, says: &[&str]) {
        self.write("t.csv", table);
        self.write("problem.toml", problem);
        self.refuse(what, &[&["train", "problem.toml", "--out", "run"], QUICK].concat(), says);
    }
}

/// The control: the same way, unspoilt, succeeds.
#[test]
fn a_good_table_is_taken() {
    let bench = Bench::new("good");
    bench.write("t.csv", good());
    let done = querent(&bench.0.0, &["init", "t.csv", "--target", "y"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(bench.0.files(), ["problem.toml", "t.csv"]);
    train_quickly(&bench.0.0, &["problem.toml", "--out", "run"]);
    bench.write("problem.toml", PROBLEM);
    train_quickly(&bench.0.0, &["problem.toml", "--out", "other"]);
    assert!(bench.0.0.join("other/model.safetensors").is_file());
    // What is there already is not replaced.
    bench.refuse("init again", &["init", "t.csv", "--target", "y"], &["there already", "--force"]);
    let again = [&["train", "problem.toml", "--out", "other"], QUICK].concat();
    bench.refuse("train again", &again, &["there is a run in it already", "--resume"]);
}

#[test]
fn files_of_other_kinds_are_accepted() {
    let bench = Bench::new("kinds");
    let tabs = good().replace(',', "\t");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, good().as_bytes()).expect("packs");
    let files: [(&str, Vec<u8>); 6] = [
        ("bom.csv", format!("\u{feff}{}", good()).into_bytes()),
        ("crlf.csv", good().replace('\n', "\r\n").into_bytes()),
        ("quoted.csv", good().replace(",a,", ",\"a\nb, \"\"c\"\"\",").into_bytes()),
        ("tabs.tsv", tabs.into_bytes()),
        ("semicolons.csv", good().replace(',', ";").into_bytes()),
        ("packed.csv.gz", packed.finish().expect("packs")),
    ];
    for (name, bytes) in files {
        bench.write(name, bytes);
        let out = format!("{name}.toml");
        let done = querent(&bench.0.0, &["init", name, "--target", "y", "--out", &out], "");
        assert_eq!(done.code, Some(0), "{name}: {}", done.err);
        assert!(done.out.contains("60 rows, 3 columns, 2 classes"), "{name}: {}", done.out);
        train_quickly(&bench.0.0, &[&out, "--out", &format!("run-{name}")]);
    }
}

#[test]
fn init_refuses() {
    let bench = Bench::new("init");
    bench.refuse_init("0 bytes", "", &["t.csv", "the file is empty"]);
    bench.refuse_init("a header alone", "u,y\n", &["no rows"]);
    bench.refuse_init("a ragged row", "u,y\n1,a\n2\n", &["row 2 (line 3) has 1 cells, but the header has 2"]);
    bench.refuse_init("a longer row", "u,y\n1,a\n2,b,c\n", &["row 2 (line 3) has 3 cells"]);
    bench.refuse_init("a duplicate header", "u,u,y\n1,2,a\n", &["columns 1 and 2 are both named `u`"]);
    bench.refuse_init("an empty header", "u,,y\n1,2,a\n", &["column 2: the name is empty"]);
    bench.refuse_init("no target", "u,v\n1,2\n", &["no column `y`", "`u`, `v`"]);
    bench.refuse_init("one class", "u,y\n1,a\n2,a\n", &["`a` in every row"]);
    let many: String = (0..5000).map(|row| format!("{},class {row}\n", row % 7)).collect();
    bench.refuse_init("5,000 classes", format!("u,y\n{many}"), &["different values", "at most 256"]);
    bench.refuse_init("not UTF-8", b"u,y\n\xff\xff,a\n", &["row 1 (line 2), column `u`", "UTF-8"]);
    bench.refuse_init("UTF-16", b"\xff\xfeu\0,\0y\0", &["UTF-16"]);
    bench.refuse_init("a truncated gzip", b"\x1f\x8b\x08\x00\x00", &["t.csv"]);
    bench.refuse("no file", &["init", "none.csv", "--target", "y"], &["none.csv"]);
    bench.refuse("a folder", &["init", ".", "--target", "y"], &["."]);
    bench.write("t.csv", good());
    let priced = |text: &str, says: &[&str]| {
        bench.write("prices.csv", text);
        bench.refuse(text, &["init", "t.csv", "--target", "y", "--prices", "prices.csv"], says);
    };
    priced("column,cost\nu,-3\n", &["prices.csv", "row 1 (line 2)", "`u` is -3"]);
    priced("column,cost\nu,cheap\n", &["the cost of `u`", "not a number"]);
    priced("column,cost\nu,\n", &["the cost of `u`"]);
    priced("column,cost\nw,1\n", &["no column `w`"]);
    priced("column,cost\nu,1\nu,2\n", &["row 2", "`u` has a price already"]);
    priced("column,price\nu,1\n", &["no column `cost`"]);
}

#[test]
fn init_flags_what_is_odd() {
    let bench = Bench::new("flags");
    let mut text = String::from("id,same,never,leak,rare,y\n");
    for row in 0..100 {
        let class = if row == 99 { "odd" } else { ["no", "yes"][row * 5 % 7 % 2] };
        let _ = writeln!(text, "p{row},3,,{class}!,{},{class}", row * 3 % 11);
    }
    bench.write("t.csv", text);
    let done = querent(&bench.0.0, &["init", "t.csv", "--target", "y"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("ignored: id, same, never, leak"), "{}", done.out);
    let toml = std::fs::read_to_string(bench.0.0.join("problem.toml")).expect("reads");
    for part in ["looks like an id", "always `3`", "no row has a value", "goes with one value of `y`"] {
        assert!(toml.contains(&format!("# CHECK: {part}")) || toml.contains(part), "{part}: {toml}");
    }
    assert!(toml.contains("# CHECK: class `odd` has 1 row(s)"), "{toml}");
    // And training says so too, if nothing is done about it.
    bench.refuse(
        "a class with one row",
        &[&["train", "problem.toml", "--out", "run"], QUICK].concat(),
        &["class `odd` has 1 row(s)", "drop"],
    );
}

#[test]
fn train_refuses_tables() {
    let bench = Bench::new("train");
    let spoilt = good().replacen("7,b,yes", "seven,b,yes", 1);
    bench.refuse_train(
        "a word for a number",
        spoilt,
        PROBLEM,
        &["row 2 (line 3), column `u`", "`seven` is not a number"],
    );
    let spoilt = good().replacen("7,b,yes", "inf,b,yes", 1);
    bench.refuse_train(
        "an infinite number",
        spoilt,
        PROBLEM,
        &["row 2 (line 3), column `u`", "not a finite"],
    );
    let spoilt = good().replacen("7,b,yes", "7,b,maybe", 1);
    bench.refuse_train(
        "an unknown class",
        spoilt,
        PROBLEM,
        &["row 2 (line 3), column `y`", "`maybe` is no class"],
    );
    let spoilt = good().replacen("7,b,yes", "7,b", 1);
    bench.refuse_train("a ragged row", spoilt, PROBLEM, &["row 2 (line 3) has 2 cells"]);
    let one = format!("u,v,y\n{}1,a,yes\n", "1,a,no\n2,b,no\n3,c,no\n".repeat(9));
    bench.refuse_train("a class with one row", one, PROBLEM, &["class `yes` has 1 row(s)"]);
    let none = "u,v,y\n".to_string() + &"1,a,no\n2,b,no\n".repeat(9);
    bench.refuse_train("a class without rows", none, PROBLEM, &["class `yes` has 0 row(s)"]);
    let constant = "u,v,y\n".to_string() + &"5,a,no\n5,b,yes\n".repeat(20);
    bench.refuse_train("a constant", constant, PROBLEM, &["column `u` is 5 in every row", "ignore = true"]);
    let constant = "u,v,y\n".to_string() + &"5,a,no\n6,a,yes\n".repeat(20);
    bench.refuse_train("a constant word", constant, PROBLEM, &["column `v` is `a` in every row"]);
    let missing = "u,v,y\n".to_string() + &",a,no\n,b,yes\n".repeat(20);
    bench.refuse_train("all missing", missing, PROBLEM, &["column `u` has no value in any training row"]);
    bench.refuse_train("no rows", "u,v,y\n", PROBLEM, &["there are no rows"]);
    bench.refuse_train("0 bytes", "", PROBLEM, &["the file is empty"]);
}

#[test]
fn train_refuses_problems() {
    let bench = Bench::new("problems");
    let refuse = |what: &str, from: &str, to: &str, says: &[&str]| {
        assert!(PROBLEM.contains(from), "{from}");
        let says = [says, &["problem.toml"]].concat();
        bench.refuse_train(what, good(), &PROBLEM.replacen(from, to, 1), &says);
    };
    refuse("a negative cost", "cost = 1.0", "cost = -1.0", &["`u`: its cost is -1"]);
    refuse("a cost that is NaN", "cost = 1.0", "cost = nan", &["`u`: its cost is NaN"]);
    refuse("an infinite cost", "cost = 1.0", "cost = inf", &["`u`: its cost is inf"]);
    refuse("no cost", "cost = 1.0\n", "", &["`u` has no cost"]);
    refuse("a cost in words", "cost = 1.0", "cost = \"one\"", &["line 9"]);
    refuse(
        "two costs of a group",
        "cost = 2.0",
        "cost = 2.0\ngroup = \"u\"",
        &["two costs, 1 (`u`) and 2 (`v`)"],
    );
    refuse("one class", "[\"no\", \"yes\"]", "[\"no\"]", &["at least two"]);
    refuse("a class twice", "[\"no\", \"yes\"]", "[\"no\", \"no\"]", &["`no` is there twice"]);
    refuse("the target as a feature", "name = \"v\"", "name = \"y\"", &["is the target"]);
    refuse("a name twice", "name = \"v\"", "name = \"u\"", &["both named `u`"]);
    refuse("an unknown key", "cost = 1.0", "price = 1.0", &["line 9", "price"]);
    refuse("an unknown kind", "\"numeric\"", "\"number\"", &["line 8"]);
    refuse("no TOML", "[target]", "[target", &["line 3"]);
    // What is wrong with the table is said with the table's name.
    let absent = PROBLEM.replacen("name = \"v\"", "name = \"w\"", 1);
    bench.refuse_train("an absent column", good(), &absent, &["t.csv", "no column `w`", "`u`, `v`, `y`"]);
    let absent = PROBLEM.replacen("column = \"y\"", "column = \"z\"", 1);
    bench.refuse_train("an absent target", good(), &absent, &["no column `z`"]);
    let absent = PROBLEM.replacen("t.csv", "none.csv", 1);
    bench.refuse_train("an absent table", good(), &absent, &["none.csv"]);
    let counted = format!("{PROBLEM}[split]\ntrain = 50\nvalidation = 5\ntest = 6\n");
    bench.refuse_train("more rows than there are", good(), &counted, &["50 + 5 + 6", "there are 60"]);
    bench.write("problem.toml", PROBLEM);
    for (what, flag, value, says) in [
        ("α below 0", "--alpha", "-1", "alpha is -1"),
        ("α is no number", "--alpha", "nan", "alpha must be a number"),
        ("a horizon of 0", "--horizon", "0", "horizon is 0"),
        ("no units", "--hidden", "0", "a width of networks.policy is 0"),
        ("dropout 1", "--dropout", "1", "dropout is 1"),
    ] {
        let flag = format!("{flag}={value}");
        bench.refuse(what, &["train", "problem.toml", "--out", "run", &flag], &[says]);
    }
    bench.refuse("no such data set", &["train", "nonsense"], &["no such file", "diabetes"]);
    bench.refuse("no such model", &["ask", "none.safetensors"], &["none.safetensors"]);
    bench.refuse("no model", &["eval", "t.csv"], &["not a model"]);
    bench.refuse("no run", &["report", "."], &["run.json"]);
}

/// Files that are not there, and ones that are not the right ones, are named with where to get them.
#[test]
fn the_catalog_says_where_to_get_files() {
    let bench = Bench::new("catalog");
    bench.refuse(
        "no file",
        &["train", "splice", "--data-dir", "."],
        &[
            "splice.data.gz",
            "not there",
            "archive.ics.uci.edu",
            "looked for in .:",
            "--data-dir",
            "QUERENT_DATA",
            "querent data list",
        ],
    );
    std::fs::create_dir(bench.0.0.join("enginefaultdb")).expect("makes");
    bench.write("enginefaultdb/EngineFaultDB_Final.csv", "Fault,MAP\n0,1\n");
    bench.refuse(
        "another file",
        &["data", "check", "enginefaultdb", "--data-dir", "."],
        &["another file (git blob ", "github.com/Leo-Thomas/EngineFaultDB"],
    );
    bench.refuse("an unknown name", &["data", "check", "nonsense"], &["there is no data set `nonsense`"]);
    let done = querent(&bench.0.0, &["data", "list", "--data-dir", "."], "");
    assert_eq!(done.code, Some(0));
    assert!(done.out.contains("not there") && done.out.contains("built in"), "{}", done.out);
}

/// Answers that cannot be, and the end of the input.
#[test]
fn ask_refuses_answers() {
    let bench = Bench::new("ask");
    bench.write("t.csv", good());
    bench.write("problem.toml", PROBLEM);
    // So cheap that both are asked for, whatever was learned.
    train_quickly(&bench.0.0, &["problem.toml", "--alpha", "0", "--out", "run"]);
    let ask = |arguments: &[&str], input: &str| {
        querent(&bench.0.0, &[&["ask", "run/model.safetensors"], arguments].concat(), input)
    };
    let first = ask(&["--json"], "");
    assert_eq!(first.code, Some(2), "{}", first.err);
    assert!(first.err.contains("the input ended while `"), "{}", first.err);
    let question: serde_json::Value =
        serde_json::from_str(first.out.lines().next().expect("asks")).expect("JSON");
    let is_number = question["ask"] == "u";
    let done = ask(&[], "");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("the input ended"), "{}", done.err);

    // Both orders of the two questions: the first answer that does not fit is told and asked for again.
    let answers = if is_number { "seven\n7\na\n" } else { "a\nseven\n7\n" };
    let done = ask(&[], answers);
    assert!(
        done.out.contains("`seven` is not a number; answer with a number, 0 to 12 so far"),
        "{}",
        done.out
    );
    let answers = if is_number { "700\nnew\n" } else { "new\n700\n" };
    let done = ask(&[], answers);
    assert!(
        done.err.contains("warning: u = 700 is outside of the training rows' range, 0 to 12"),
        "{}",
        done.err
    );
    assert!(done.err.contains("warning: no training row has v = `new`"), "{}", done.err);
    assert!(!done.err.contains("panicked"));
    let quiet = querent(&bench.0.0, &["--quiet", "ask", "run/model.safetensors"], answers);
    assert_eq!(quiet.err, "", "quiet means no warnings");
    let done = ask(&[], "n/a\nn/a\n");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("cannot be had") && done.out.contains("answer: "), "{}", done.out);
    let done = ask(&["--budget", "0"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("(0 asked, 0 spent)"), "{}", done.out);
    bench.refuse("a negative budget", &["ask", "run/model.safetensors", "--budget=-1"], &["budget is -1"]);

    let input = if is_number {
        "nonsense\n{\"answer\":\"x\"}\n{\"answer\":700}\n{\"answer\":\"b\"}\n"
    } else {
        "nonsense\n{\"answer\":[1,2]}\n{\"answer\":\"b\"}\n{\"answer\":700}\n"
    };
    let done = ask(&["--json"], input);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let lines: Vec<serde_json::Value> =
        done.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.iter().filter(|line| line.get("error").is_some()).count(), 2, "{}", done.out);
    assert_eq!(lines.iter().filter(|line| line.get("warning").is_some()).count(), 1, "{}", done.out);
    let last = lines.last().expect("answers");
    assert!(last["predict"].is_string() && last["spent"] == 3.0, "{last}");
    assert_eq!(last["asked"].as_array().map(Vec::len), Some(2), "{last}");

    // Rows in raw units: a column that is not there, a word for a number.
    bench.write("new.csv", "u,y\n1,no\n");
    bench.refuse("no column", &["eval", "run/model.safetensors", "new.csv"], &["new.csv", "no column `v`"]);
    bench.write("new.csv", "v,u,y\na,x,no\n");
    let strict = ["eval", "run/model.safetensors", "new.csv", "--strict"];
    bench.refuse("a word", &strict, &["row 1 (line 2), column `u`"]);
    let quiet = ["--quiet", "eval", "run/model.safetensors", "new.csv"];
    bench.refuse("nothing but words", &quiet, &["none of its 1 row(s)", "row 1 (line 2), column `u`"]);
    bench.write("new.csv", "v,u,y\na,1,no\nq,,yes\n");
    let done = querent(&bench.0.0, &["eval", "run/model.safetensors", "new.csv", "--json"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("\"instances\": 2"), "{}", done.out);
}

/// Ctrl-C while a question is open.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_2() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};
    let bench = Bench::new("ctrl-c");
    bench.write("t.csv", good());
    bench.write("problem.toml", PROBLEM);
    train_quickly(&bench.0.0, &["problem.toml", "--alpha", "0", "--out", "run"]);
    let before = bench.0.files();
    let mut child = Command::new(env!("CARGO_BIN_EXE_querent"))
        .args(["ask", "run/model.safetensors", "--json"])
        .current_dir(&bench.0.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    // Held open: an end of the input would end the command as well.
    let _input = child.stdin.take();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("asks");
    assert!(line.contains("\"ask\""), "{line}");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let code = child.wait().expect("ends").code();
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("reads");
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("interrupted: this case has no answer"), "{err}");
    assert_eq!(bench.0.files(), before);
}

/// A quote that is never closed makes one cell of the rest of the file. What is lost with it is no bad row that could be left
/// out, wherever the quote stands; nor is a quote inside of a cell one.
#[test]
fn a_quote_that_is_never_closed() {
    let bench = Bench::new("quote");
    let says = ["the quote that is opened in line 4 is never closed"];
    let good = good();
    let spoilt = |change: fn(&str) -> String| {
        let line = |(i, line): (usize, &str)| if i == 3 { change(line) } else { line.to_string() };
        good.lines().enumerate().map(line).map(|line| line + "\n").collect::<String>()
    };
    let last = |line: &str| {
        let (before, cell) = line.rsplit_once(',').expect("cells");
        format!("{before},\"{cell}")
    };
    bench.refuse_init("in a first cell", spoilt(|line| format!("\"{line}")), &says);
    bench.refuse_init("in a last cell", spoilt(last), &says);
    bench.refuse_init(
        "after a closed one",
        spoilt(|line| format!("\"a\"\"\n b\",\"{line}")),
        &["opened in line 5"],
    );
    bench.write("t.csv", spoilt(|line| line.replacen(',', "\" long,", 1)));
    let done = querent(&bench.0.0, &["init", "t.csv", "--target", "y"], "");
    assert_eq!(done.code, Some(0), "a quote inside of a cell: {}", done.err);
    bench.write("t.csv", &good);
    bench.write("rows.csv", spoilt(last));
    crate::command::train_quickly(&bench.0.0, &["problem.toml", "--out", "run"]);
    for command in ["predict", "eval"] {
        bench.refuse(command, &[command, "run/model.safetensors", "rows.csv"], &says);
    }
}
