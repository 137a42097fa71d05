//! Writes the first `problem.toml`, with its guesses and doubts as comments: it is meant to be edited.

use super::cut::{Cut, NumberTarget};
use super::guess::Guess;
use super::prices::Price;
use super::profile::Profile;
use super::schema::{Kind, Preprocessing, Split, missing_words};
use crate::data::encoding::in_order;
use crate::data::numbers::Decimal;
use std::fmt::Write;
use std::path::Path;

/// Words shown of a long list.
const SHOWN: usize = 12;

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

fn list(words: &[String]) -> String {
    format!("[{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
}

/// The text of a `problem.toml` for a table that was looked at, with the prices of its columns, as far as
/// there are any.
pub fn draft(table: &Path, target: &str, found: &Profile, prices: &[Option<Price>]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_table(&mut text, table);
    let _ = write_target(&mut text, target, found);
    let _ = write_split(&mut text, found);
    let unpriced = Price { cost: 1.0, ..Price::default() };
    for (index, guess) in found.columns.iter().enumerate() {
        let price = prices.get(index).and_then(Option::as_ref);
        let _ = write_feature(&mut text, guess, price.unwrap_or(&unpriced));
    }
    let mut head = String::new();
    let _ = write_head(&mut head, found.rows, checks(&text));
    head + &text
}

/// How many places of a draft need a look.
pub fn checks(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with(CHECK)).count()
}

/// What such a place begins with.
const CHECK: &str = "# CHECK: ";

/// A line about what a person has to look at. A line break in a word must not end the comment.
fn check(out: &mut String, what: &str) -> std::fmt::Result {
    writeln!(out, "{CHECK}{}", what.replace(char::is_control, " "))
}

fn write_head(out: &mut String, rows: u64, checks: usize) -> std::fmt::Result {
    writeln!(
        out,
        "# What can be asked, what it costs, and what is to be predicted. Written by `querent init` from"
    )?;
    writeln!(
        out,
        "# {rows} rows and meant to be edited: put in your prices, then `querent train` this file."
    )?;
    if checks > 0 {
        writeln!(out, "# {checks} place(s) need a look: search for CHECK.")?;
    }
    writeln!(out, "# docs/problem-toml.md explains every key.\n")
}

fn write_table(out: &mut String, table: &Path) -> std::fmt::Result {
    let name = table.to_string_lossy();
    writeln!(out, "[table]")?;
    if name == "-" {
        check(out, "the table came from standard input: write the name of its file here")?;
    }
    writeln!(out, "path = {}  # relative to this file", quoted(&name))?;
    writeln!(out, "missing = {}  # cells that mean: not known\n", list(&missing_words()))
}

fn write_target(out: &mut String, target: &str, found: &Profile) -> std::fmt::Result {
    writeln!(out, "[target]")?;
    writeln!(out, "column = {}", quoted(target))?;
    match &found.number {
        Some(number) => write_ranges(out, number)?,
        None => {
            let mut classes: Vec<String> = found.classes.iter().map(|(class, _)| class.clone()).collect();
            classes.sort_by(|a, b| in_order(a, b));
            writeln!(out, "classes = {}", list(&classes))?;
        }
    }
    let counts: Vec<String> = match &found.number {
        Some(_) => {
            found.classes.iter().take(SHOWN).map(|(class, count)| format!("{class}: {count}")).collect()
        }
        None => found.classes.iter().take(SHOWN).map(|(class, count)| format!("{class} {count}")).collect(),
    };
    // A line break in a class must not end the comment.
    writeln!(out, "# rows: {}", counts.join(", ").replace(char::is_control, " "))?;
    if let Some((class, count)) = found.classes.iter().find(|(_, count)| *count < 3) {
        let advice =
            if found.number.is_some() { "move the edges" } else { "put it into `drop`, or merge it" };
        check(out, &format!("class `{class}` has {count} row(s), at least 3 are needed: {advice}"))?;
    }
    let (weights, metric) = if found.is_imbalanced() { ("root", "macro_f1") } else { ("none", "accuracy") };
    writeln!(
        out,
        "weights = \"{weights}\"  # \"none\", \"root\" (rare classes count more), \"balanced\" (all alike), or a list"
    )?;
    writeln!(out, "metric = \"{metric}\"  # \"accuracy\" or \"macro_f1\"")?;
    if found.unlabelled > 0 {
        check(out, &format!("{} rows have no class: they are left out", found.unlabelled))?;
        writeln!(out, "drop = {}\n", list(&missing_words()))
    } else {
        writeln!(out, "drop = []  # rows of these classes are left out\n")
    }
}

/// How a target that is a number is cut.
fn write_ranges(out: &mut String, number: &NumberTarget) -> std::fmt::Result {
    let described = number.described();
    if number.guessed {
        check(out, &format!("a number ({described}): the ranges that it is cut into are its classes"))?;
    } else {
        writeln!(out, "# a number ({described}): the ranges that it is cut into are its classes")?;
    }
    let edges = format!("{:?}", number.ranges.edges);
    match &number.cut {
        Cut::Bins(bins) => writeln!(
            out,
            "bins = {bins}  # so many, with about as many training rows each; or where to cut: edges = {edges}"
        )?,
        _ => writeln!(
            out,
            "edges = {edges}  # each belongs to the range above it; or bins = 4: as many rows in each"
        )?,
    }
    if let Some(decimal) = number.decimal {
        writeln!(out, "decimal = {}  # what stands before the decimals", mark(decimal))?;
    }
    if let Some((word, row, count)) = &number.other {
        check(
            out,
            &format!("{count} cell(s) are no numbers, first `{word}` in row {row}: add them to `drop` below"),
        )?;
    }
    number.sentinels.iter().try_for_each(|what| check(out, &what.replace("`missing` above", "`drop` below")))
}

