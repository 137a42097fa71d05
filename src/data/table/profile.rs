//! A look at a table, row by row: what its columns seem to be. Memory does not grow with the rows.

use super::counts::{Counts, MOST_WORDS};
use super::cut::{Cut, NumberTarget, number_target};
use super::guess::{Guess, folds, guess};
use super::reader::{Cells, TableReader};
use super::schema::{MOST_CLASSES, missing_words};
use crate::error::{Error, Result};

/// Rows that are kept to look for ids and leaks, at most.
const SAMPLE_ROWS: usize = 10_000;
/// Cells that are kept for that, at most.
const SAMPLE_CELLS: usize = 4_000_000;
/// Of a kept cell, so many bytes.
const SAMPLE_BYTES: usize = 64;

/// What a table seems to be.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its rows.
    pub rows: u64,
    /// The target's classes and how many rows each has, the most frequent first; ranges in their order. Of ranges that
    /// the training rows will decide, about so many.
    pub classes: Vec<(String, u64)>,
    /// What the target is if it is a number: the classes are ranges of it.
    pub number: Option<NumberTarget>,
    /// Rows without a class.
    pub unlabelled: u64,
    /// The column that says which rows train, validate and test, and how many of each.
    pub split: Option<(String, [u64; 3])>,
    /// All other columns.
    pub columns: Vec<Guess>,
}

impl Profile {
    /// Whether one class is more than 2.5 times as frequent as another.
    pub fn is_imbalanced(&self) -> bool {
        let counts = self.classes.iter().map(|(_, count)| *count as f64);
        counts.clone().fold(0.0, f64::max) > 2.5 * counts.fold(f64::INFINITY, f64::min)
    }
}

/// Looks at a whole table. A target of many different numbers is taken for a number.
///
/// # Errors
/// The table cannot be read, has no rows, or has a target that cannot be one.
pub fn profile(table: TableReader, target: &str) -> Result<Profile> {
    profile_cut(table, target, None)
}

/// The same, with how to cut a target that is a number.
///
/// # Errors
/// As [`profile`], or the target cannot be cut so.
pub fn profile_cut(mut table: TableReader, target: &str, cut: Option<Cut>) -> Result<Profile> {
    let at = table.column(target)?;
    let path = table.path().to_path_buf();
    let (header, semicolons) = (table.header().to_vec(), table.has_semicolons());
    let missing = missing_words();
    let Read { rows, counts, sample } = read(&mut table, &missing)?;
    if rows == 0 {
        return Err(Error::table(&path, "there are no rows below the header"));
    }
    let is_missing = |cell: &str| missing.iter().any(|word| word == cell);
    let answers: Vec<&str> = sample.iter().map(|row| &*row[at]).filter(|cell| !is_missing(cell)).collect();
    let present = rows - counts[at].missing;
    let number = number_target(target, &counts[at], present, semicolons, &answers, cut)
        .map_err(|error| error.at(&path))?;
    let classes = match &number {
        Some(number) => in_ranges(number, &answers, present),
        None => classes(target, &counts[at]).map_err(|error| error.at(path))?,
    };
    // What gives a number away is what gives its range away.
    let names = number.as_ref().map_or_else(Vec::new, |number| number.ranges.names());
    let label = |cell: &'_ str| number.as_ref().and_then(|number| number.ranges.of_cell(cell).ok());
    let labels: Vec<&str> = sample
        .iter()
        .map(|row| {
            label(&row[at]).and_then(|range| names.get(range as usize)).map_or(&*row[at], String::as_str)
        })
        .collect();
    let split = (0..header.len())
        .filter(|&column| column != at)
        .find_map(|column| Some((header[column].clone(), folds(&counts[column])?)));
    let others = (0..header.len())
        .filter(|&column| column != at && split.as_ref().is_none_or(|(name, _)| *name != header[column]));
    let columns = others.map(|column| {
        guess(&header[column], &counts[column], rows, semicolons, target, || {
            let cells = sample.iter().map(|row| &*row[column]).zip(labels.iter().copied());
            cells.filter(|(cell, _)| !is_missing(cell)).collect()
        })
    });
    let columns = columns.collect();
    Ok(Profile { rows, classes, number, unlabelled: counts[at].missing, split, columns })
}

/// Some rows of a table, and the counts of all.
struct Read {
    rows: u64,
    counts: Vec<Counts>,
    sample: Vec<Vec<Box<str>>>,
}

fn read(table: &mut TableReader, missing: &[String]) -> Result<Read> {
    let columns = table.header().len();
    let mut counts: Vec<Counts> = (0..columns).map(|_| Counts::default()).collect();
    // Rows by reservoir sampling: every row has the same chance to be kept.
    let keep = SAMPLE_ROWS.min(SAMPLE_CELLS / columns).max(1);
    let mut sample: Vec<Vec<Box<str>>> = Vec::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut rows = 0;
    let mut cells = Cells::default();
    while table.next(&mut cells)? {
        rows += 1;
        for (counts, cell) in counts.iter_mut().zip(cells.cells.iter()) {
            counts.add(cell, cells.row, missing);
        }
        let short = || {
            let cut = |cell: &str| cell.chars().take(SAMPLE_BYTES).collect::<String>().into_boxed_str();
            cells.cells.iter().map(|cell| cut(cell.trim())).collect::<Vec<_>>()
        };
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if sample.len() < keep {
            sample.push(short());
        } else if let Some(place) = sample.get_mut((random % rows) as usize) {
            *place = short();
        }
    }
    Ok(Read { rows, counts, sample })
}

