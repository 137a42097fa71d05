//! What a column seems to be, by its counts, and what speaks against using it.

use super::counts::{Counts, MOST_WORDS, Numbers};
use super::reader::UNNAMED;
use super::schema::Kind;
use super::split::fold;
use crate::data::dates::{self, Order};
use crate::data::encoding::{in_order, short};
use crate::data::numbers::{Decimal, number_in, sign};
use std::collections::{HashMap, HashSet};

/// Levels that people use in order.
const LEVELS: [&[&str]; 7] = [
    &["none", "trace", "mild", "moderate", "severe", "extreme"],
    &["never", "rarely", "sometimes", "often", "always"],
    &["very low", "low", "medium", "high", "very high"],
    &["low", "normal", "high"],
    &["poor", "fair", "good", "very good", "excellent"],
    &["xs", "small", "medium", "large", "xl"],
    &["no", "former", "current"],
];

/// Why a column should not be used, or should be looked at.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// No cell has a value.
    Empty,
    /// All cells have the same value.
    Constant(String),
    /// It tells rows apart, nothing else.
    Id(String),
    /// It determines the target.
    Leak(String),
    /// To be looked at by a person.
    Check(String),
}

impl Doubt {
    /// Whether the column is better left out.
    pub fn is_out(&self) -> bool {
        !matches!(self, Doubt::Check(_))
    }

    /// What there is to look at, in words.
    pub fn text(&self) -> String {
        match self {
            Doubt::Empty => "no row has a value".to_string(),
            Doubt::Constant(value) => format!("always `{value}`"),
            Doubt::Id(why) => why.clone(),
            Doubt::Leak(why) => format!("{why}. Is it only known afterwards? If not, ignore = false"),
            Doubt::Check(what) => what.clone(),
        }
    }
}

/// What a column seems to be.
#[derive(Clone, Debug)]
pub struct Guess {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Its words, where the kind needs them; the first ones of a categorical column.
    pub values: Vec<String>,
    /// Its unit, by its name or its cells.
    pub unit: String,
    /// Share of missing cells.
    pub missing: f64,
    /// Smallest and largest number.
    pub range: Option<[f64; 2]>,
    /// How many different values, if not too many to count.
    pub different: Option<usize>,
    /// How its numbers are written, if they are not plain.
    pub decimal: Option<Decimal>,
    /// In which order its dates have year, month and day.
    pub dates: Option<Order>,
    /// What speaks against it.
    pub doubts: Vec<Doubt>,
}

impl Guess {
    /// Whether it is better left out.
    pub fn is_out(&self) -> bool {
        self.doubts.iter().any(Doubt::is_out)
    }

    /// What its cells are like, in words.
    pub fn seen(&self) -> String {
        let mut seen = Vec::new();
        if let Some([low, high]) = self.range {
            seen.push(format!("{} to {}", short(low), short(high)));
        }
        match self.different {
            Some(count) if self.kind != Kind::Binary => seen.push(format!("{count} different")),
            None => seen.push("many different".into()),
            _ => {}
        }
        if self.missing > 0.0 {
            seen.push(format!("{}% missing", short(100.0 * self.missing)));
        }
        seen.join(", ")
    }
}

/// Some rows' cells of a column that are not missing, each with the row's class.
pub(super) type Pairs<'a> = Vec<(&'a str, &'a str)>;

/// Guesses what a column is. `semicolons`: what separates the table's cells.
pub(super) fn guess<'a>(
    name: &str,
    counts: &Counts,
    rows: u64,
    semicolons: bool,
    target: &str,
    sample: impl FnOnce() -> Pairs<'a>,
) -> Guess {
    let present = rows - counts.missing;
    let (decimal, numbers) = counts.numbers(semicolons);
    let mut words: Vec<String> = counts.words.keys().cloned().collect();
    words.sort_by(|a, b| in_order(a, b));
    let mut doubts = Vec::new();
    let (kind, values) = kind(counts, numbers, present, &words, &mut doubts);
    let (order, _, unclear) = counts.date_order();
    match kind {
        Kind::Numeric => check_numbers(counts, decimal, numbers, present, &mut doubts),
        Kind::Date => doubts.push(Doubt::Check(format!(
            "dates: year, month, day of week and age in days{}; if they only say when a row was written down, ignore = true",
            if unclear { ". Day and month may be the other way round: dates = \"dmy\" or \"mdy\"" } else { "" }
        ))),
        _ => {}
    }
    if doubts.iter().all(|doubt| !doubt.is_out()) {
        let pairs = sample();
        let value = |cell: &str| match kind {
            Kind::Date => dates::parse(cell, order).map(|days| days as f64),
            _ => number_in(cell, decimal).ok(),
        };
        doubts.extend(id(name, kind, &pairs, counts, numbers));
        doubts.extend(leak(&pairs, target, value));
    }
    if doubts.iter().any(Doubt::is_out) {
        // What is left out needs no advice on how to use it.
        doubts.retain(Doubt::is_out);
    }
    let numeric = kind == Kind::Numeric;
    let unit = unit(name);
    let signed = || counts.first_odd().filter(|_| numeric).and_then(sign).unwrap_or_default();
    Guess {
        name: name.to_string(),
        kind,
        values,
        unit: if unit.is_empty() { signed() } else { unit },
        missing: counts.missing as f64 / rows as f64,
        range: numbers.range.filter(|_| numeric),
        different: (!counts.too_many).then_some(words.len()),
        decimal: decimal.filter(|_| numeric),
        dates: (kind == Kind::Date).then_some(order),
        doubts,
    }
}