fn mark(decimal: Decimal) -> &'static str {
    match decimal {
        Decimal::Point => "\".\"",
        Decimal::Comma => "\",\"",
    }
}

fn write_split(out: &mut String, found: &Profile) -> std::fmt::Result {
    if let Some((column, [train, validation, test])) = &found.split {
        writeln!(out, "[split]  # {train} rows train, {validation} validate, {test} test")?;
        writeln!(out, "column = {}  # says so for each row", quoted(column))?;
        if *validation == 0 {
            writeln!(out, "# none validate: a part of the training rows of each class will")?;
        }
        writeln!(out)?;
        return write_preprocessing(out);
    }
    let Split { train, validation, test, seed, .. } = Split::default();
    writeln!(out, "[split]  # by class, at random; or: column = \"a column of train, validation and test\"")?;
    writeln!(out, "train = {train}\nvalidation = {validation}\ntest = {test}\nseed = {seed}\n")?;
    write_preprocessing(out)
}

fn write_preprocessing(out: &mut String) -> std::fmt::Result {
    let Preprocessing { winsorize: [low, high], standardize, .. } = Preprocessing::default();
    writeln!(out, "[preprocessing]")?;
    writeln!(
        out,
        "winsorize = [{low}, {high}]  # numbers are clipped to these quantiles of the training rows"
    )?;
    writeln!(out, "standardize = {standardize}  # then scaled to mean 0 and deviation 1")?;
    writeln!(
        out,
        "missing = \"flag\"  # the training mean, and a flag that it is missing; or \"impute\": no flag\n"
    )?;
    writeln!(
        out,
        "# For each column: its kind (numeric, binary, categorical, ordinal, date), what it costs to ask for it,"
    )?;
    writeln!(
        out,
        "# its unit, and known = true if it is there before asking starts. Columns that come together (a"
    )?;
    writeln!(out, "# panel of blood values) have the same group and one cost.")
}

fn write_feature(out: &mut String, guess: &Guess, price: &Price) -> std::fmt::Result {
    let is_out = guess.is_out();
    writeln!(out, "\n[[feature]]")?;
    writeln!(out, "name = {}", quoted(&guess.name))?;
    let kind = match guess.kind {
        Kind::Numeric => "numeric",
        Kind::Binary => "binary",
        Kind::Categorical => "categorical",
        Kind::Ordinal => "ordinal",
        Kind::Date => "date",
    };
    let seen = guess.seen();
    let comment = if seen.is_empty() { seen } else { format!("  # {seen}") };
    writeln!(out, "kind = \"{kind}\"{comment}")?;
    if let Some(decimal) = guess.decimal {
        writeln!(out, "decimal = {}  # what stands before the decimals", mark(decimal))?;
    }
    if let Some(order) = guess.dates {
        let order = format!("{order:?}").to_lowercase();
        writeln!(out, "dates = \"{order}\"  # the order of year, month and day")?;
    }
    match guess.kind {
        Kind::Binary | Kind::Ordinal => writeln!(out, "values = {}", list(&guess.values))?,
        Kind::Categorical if !is_out => {
            let shown: Vec<&str> = guess.values.iter().take(SHOWN).map(String::as_str).collect();
            let more = if guess.values.len() > SHOWN { ", …" } else { "" };
            // A line break in a word must not end the comment.
            let shown = shown.join(", ").replace(char::is_control, " ");
            writeln!(out, "# values: {shown}{more}")?;
        }
        _ => {}
    }
    for doubt in &guess.doubts {
        check(out, &doubt.text())?;
    }
    if is_out {
        writeln!(out, "ignore = true")?;
    }
    writeln!(out, "group = {}", quoted(price.group.as_ref().unwrap_or(&guess.name)))?;
    writeln!(out, "cost = {:?}", price.cost)?;
    writeln!(out, "unit = {}", quoted(price.unit.as_ref().unwrap_or(&guess.unit)))?;
    writeln!(out, "known = {}", price.known)
}

#[cfg(test)]
mod tests {
    use super::super::{Schema, TableReader, profile};
    use super::*;

    #[test]
    fn what_is_drafted_can_be_read() {
        let mut text = String::from("\"a \"\"b\"\"\",\"line\nbreak\",c,y\n");
        for row in 0..60 {
            text += &format!("{},\"w\n{}\",{},\"k\t{}\"\n", row * 31 % 17, row % 4, row % 2, row % 3);
        }
        let table = TableReader::read(Path::new("t.csv"), std::io::Cursor::new(text.into_bytes()), None);
        let found = profile(table.expect("reads"), "y").expect("profiles");
        let drafted = draft(Path::new("dir \"x\"\\t.csv"), "y", &found, &[]);
        let schema = Schema::parse(&drafted).unwrap_or_else(|error| panic!("{error}\n{drafted}"));
        assert_eq!(schema.table.path, Path::new("dir \"x\"\\t.csv"));
        assert_eq!(schema.target.classes, ["k\t0", "k\t1", "k\t2"]);
        assert_eq!(schema.features.len(), 3);
        assert_eq!(schema.features[0].name, "a \"b\"");
        assert_eq!(schema.preprocessing, Preprocessing::default());
        assert_eq!(schema.split, Split::default());
    }
}
