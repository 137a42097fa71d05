//! A look at a table, row by row: what its columns seem to be. Memory does not grow with the rows.

use super::reader::{Cells, TableReader, UNNAMED};
use super::schema::{Kind, MOST_CLASSES, missing_words};
use crate::data::encoding::{canonical, in_order};
use crate::error::{Error, Result};
use std::collections::HashMap;

/// Different words of a column that are counted; beyond that it is "many".
const MOST_WORDS: usize = 1000;
/// Rows that are kept to look for ids and leaks, at most.
const SAMPLE_ROWS: usize = 10_000;
/// Cells that are kept for that, at most.
const SAMPLE_CELLS: usize = 4_000_000;
/// Of a kept cell, so many bytes.
const SAMPLE_BYTES: usize = 64;
/// Levels that people use in order.
const ORDERS: [&[&str]; 7] = [
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
    /// Its unit, by its name.
    pub unit: String,
    /// Share of missing cells.
    pub missing: f64,
    /// Smallest and largest number.
    pub range: Option<[f64; 2]>,
    /// How many different values, if not too many to count.
    pub different: Option<usize>,
    /// What speaks against it.
    pub doubts: Vec<Doubt>,
}

/// What a table seems to be.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its rows.
    pub rows: u64,
    /// The target's classes and how many rows each has, the most frequent first.
    pub classes: Vec<(String, u64)>,
    /// Rows without a class.
    pub unlabelled: u64,
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

/// Counts of a column.
#[derive(Default)]
struct Counts {
    missing: u64,
    numbers: u64,
    whole: u64,
    range: Option<[f64; 2]>,
    first_word: Option<(u64, String)>,
    words: HashMap<String, u64>,
    too_many: bool,
}

impl Counts {
    fn add(&mut self, cell: &str, row: u64, missing: &[String]) {
        let word = canonical(cell);
        if missing.iter().any(|m| m == word) {
            self.missing += 1;
            return;
        }
        // Not `number`, which puts into words what is wrong: most cells of a table may be words.
        match word.parse::<f64>().ok().filter(|value| (*value as f32).is_finite()) {
            Some(value) => {
                self.numbers += 1;
                self.whole += u64::from(value.fract() == 0.0);
                let [low, high] = self.range.unwrap_or([value, value]);
                self.range = Some([low.min(value), high.max(value)]);
            }
            None if self.first_word.is_none() => {
                self.first_word = Some((row, word.chars().take(40).collect()));
            }
            None => {}
        }
        if let Some(count) = self.words.get_mut(word) {
            *count += 1;
        } else if self.words.len() < MOST_WORDS && !self.too_many {
            self.words.insert(word.chars().take(200).collect(), 1);
        } else {
            self.too_many = true;
            self.words.clear();
        }
    }
}