/// The kind of a column, and the words that it needs.
fn kind(
    counts: &Counts,
    numbers: &Numbers,
    present: u64,
    words: &[String],
    doubts: &mut Vec<Doubt>,
) -> (Kind, Vec<String>) {
    let share = |count: u64| count as f64 / present.max(1) as f64;
    // So many words are no categories: if half are numbers, the others are what is odd.
    let numeric = share(numbers.count) >= if counts.too_many { 0.5 } else { 0.9 };
    if present == 0 {
        doubts.push(Doubt::Empty);
        (Kind::Categorical, Vec::new())
    } else if words.len() == 1 && counts.missing == 0 {
        doubts.push(Doubt::Constant(words[0].clone()));
        (Kind::Categorical, words.to_vec())
    } else if words.len() == 2 {
        (Kind::Binary, binary(words.to_vec()))
    } else if numeric {
        (Kind::Numeric, Vec::new())
    } else if share(counts.date_order().1) >= 0.9 {
        (Kind::Date, Vec::new())
    } else if let Some(levels) = order(words) {
        doubts.push(Doubt::Check("is the order right? Lowest first".into()));
        (Kind::Ordinal, levels)
    } else {
        if !counts.too_many && words.len() > 30 {
            doubts.push(Doubt::Check(format!("{} different words, a column each", words.len())));
        }
        (Kind::Categorical, words.to_vec())
    }
}

/// What a person has to know about a column of numbers.
fn check_numbers(
    counts: &Counts,
    decimal: Option<Decimal>,
    numbers: &Numbers,
    present: u64,
    doubts: &mut Vec<Doubt>,
) {
    let mut check = |what: String| doubts.push(Doubt::Check(what));
    if let (Some(decimal), Some(first)) = (decimal, counts.first_odd())
        && let Ok(value) = number_in(first, Some(decimal))
    {
        check(format!(
            "`{first}` is read as {value}: `decimal` says what stands before the decimals, \".\" or \",\""
        ));
    }
    if let Some((row, word)) = &numbers.first_other {
        check(format!(
            "{} cell(s) are no numbers, first `{word}` in row {row}: if that means \"not known\", add it to `missing` above",
            present - numbers.count
        ));
    } else if numbers.whole == numbers.count && !counts.too_many && counts.words.len() <= 10 {
        check(format!(
            "only {} whole numbers: if they are codes without an order, kind = \"categorical\"",
            counts.words.len()
        ));
    }
    counts.sentinel_doubts().into_iter().for_each(check);
}

/// Whether a column says which rows train, validate and test, and how many it has of each.
pub(super) fn folds(counts: &Counts) -> Option<[u64; 3]> {
    if counts.missing > 0 || counts.too_many || counts.words.is_empty() {
        return None;
    }
    let mut rows = [0; 3];
    for (word, count) in &counts.words {
        rows[usize::from(fold(word)?)] += count;
    }
    // Rows to train on, and others.
    (rows[0] > 0 && rows[1] + rows[2] > 0).then_some(rows)
}

/// No before yes, and the like; otherwise as sorted.
fn binary(mut words: Vec<String>) -> Vec<String> {
    const SECOND: [&str; 8] = ["yes", "true", "positive", "present", "high", "y", "t", "on"];
    if SECOND.contains(&words[0].to_lowercase().as_str())
        && !SECOND.contains(&words[1].to_lowercase().as_str())
    {
        words.reverse();
    }
    words
}