/// The ranges of a number, and about how many rows each has.
fn in_ranges(number: &NumberTarget, sample: &[&str], present: u64) -> Vec<(String, u64)> {
    let mut counts = vec![0u64; number.ranges.edges.len() + 1];
    for range in sample.iter().filter_map(|cell| number.ranges.of_cell(cell).ok()) {
        counts[range as usize] += 1;
    }
    let all = (sample.len() as u64).max(1);
    number.ranges.names().into_iter().zip(counts.into_iter().map(|count| count * present / all)).collect()
}

fn classes(target: &str, counts: &Counts) -> Result<Vec<(String, u64)>> {
    let fail = |what: String| Err(Error::Data(what));
    if counts.too_many || counts.words.len() > MOST_CLASSES {
        let many =
            if counts.too_many { format!("more than {MOST_WORDS}") } else { counts.words.len().to_string() };
        return fail(format!(
            "the target `{target}` has {many} different values; at most {MOST_CLASSES} classes can be predicted: is it \
             an id or text? A number is cut into ranges, with --bins or --edges"
        ));
    }
    let mut classes: Vec<(String, u64)> = counts.words.iter().map(|(w, c)| (w.clone(), *c)).collect();
    classes.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    match &classes[..] {
        [] => fail(format!("the target `{target}` has no value in any row")),
        [(only, _)] => {
            fail(format!("the target `{target}` is `{only}` in every row: there is nothing to predict"))
        }
        _ => Ok(classes),
    }
}

#[cfg(test)]
mod tests {
    use super::super::guess::Doubt;
    use super::super::schema::Kind;
    use super::*;
    use std::path::Path;

    fn of(text: String) -> Result<Profile> {
        profile(TableReader::read(Path::new("t.csv"), std::io::Cursor::new(text.into_bytes()), None)?, "y")
    }

    #[test]
    fn kinds_doubts_and_units_are_guessed() {
        let mut text = String::from("id,name,temp_c,smokes,pain,room,rate,always,never,score,y\n");
        for row in 0..200 {
            let pain = ["mild", "none", "severe"][row % 3];
            let room = ["red", "green", "blue", "attic"][row / 3 % 4];
            let class = ["well", "ill"][usize::from(row * 7 % 11 < 4)];
            let leak = if class == "ill" { 50 + row % 7 } else { row % 40 };
            let smokes = ["yes", "no"][row / 5 % 2];
            let temp = 36.0 + (row * 37 % 50) as f64 / 10.0;
            let rate = if row == 17 { "high".into() } else { format!("{}", 60 + row * 13 % 47) };
            text += &format!("{},p{row},{temp},{smokes},{pain},{room},{rate},1,,{leak},{class}\n", row + 1);
        }
        let found = of(text).expect("reads");
        assert_eq!(found.rows, 200);
        assert_eq!(found.classes.len(), 2);
        let column = |name: &str| found.columns.iter().find(|c| c.name == name).expect("there");
        assert!(matches!(column("id").doubts[..], [Doubt::Id(_)]), "{:?}", column("id"));
        assert!(matches!(column("name").doubts[..], [Doubt::Id(_)]), "{:?}", column("name"));
        assert_eq!((column("temp_c").kind, column("temp_c").unit.as_str()), (Kind::Numeric, "°C"));
        assert!(column("temp_c").doubts.is_empty(), "{:?}", column("temp_c"));
        assert_eq!(
            (column("smokes").kind, &column("smokes").values[..]),
            (Kind::Binary, &["no".to_string(), "yes".into()][..])
        );
        assert_eq!(column("pain").values, ["none", "mild", "severe"]);
        assert_eq!(column("pain").kind, Kind::Ordinal);
        assert_eq!(column("room").kind, Kind::Categorical);
        assert!(
            matches!(&column("rate").doubts[..], [Doubt::Check(text)] if text.contains("`high` in row 18"))
        );
        assert!(matches!(column("always").doubts[..], [Doubt::Constant(_)]));
        assert!(matches!(column("never").doubts[..], [Doubt::Empty]));
        assert!(matches!(column("score").doubts[..], [Doubt::Leak(_)]), "{:?}", column("score"));
    }

    #[test]
    fn a_target_must_be_one() {
        let says = |text: String, what: &str| {
            let error = of(text).expect_err("refused").to_string();
            assert!(error.contains(what), "{error}");
        };
        says("x,z\n1,2\n".into(), "no column `y`; there are `x`, `z`");
        says("x,y\n".into(), "no rows");
        says("x,y\n1,a\n2,a\n".into(), "is `a` in every row");
        says("x,y\n1,\n2,\n".into(), "no value in any row");
        let many: String = (0..5000).map(|i| format!("1,c{i}\n")).collect();
        says(format!("x,y\n{many}"), "more than 1000 different values");
    }
}
