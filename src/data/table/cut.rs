//! A target that is a number, as `init` sees it: whether it is one, and the ranges that it would be cut into.

use super::counts::{Counts, MOST_WORDS};
use super::schema::MOST_CLASSES;
use crate::data::numbers::{Decimal, number_in};
use crate::data::ranges::{Ranges, quantile, quantile_edges};
use crate::error::{Error, Result};

/// How a target of numbers becomes classes.
#[derive(Clone, Debug, PartialEq)]
pub enum Cut {
    /// Each number is a class.
    Classes,
    /// So many ranges with about as many training rows each.
    Bins(usize),
    /// Ranges between these.
    Edges(Vec<f64>),
}

/// Ranges that a target of many different numbers is cut into if nobody says how.
const BINS: usize = 4;
/// More different whole numbers than this are a number and no classes.
const MOST_CODES: usize = 20;
/// The same of numbers with decimals.
const MOST_DECIMALS: usize = 10;

/// A target that is a number.
#[derive(Clone, Debug)]
pub struct NumberTarget {
    /// How it is cut.
    pub cut: Cut,
    /// Whether nobody said so.
    pub guessed: bool,
    /// How many different numbers, if not too many to count.
    pub different: Option<usize>,
    /// The smallest and the largest.
    pub range: [f64; 2],
    /// How they are written, if they are not plain.
    pub decimal: Option<Decimal>,
    /// The first cell that is no number, its row, and how many there are.
    pub other: Option<(String, u64, u64)>,
    /// The ranges, of some of the rows if the cut is [`Cut::Bins`].
    pub ranges: Ranges,
    /// Numbers such as -999 that are far from all others.
    pub sentinels: Vec<String>,
}

/// Looks whether a target is a number; `sample` has the cells of some rows.
///
/// # Errors
/// It is to be cut and is no number, or cannot be cut like that.
pub(super) fn number_target(
    target: &str,
    counts: &Counts,
    present: u64,
    semicolons: bool,
    sample: &[&str],
    said: Option<Cut>,
) -> Result<Option<NumberTarget>> {
    let (decimal, numbers) = counts.numbers(semicolons);
    let (different, fractions) = (counts.words.len(), numbers.whole < numbers.count);
    let other = numbers.first_other.clone().map(|(row, word)| (word, row, present - numbers.count));
    let guessed = said.is_none();
    let cut = match said {
        Some(Cut::Classes) => return Ok(None),
        Some(cut) if numbers.count as f64 >= 0.5 * present as f64 && present > 0 => cut,
        Some(_) => {
            let (word, row, _) = other.unwrap_or_default();
            return Err(Error::Data(format!(
                "the target `{target}` is no number (`{word}` in row {row}), so it cannot be cut into ranges: leave --bins \
                 and --edges out"
            )));
        }
        None => {
            let many = if fractions { MOST_DECIMALS } else { MOST_CODES };
            let is_number =
                numbers.count as f64 >= 0.9 * present as f64 && (counts.too_many || different > many);
            if !is_number || present == 0 {
                return Ok(None);
            }
            Cut::Bins(BINS)
        }
    };
    if let Cut::Bins(bins) = cut
        && !(2..=MOST_CLASSES).contains(&bins)
    {
        return Err(Error::Data(format!("--bins is {bins}, but it must be between 2 and {MOST_CLASSES}")));
    }
    let values: Vec<f64> = sample.iter().filter_map(|cell| number_in(cell, decimal).ok()).collect();
    let edges = match &cut {
        Cut::Edges(edges) => edges.clone(),
        Cut::Bins(bins) => quantile_edges(&values, *bins),
        Cut::Classes => Vec::new(),
    };
    let ranges = Ranges { edges, decimal };
    if ranges.edges.is_empty() && matches!(cut, Cut::Bins(_)) {
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        return Err(Error::Data(format!(
            "the target `{target}` cannot be cut into ranges of equal size: nearly all rows have the number {}; say where \
             to cut, such as --edges {}",
            quantile(&sorted, 0.5),
            numbers.range.map_or(1.0, |[_, high]| high)
        )));
    }
    ranges.check().map_err(|error| Error::Data(format!("--edges: {}", error.message())))?;
    Ok(Some(NumberTarget {
        guessed,
        cut,
        different: (!counts.too_many).then_some(different),
        range: numbers.range.unwrap_or([0.0, 0.0]),
        decimal,
        other,
        ranges,
        sentinels: counts.sentinel_doubts(),
    }))
}

impl NumberTarget {
    /// What it is, in words: `214 different numbers, 1.2 to 50`.
    pub fn described(&self) -> String {
        let many = match self.different {
            Some(count) => count.to_string(),
            None => format!("more than {MOST_WORDS}"),
        };
        format!("{many} different numbers, {} to {}", self.range[0], self.range[1])
    }
}