/// Looks at a whole table.
///
/// # Errors
/// The table cannot be read, has no rows, or has a target that cannot be one.
pub fn profile(mut table: TableReader, target: &str) -> Result<Profile> {
    let at = table.column(target)?;
    let path = table.path().to_path_buf();
    let header = table.header().to_vec();
    let missing = missing_words();
    let mut counts: Vec<Counts> = header.iter().map(|_| Counts::default()).collect();
    // Rows by reservoir sampling: every row has the same chance to be kept.
    let keep = SAMPLE_ROWS.min(SAMPLE_CELLS / header.len()).max(1);
    let mut sample: Vec<Vec<Box<str>>> = Vec::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut rows = 0;
    let mut cells = Cells::default();
    while table.next(&mut cells)? {
        rows += 1;
        for (counts, cell) in counts.iter_mut().zip(cells.cells.iter()) {
            counts.add(cell, cells.row, &missing);
        }
        let short = || {
            let cut = |cell: &str| cell.chars().take(SAMPLE_BYTES).collect::<String>().into_boxed_str();
            cells.cells.iter().map(|cell| cut(canonical(cell))).collect::<Vec<_>>()
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
    if rows == 0 {
        return Err(Error::table(&path, "there are no rows below the header"));
    }
    let classes = classes(target, &counts[at]).map_err(|error| error.at(path))?;
    let columns = (0..header.len()).filter(|&column| column != at).map(|column| {
        guess(&header[column], &counts[column], rows, |doubts| {
            let pairs: Vec<(&str, &str)> = sample
                .iter()
                .map(|row| (&*row[column], &*row[at]))
                .filter(|(cell, _)| !missing.iter().any(|word| word == cell))
                .collect();
            doubts.extend(id(&header[column], &pairs, &counts[column]));
            doubts.extend(leak(&pairs, target));
        })
    });
    Ok(Profile { rows, classes, unlabelled: counts[at].missing, columns: columns.collect() })
}

fn classes(target: &str, counts: &Counts) -> Result<Vec<(String, u64)>> {
    let fail = |what: String| Err(Error::Data(what));
    if counts.too_many || counts.words.len() > MOST_CLASSES {
        let many =
            if counts.too_many { format!("more than {MOST_WORDS}") } else { counts.words.len().to_string() };
        return fail(format!(
            "the target `{target}` has {many} different values; at most {MOST_CLASSES} classes can be predicted: is it \
             a number or an id? A number can be cut into ranges first"
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

fn guess(name: &str, counts: &Counts, rows: u64, look: impl FnOnce(&mut Vec<Doubt>)) -> Guess {
    let present = rows - counts.missing;
    let mut words: Vec<String> = counts.words.keys().cloned().collect();
    words.sort_by(|a, b| in_order(a, b));
    let mut doubts = Vec::new();
    let numeric = counts.numbers as f64 >= 0.9 * present as f64 && present > 0;
    let ordered = order(&words);
    let (kind, values) = if present == 0 {
        doubts.push(Doubt::Empty);
        (Kind::Categorical, Vec::new())
    } else if words.len() == 1 && counts.missing == 0 {
        doubts.push(Doubt::Constant(words[0].clone()));
        (Kind::Categorical, words.clone())
    } else if words.len() == 2 {
        (Kind::Binary, binary(words.clone()))
    } else if numeric {
        if let Some((row, word)) = &counts.first_word {
            let others = present - counts.numbers;
            doubts.push(Doubt::Check(format!(
                "{others} cell(s) are no numbers, first `{word}` in row {row}: if that means \"not known\", add it to \
                 `missing` above"
            )));
        } else if counts.whole == present && !counts.too_many && words.len() <= 10 {
            doubts.push(Doubt::Check(format!(
                "only {} whole numbers: if they are codes without an order, kind = \"categorical\"",
                words.len()
            )));
        }
        (Kind::Numeric, Vec::new())
    } else if let Some(levels) = ordered {
        doubts.push(Doubt::Check("is the order right? Lowest first".into()));
        (Kind::Ordinal, levels)
    } else {
        if !counts.too_many && words.len() > 30 {
            doubts.push(Doubt::Check(format!("{} different words, a column each", words.len())));
        }
        (Kind::Categorical, words.clone())
    };
    if doubts.iter().all(|doubt| !doubt.is_out()) {
        look(&mut doubts);
    }
    if doubts.iter().any(Doubt::is_out) {
        // What is left out needs no advice on how to use it.
        doubts.retain(Doubt::is_out);
    }
    Guess {
        name: name.to_string(),
        kind,
        values,
        unit: unit(name),
        missing: counts.missing as f64 / rows as f64,
        range: counts.range.filter(|_| numeric),
        different: (!counts.too_many).then_some(words.len()),
        doubts,
    }
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
    let order = ORDERS.iter().find(|order| {
        words.len() >= 3 && words.iter().all(|word| order.contains(&word.to_lowercase().as_str()))
    })?;
    let mut words = words.to_vec();
    words.sort_by_key(|word| order.iter().position(|level| *level == word.to_lowercase()));
    Some(words)
}

/// Whether a column only tells rows apart.
fn id(name: &str, pairs: &[(&str, &str)], counts: &Counts) -> Option<Doubt> {
    if name == UNNAMED {
        return Some(Doubt::Id("it had no name: an index, as pandas and R write it".into()));
    }
    let different: std::collections::HashSet<&str> = pairs.iter().map(|(cell, _)| *cell).collect();
    let all_differ = pairs.len() >= 20 && different.len() == pairs.len();
    let is_text = counts.numbers == 0;
    if counts.too_many && is_text {
        return Some(Doubt::Id(format!(
            "more than {MOST_WORDS} different words: an id, a date or free text"
        )));
    }
    if !all_differ || counts.whole < counts.numbers {
        return None;
    }
    let lower = name.to_lowercase();
    let named = ["id", "nr", "no", "number", "index", "key", "code", "seqn", "uuid"].iter().any(|word| {
        lower.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word) || lower.ends_with("_id")
    });
    let in_order = pairs
        .windows(2)
        .all(|pair| matches!((pair[0].0.parse::<f64>(), pair[1].0.parse::<f64>()), (Ok(a), Ok(b)) if a < b));
    if is_text || named || in_order {
        return Some(Doubt::Id("every row has another value: this looks like an id".into()));
    }
    Some(Doubt::Check("every row has another whole number: if it is an id, ignore = true".into()))
}

/// Whether a column alone gives the target away: by its words, or by ranges of its numbers.
fn leak(pairs: &[(&str, &str)], target: &str) -> Option<Doubt> {
    let classes: std::collections::HashSet<&str> = pairs.iter().map(|(_, class)| *class).collect();
    if pairs.len() < 20 || classes.len() < 2 {
        return None;
    }
    let mut class_of: HashMap<&str, &str> = HashMap::new();
    let by_word = pairs.iter().all(|(cell, class)| *class_of.entry(cell).or_insert(class) == *class);
    if by_word && class_of.len() * 4 <= pairs.len() {
        return Some(Doubt::Leak(format!("each of its values goes with one value of `{target}`")));
    }
    let mut numbers: Vec<(f64, &str)> =
        pairs.iter().filter_map(|(cell, class)| Some((cell.parse().ok()?, *class))).collect();
    if numbers.len() < pairs.len() || !by_word {
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

#[cfg(test)]
mod tests {
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
        let many: String = (0..5000).map(|i| format!("1,{i}\n")).collect();
        says(format!("x,y\n{many}"), "more than 1000 different values");
    }
}