/// The words in an order that people use, if they are of one.
fn order(words: &[String]) -> Option<Vec<String>> {
    let order = LEVELS.iter().find(|order| {
        words.len() >= 3 && words.iter().all(|word| order.contains(&word.to_lowercase().as_str()))
    })?;
    let mut words = words.to_vec();
    words.sort_by_key(|word| order.iter().position(|level| *level == word.to_lowercase()));
    Some(words)
}

/// Whether a column only tells rows apart.
fn id(name: &str, kind: Kind, pairs: &Pairs<'_>, counts: &Counts, numbers: &Numbers) -> Option<Doubt> {
    if name == UNNAMED {
        return Some(Doubt::Id("it had no name: an index, as pandas and R write it".into()));
    }
    let different = pairs.iter().map(|(cell, _)| *cell).collect::<HashSet<&str>>().len();
    let all_differ = pairs.len() >= 20 && different == pairs.len();
    if kind == Kind::Date {
        return None;
    }
    if kind != Kind::Numeric {
        return if counts.too_many {
            Some(Doubt::Id(format!("more than {MOST_WORDS} different words: an id or free text")))
        } else if all_differ {
            Some(Doubt::Id("every row has another value: this looks like an id".into()))
        } else if pairs.len() >= 50 && different * 2 > pairs.len() {
            Some(Doubt::Id(format!(
                "{different} different words in {} rows: free text or an id",
                pairs.len()
            )))
        } else {
            None
        };
    }
    if !all_differ || numbers.whole < numbers.count {
        return None;
    }
    let lower = name.to_lowercase();
    let named = ["id", "nr", "no", "number", "index", "key", "code", "seqn", "uuid"].iter().any(|word| {
        lower.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word) || lower.ends_with("_id")
    });
    let in_order = pairs
        .windows(2)
        .all(|pair| matches!((pair[0].0.parse::<f64>(), pair[1].0.parse::<f64>()), (Ok(a), Ok(b)) if a < b));
    if named || in_order {
        return Some(Doubt::Id("every row has another value: this looks like an id".into()));
    }
    Some(Doubt::Check("every row has another whole number: if it is an id, ignore = true".into()))
}

/// Whether a column alone gives the target away: by its words, or by ranges of its numbers.
fn leak(pairs: &Pairs<'_>, target: &str, value: impl Fn(&str) -> Option<f64>) -> Option<Doubt> {
    let classes: HashSet<&str> = pairs.iter().map(|(_, class)| *class).collect();
    if pairs.len() < 20 || classes.len() < 2 {
        return None;
    }
    let mut class_of: HashMap<&str, &str> = HashMap::new();
    let by_word = pairs.iter().all(|(cell, class)| *class_of.entry(cell).or_insert(class) == *class);
    if by_word && class_of.len() * 4 <= pairs.len() {
        return Some(Doubt::Leak(format!("each of its values goes with one value of `{target}`")));
    }
    if !by_word {
        return None;
    }
    let mut numbers: Vec<(f64, &str)> =
        pairs.iter().filter_map(|(cell, class)| Some((value(cell)?, *class))).collect();
    if numbers.len() < pairs.len() {
        return None;
    }
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let runs = 1 + numbers.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    (runs <= 2 * classes.len() && pairs.len() >= 10 * runs)
        .then(|| Doubt::Leak(format!("{runs} ranges of its numbers determine `{target}`")))
}
/// A unit in brackets, or one that names end with.
fn unit(name: &str) -> String {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((_, rest)) = name.rsplit_once(open)
            && let Some(unit) = rest.trim_end().strip_suffix(close)
        {
            return unit.trim().to_string();
        }
    }
    const ENDINGS: [(&str, &str); 16] = [
        ("_kg", "kg"),
        ("_g", "g"),
        ("_cm", "cm"),
        ("_mm", "mm"),
        ("_m", "m"),
        ("_mmhg", "mmHg"),
        ("_bpm", "bpm"),
        ("_c", "°C"),
        ("_years", "years"),
        ("_days", "days"),
        ("_hours", "h"),
        ("_min", "min"),
        ("_s", "s"),
        ("_pct", "%"),
        ("_percent", "%"),
        ("_mg_l", "mg/l"),
    ];
    let lower = name.to_lowercase();
    ENDINGS
        .iter()
        .find(|(ending, _)| lower.ends_with(ending))
        .map_or(String::new(), |(_, unit)| unit.to_string())
}
