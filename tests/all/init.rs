//! `init` and the files it is given, and what it finds in tables that people have: the problem it writes is trained on,
//! so that what was found works to the end.
#![cfg(feature = "cli")]

use crate::command::{QUICK, querent, train_quickly};
use crate::common::TempDir;
use querent::data::table::{Schema, TableReader, prepare};
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

/// Flats: what they cost depends on their size and place. The price is a number.
fn flats(price: impl Fn(f64) -> String) -> String {
    let mut text = String::from("size,place,price\n");
    for row in 0..300 {
        let (size, place) = (20 + row * 37 % 101, ["north", "south", "west"][row * 11 % 7 % 3]);
        let worth = size as f64 * if place == "west" { 2.5 } else { 1.5 } + (row * 13 % 17) as f64 / 4.0;
        let _ = writeln!(text, "{size},{place},{}", price(worth));
    }
    text
}

#[test]
fn a_number_is_cut_into_ranges() {
    let bench = Bench::new("ranges");
    bench.write("table.csv", flats(|price| price.to_string()));
    // Nobody said how: it is announced, with how to say it.
    let (out, toml) = bench.init(&["table.csv", "--target", "price"], "");
    assert!(
        out.contains("`price` is a number (") && out.contains("cut into 4 ranges: about below "),
        "{out}"
    );
    assert!(out.contains("--bins N or --edges A,B,…") && !out.contains("classes\n"), "{out}");
    assert!(toml.contains("\nbins = 4  #") && toml.contains("# CHECK: a number ("), "{toml}");
    train_quickly(&bench.0.0, &["problem.toml", "--alpha", "0", "--out", "four"]);
    let model = querent::Model::load(bench.0.0.join("four/model.safetensors")).expect("loads");
    let classes = model.problem().classes();
    assert_eq!(classes.len(), 4);
    assert!(classes[0].starts_with("below ") && classes[3].ends_with(" and more"), "{classes:?}");
    let ranges = model.encoding().and_then(|encoding| encoding.ranges.clone()).expect("of a number");
    assert_eq!(ranges.names(), classes);

    // Said: as many as are wanted, or where. The model answers with a range, and other rows are read with numbers.
    let (_, toml) = bench.init(&["table.csv", "--target", "price", "--bins", "3"], "");
    assert!(toml.contains("\nbins = 3  #") && !toml.contains("# CHECK: a number"), "{toml}");
    let (out, toml) = bench.init(&["table.csv", "--target", "price", "--edges", "60,150.5"], "");
    assert!(out.contains("cut into 3 ranges: below 60, 60 to 150.5, 150.5 and more"), "{out}");
    assert!(toml.contains("\nedges = [60.0, 150.5]  #"), "{toml}");
    train_quickly(&bench.0.0, &["problem.toml", "--alpha", "0", "--out", "three"]);
    let model = "three/model.safetensors";
    let done = querent(&bench.0.0, &["ask", model, "--answer", "size=50", "--answer", "place=west"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("  below 60 ") && done.out.contains("  150.5 and more "), "{}", done.out);
    for arguments in [&["eval", model][..], &["eval", model, "table.csv"]] {
        let done = querent(&bench.0.0, arguments, "");
        assert_eq!(done.code, Some(0), "{}", done.err);
    }
    bench.write("new.csv", "size,place,price\n30,west,cheap\n");
    bench.refuse(&["eval", model, "new.csv"], &["row 1 (line 2), column `price`", "`cheap` is not a number"]);
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let bench = Bench::new("uncut");
    bench.write("table.csv", flats(|price| price.to_string()));
    let init = |flags: &[&str], says: &[&str]| {
        bench.refuse(&[&["init", "table.csv", "--target", "price"], flags].concat(), says);
    };
    init(&["--edges", "9,3"], &["the edges 9 and 3 are not in order"]);
    init(&["--edges", "1,5,2"], &["not in order"]);
    init(&["--bins", "1"], &["--bins is 1", "between 2 and 256"]);
    init(&["--bins", "-4"], &["-4 is below 0"]);
    init(&["--bins", "4", "--edges", "3"], &["cannot be used with"]);
    bench.refuse(
        &["init", "table.csv", "--target", "place", "--bins", "3"],
        &["`place` is no number", "row 1"],
    );
    bench.write("same.csv", flats(|price| if price < 250.0 { "1".into() } else { price.to_string() }));
    bench.refuse(
        &["init", "same.csv", "--target", "price", "--bins", "4"],
        &["nearly all rows", "number 1;", "--edges"],
    );
    // An edge beyond all numbers, and a row without one.
    let (_, toml) = bench.init(&["table.csv", "--target", "price", "--edges", "60,9000"], "");
    assert!(toml.contains("# CHECK: class `9000 and more` has 0 row(s)"), "{toml}");
    let train = [&["train", "problem.toml", "--out", "run"], QUICK].concat();
    bench.refuse(&train, &["class `9000 and more` has 0 row(s)", "move the edges"]);
    bench.write("table.csv", flats(|price| if price > 299.0 { "sold".into() } else { price.to_string() }));
    let (_, toml) = bench.init(&["table.csv", "--target", "price", "--bins", "3"], "");
    assert!(toml.contains("cell(s) are no numbers, first `sold`"), "{toml}");
    bench.refuse(&train, &["column `price`", "add `sold` to `drop`"]);
    bench.write("problem.toml", toml.replace("drop = []", "drop = [\"sold\"]"));
    train_quickly(&bench.0.0, &["problem.toml", "--out", "run"]);
    // Few numbers are classes, many are if one says so.
    bench.write("table.csv", flats(|price| format!("{}", (price / 10.0).round())));
    let (out, _) = bench.init(&["table.csv", "--target", "price", "--classes"], "");
    assert!(out.contains(" classes\n"), "{out}");
}

#[test]
fn numbers_with_commas_and_signs_are_read() {
    let bench = Bench::new("commas");
    let mut text = String::from("amount;share;income;outcome\n");
    for row in 0..120 {
        let amount = format!("{},{}", row * 7 % 31, row % 10);
        let income = format!("{}.{:03},50 €", 1 + row % 3, row * 77 % 1000);
        let _ = writeln!(text, "{amount};{}%;{income};{}", row * 3 % 89, ["lost", "won"][row * 3 % 5 % 2]);
    }
    bench.write("table.csv", &text);
    let (_, toml) = bench.init(&["table.csv", "--target", "outcome"], "");
    assert_eq!(toml.matches("kind = \"numeric\"").count(), 3, "{toml}");
    assert_eq!(toml.matches("decimal = \",\"").count(), 3, "{toml}");
    assert!(toml.contains("# CHECK: `0,0` is read as 0: ") && toml.contains("unit = \"%\""), "{toml}");
    assert!(toml.contains("is read as 1000.5") && toml.contains("unit = \"€\""), "{toml}");
    train_quickly(&bench.0.0, &["problem.toml", "--alpha", "0", "--out", "run"]);
    let model = "run/model.safetensors";
    let answers = ["--answer", "amount=3,5", "--answer", "share=12%", "--answer", "income=1.234,50"];
    let done = querent(&bench.0.0, &[&["ask", model], &answers[..]].concat(), "");
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    // A program's numbers are numbers, whatever the table has.
    let done = querent(&bench.0.0, &["ask", model, "--json"], &"{\"answer\":3.5}\n".repeat(3));
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(!done.out.contains("\"error\""), "{}", done.out);
    let done = querent(&bench.0.0, &["eval", model, "table.csv"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    // Without the key, what to write is told.
    bench.write("problem.toml", toml.replace("decimal = \",\"", ""));
    let train = [&["train", "problem.toml", "--out", "other"], QUICK].concat();
    bench.refuse(&train, &["row 1 (line 2), column `amount`", "say decimal = \",\""]);
}

#[test]
fn dates_text_splits_and_sentinels_are_found() {
    let bench = Bench::new("found");
    let mut text = String::from("title,seen,part,count,outcome\n");
    for row in 0..240 {
        let title = if row % 40 == 7 { format!("{}", 1984 + row) } else { format!("the story of {row}") };
        let part = ["train", "train", "train", "val", "test"][row % 5];
        let count = if row % 50 == 9 { -999 } else { (row * 7 % 53) as i64 };
        let outcome = ["lost", "won"][row * 3 % 7 % 2];
        let _ = writeln!(
            text,
            "{title},{:02}.{:02}.20{:02},{part},{count},{outcome}",
            1 + row % 28,
            1 + row % 12,
            row % 20
        );
    }
    bench.write("table.csv", &text);
    let (out, toml) = bench.init(&["table.csv", "--target", "outcome"], "");
    assert!(out.contains("240 rows, 5 columns, 2 classes"), "{out}");
    assert!(
        out.contains("split by `part`: 144 training, 48 validation and 48 test rows\nignored: title\n"),
        "{out}"
    );
    assert!(toml.contains("kind = \"date\"") && toml.contains("dates = \"dmy\""), "{toml}");
    assert!(toml.contains("cell(s) are -999, far from all others (0 to 52)"), "{toml}");
    assert!(!toml.contains("name = \"part\"") && toml.contains("column = \"part\""), "{toml}");
    let checks = toml.lines().filter(|line| line.starts_with("# CHECK: ")).count();
    assert!(out.contains(&format!("{checks} place(s) need a look")), "{out}\n{toml}");
    train_quickly(&bench.0.0, &["problem.toml", "--alpha", "0", "--out", "run"]);
    let model = "run/model.safetensors";
    let problem = querent::Model::load(bench.0.0.join(model)).expect("loads").problem().clone();
    // A date is one feature of four columns.
    assert_eq!((problem.features().len(), problem.columns()), (2, 5));
    let answers = ["--answer", "seen=31.12.2031", "--answer", "count=3"];
    let done = querent(&bench.0.0, &[&["ask", model], &answers[..]].concat(), "");
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(done.out.contains("(a date such as 31.05.2024, "), "{}", done.out);
    assert!(done.err.contains("outside of the training rows' dates"), "{}", done.err);
    let done = querent(&bench.0.0, &["report", "run"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    // A date that is none is told with its place.
    bench.write("table.csv", text.replacen("02.02.2001", "30.02.2001", 1));
    let train = [&["train", "problem.toml", "--out", "other"], QUICK].concat();
    bench.refuse(&train, &["row 2 (line 3), column `seen`", "`30.02.2001` is not a date such as 31.05.2024"]);
    // Training and test rows only: some of the training rows validate.
    bench.write("table.csv", text.replace(",val,", ",train,"));
    let (out, toml) = bench.init(&["table.csv", "--target", "outcome"], "");
    assert!(out.contains("192 training, 0 validation and 48 test rows"), "{out}");
    assert!(toml.contains("# none validate"), "{toml}");
    train_quickly(&bench.0.0, &["problem.toml", "--out", "third"]);
}

/// Where one class is rare, rows of it count more and F1 is what is judged by, from the draft to the trained problem.
#[test]
fn rare_classes_count_more() {
    let bench = Bench::new("rare");
    let mut text = String::from("height,colour,outcome\n");
    for row in 0..200 {
        let rare = row % 10 == 0;
        let height = if rare { 100 + row % 7 } else { row % 53 };
        let _ =
            writeln!(text, "{height},{},{}", ["red", "green"][row % 2], ["usual", "rare"][usize::from(rare)]);
    }
    bench.write("table.csv", text);
    let (_, problem) = bench.init(&["table.csv", "--target", "outcome"], "");
    assert!(
        problem.contains("\nweights = \"root\"  #") && problem.contains("\nmetric = \"macro_f1\""),
        "{problem}"
    );
    let schema = Schema::load(bench.0.0.join("problem.toml")).expect("reads");
    let table = TableReader::open(bench.0.0.join("table.csv")).expect("opens");
    let weights = prepare(table, &schema).expect("prepares").data.problem().class_weights().to_vec();
    // 20 rows of 200, so that one counts three times as much as a usual one, give or take what the split has of each.
    let ratio = weights[0].max(weights[1]) / weights[0].min(weights[1]);
    assert!((2.0..4.5).contains(&ratio), "{weights:?}");
}
