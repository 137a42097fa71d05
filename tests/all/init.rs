//! `init` and the files it is given, and what it finds in tables that people have: the problem it writes is trained on,
//! so that what was found works to the end.
#![cfg(feature = "cli")]

use crate::command::{QUICK, querent, train_quickly};
use crate::common::TempDir;
use std::fmt::Write as _;

struct Bench(TempDir);

impl Bench {
    fn new(name: &str) -> Self {
        Self(TempDir::new(&format!("init-{name}")))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.0.join(name), bytes).expect("writes");
    }

    /// What `init` prints, and the problem it writes.
    fn init(&self, arguments: &[&str], input: &str) -> (String, String) {
        let done = querent(&self.0.0, &[&["init"], arguments, &["--force"]].concat(), input);
        assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.err);
        (done.out, std::fs::read_to_string(self.0.0.join("problem.toml")).expect("written"))
    }

    /// The command must be refused and say all of `says`.
    fn refuse(&self, arguments: &[&str], says: &[&str]) {
        let done = querent(&self.0.0, arguments, "");
        assert_eq!(done.code, Some(2), "{arguments:?}: {}{}", done.out, done.err);
        for part in says {
            assert!(done.err.contains(part), "{arguments:?}: `{part}` is not in: {}", done.err);
        }
    }
}

/// A table of 90 rows: a number, a word, two classes.
fn good() -> String {
    let mut text = String::from("height,colour,outcome\n");
    for row in 0..90 {
        let _ = writeln!(
            text,
            "{},{},{}",
            row * 7 % 53,
            ["red", "green", "blue"][row * 5 % 7 % 3],
            ["lost", "won"][row * 3 % 5 % 2]
        );
    }
    text
}

#[test]
fn a_table_for_a_problem_is_told() {
    let bench = Bench::new("instead");
    bench.write("table.csv", good());
    let says = ["this is a table", "querent init table.csv --target COLUMN", "`height`, `colour`, `outcome`"];
    bench.refuse(&["train", "table.csv"], &says);
    bench.write("table.parquet", b"PAR1\x15\x04\x00\x01");
    let says = ["table.parquet: this is a Parquet file", "read_parquet('table.parquet')"];
    bench.refuse(&["train", "table.parquet"], &says);
    bench.refuse(&["init", "table.parquet", "--target", "y"], &says);
    bench.write("table.xlsx", b"PK\x03\x04\x14\x00");
    bench.refuse(&["init", "table.xlsx", "--target", "y"], &["table.xlsx: this is an Excel", "CSV UTF-8"]);
    // A problem that is spoilt is still told as one.
    bench.write("problem.toml", "[table");
    bench.refuse(&["train", "problem.toml"], &["problem.toml", "TOML"]);
}

#[test]
fn a_table_may_be_piped_and_may_have_an_index() {
    let bench = Bench::new("piped");
    let mut indexed = String::new();
    for (row, line) in good().lines().enumerate() {
        let index = if row == 0 { String::new() } else { (row * 31 % 91).to_string() };
        let _ = writeln!(indexed, "{index},{line}");
    }
    let (out, toml) = bench.init(&["-", "--target", "outcome"], &indexed);
    assert!(out.contains("90 rows, 4 columns, 2 classes"), "{out}");
    assert!(out.contains("ignored: Unnamed: 0\n"), "{out}");
    assert!(toml.contains("# CHECK: the table came from standard input"), "{toml}");
    bench.refuse(&["train", "problem.toml"], &["path is `-`", "write the name of its file"]);
    bench.write("table.csv", &indexed);
    bench.write("problem.toml", toml.replace("path = \"-\"", "path = \"table.csv\""));
    train_quickly(&bench.0.0, &["problem.toml", "--out", "run"]);
}

#[test]
fn near_misses_are_told() {
    let bench = Bench::new("near");
    bench.write("table.csv", good());
    bench.refuse(
        &["init", "table.csv", "--target", "outcom"],
        &["no column `outcom`", "did you mean `outcome`?"],
    );
    bench.write("prices.csv", "column,cost\nHeight,2\n");
    let priced = ["init", "table.csv", "--target", "outcome", "--prices", "prices.csv"];
    bench.refuse(&priced, &["no column `Height`", "did you mean `height`?"]);
    let (_, toml) = bench.init(&["table.csv", "--target", "outcome"], "");
    for (from, to, says) in [
        ("name = \"height\"", "name = \"heigth\"", "did you mean `height`?"),
        ("[\"lost\", \"won\"]", "[\"lots\", \"won\"]", "the problem says `lots`; did you mean `lost`?"),
        ("column = \"outcome\"", "column = \"Outcome\"", "did you mean `outcome`?"),
    ] {
        assert!(toml.contains(from), "{toml}");
        bench.write("problem.toml", toml.replacen(from, to, 1));
        bench.refuse(&[&["train", "problem.toml", "--out", "run"], QUICK].concat(), &[says]);
    }
}

#[test]
fn numbers_in_flags_are_clear() {
    let bench = Bench::new("flags");
    bench.write("table.csv", good());
    bench.init(&["table.csv", "--target", "outcome"], "");
    let train =
        |flags: &[&str], says: &[&str]| bench.refuse(&[&["train", "problem.toml"], flags].concat(), says);
    train(&["--alpha", "-1"], &["alpha is -1"]);
    train(&["--alpha", "0,05"], &["--alpha", "no comma: 0.05"]);
    train(&["--alpha", "-0,5"], &["--alpha", "no comma: -0.5"]);
    train(&["--alphas", "0,05"], &["--alphas", "such as 0.05"]);
    train(&["--range", "-1,2"], &["-1"]);
    train(&["--horizon", "-3"], &["--horizon", "-3 is below 0"]);
    train(&["--seeds", "1.5"], &["--seeds", "whole number"]);
    train(&["--alpha", "--baselines"], &["--alpha", "next option"]);
    train(&["--dropout", "0,3"], &["no comma: 0.3"]);
    bench.refuse(&["ask", "none.safetensors", "--budget", "2,5"], &["no comma: 2.5"]);
}
