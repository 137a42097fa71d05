//! What is counted of a column while a table is read once. Memory does not grow with the rows.

use crate::data::dates::{self, Order};
use crate::data::encoding::canonical;
use crate::data::numbers::{Decimal, written};
use std::collections::{BTreeMap, HashMap};

/// Different words of a column that are counted; beyond that it is "many".
pub(super) const MOST_WORDS: usize = 1000;
/// Numbers that people write where there is none.
const SENTINELS: [i64; 12] =
    [-9, -99, -999, -9999, -99_999, -999_999, 99, 999, 9999, 99_999, 999_999, 9_999_999];
/// The orders that dates can have, as they are counted.
pub(super) const ORDERS: [Order; 3] = [Order::Ymd, Order::Dmy, Order::Mdy];

/// Cells as numbers, in one way to write them.
#[derive(Default)]
pub(super) struct Numbers {
    pub count: u64,
    pub whole: u64,
    pub range: Option<[f64; 2]>,
    /// The first cell that is none, and its row.
    pub first_other: Option<(u64, String)>,
}

impl Numbers {
    fn add(&mut self, value: Option<f64>, row: u64, word: &str) {
        match value {
            Some(value) => {
                self.count += 1;
                self.whole += u64::from(value.fract() == 0.0);
                self.range = widened(self.range, value);
            }
            None if self.first_other.is_none() => {
                self.first_other = Some((row, word.chars().take(40).collect()));
            }
            None => {}
        }
    }
}

fn widened(range: Option<[f64; 2]>, value: f64) -> Option<[f64; 2]> {
    let [low, high] = range.unwrap_or([value, value]);
    Some([low.min(value), high.max(value)])
}

/// Counts of a column.
#[derive(Default)]
pub(super) struct Counts {
    pub missing: u64,
    plain: Numbers,
    point: Numbers,
    comma: Numbers,
    /// How many cells are dates, in each of [`ORDERS`].
    pub dates: [u64; 3],
    /// Numbers that may mean that there is none, with how often they are there and how they are written.
    sentinels: BTreeMap<i64, (u64, String)>,
    /// The range of all other numbers.
    rest: Option<[f64; 2]>,
    pub words: HashMap<String, u64>,
    pub too_many: bool,
}

impl Counts {
    pub fn add(&mut self, cell: &str, row: u64, missing: &[String]) {
        let word = canonical(cell);
        if missing.iter().any(|m| m == word) {
            self.missing += 1;
            return;
        }
        // What is a thousand with its separator must not lose its zeros.
        let written_as = cell.trim();
        // Not `number`, which puts into words what is wrong: most cells of a table may be words.
        let plain = written_as.parse::<f64>().ok().filter(|value| (*value as f32).is_finite());
        let (point, comma) = match plain {
            // Only a point with three digits behind it may separate thousands.
            Some(_) if written_as.rsplit_once('.').is_some_and(|(_, digits)| digits.len() == 3) => {
                (plain, written(written_as, Decimal::Comma))
            }
            Some(_) => (plain, plain.filter(|_| !written_as.contains('.'))),
            None => (written(written_as, Decimal::Point), written(written_as, Decimal::Comma)),
        };
        self.plain.add(plain, row, word);
        self.point.add(point, row, word);
        self.comma.add(comma, row, word);
        match plain {
            Some(value) => self.look_out(value, cell),
            None if word.len() >= 8 && word.as_bytes()[0].is_ascii_digit() => {
                for (count, order) in self.dates.iter_mut().zip(ORDERS) {
                    *count += u64::from(dates::parse(word, order).is_some());
                }
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

    fn look_out(&mut self, value: f64, cell: &str) {
        match SENTINELS.iter().find(|sentinel| **sentinel as f64 == value) {
            Some(sentinel) => {
                self.sentinels.entry(*sentinel).or_insert_with(|| (0, cell.trim().to_string())).0 += 1;
            }
            None => self.rest = widened(self.rest, value),
        }
    }

    /// How the column's numbers are written, if they are not plain, and what they are then. What can be either
    /// (`1,234`) is taken for thousands, except in tables whose cells are separated by semicolons: they have to be where
    /// commas are decimal.
    pub fn numbers(&self, semicolons: bool) -> (Option<Decimal>, &Numbers) {
        let (plain, point, comma) = (self.plain.count, self.point.count, self.comma.count);
        if point <= plain && comma <= plain {
            (None, &self.plain)
        } else if comma > point || (comma == point && semicolons) {
            (Some(Decimal::Comma), &self.comma)
        } else {
            (Some(Decimal::Point), &self.point)
        }
    }

    /// The first cell that is not a plain number.
    pub fn first_odd(&self) -> Option<&str> {
        self.plain.first_other.as_ref().map(|(_, word)| word.as_str())
    }

    /// The order of dates that most cells have, how many those are, and whether day and month may be swapped.
    pub fn date_order(&self) -> (Order, u64, bool) {
        let [ymd, dmy, mdy] = self.dates;
        let slashes = self.first_odd().is_some_and(|cell| cell.contains('/'));
        let unclear = dmy == mdy && dmy > 0;
        if ymd >= dmy.max(mdy) {
            (Order::Ymd, ymd, false)
        } else if mdy > dmy || (unclear && slashes) {
            (Order::Mdy, mdy, unclear)
        } else {
            (Order::Dmy, dmy, unclear)
        }
    }

    /// What is said about numbers such as -999 that are far from all others.
    pub fn sentinel_doubts(&self) -> Vec<String> {
        let Some([low, high]) = self.rest.filter(|[low, high]| low < high) else { return Vec::new() };
        let far = |value: f64| value < low - (high - low) || value > high + (high - low);
        let found = self.sentinels.iter().filter(|(value, _)| far(**value as f64));
        found
            .map(|(_, (count, cell))| {
                format!(
                    "{count} cell(s) are {cell}, far from all others ({low} to {high}): if that means \"not known\", add \
                     \"{cell}\" to `missing` above"
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cells: &[&str]) -> Counts {
        let mut counts = Counts::default();
        cells.iter().zip(1..).for_each(|(cell, row)| counts.add(cell, row, &["NA".to_string()]));
        counts
    }

    #[test]
    fn the_way_to_write_numbers_is_found() {
        let style = |cells: &[&str], semicolons| of(cells).numbers(semicolons).0;
        assert_eq!(style(&["1.5", "2", "1.234"], false), None);
        assert_eq!(style(&["1,5", "2", "1.234,5"], false), Some(Decimal::Comma));
        assert_eq!(style(&["$1.5", "$2"], false), Some(Decimal::Point));
        assert_eq!(style(&["999", "1,234"], false), Some(Decimal::Point));
        assert_eq!(style(&["999", "1,234"], true), Some(Decimal::Comma));
        assert_eq!(style(&["1.234", "1.234.567"], false), Some(Decimal::Comma));
        let counts = of(&["12%", "NA", "x", "7%"]);
        let (_, numbers) = counts.numbers(false);
        assert_eq!((numbers.count, numbers.range, counts.missing), (2, Some([7.0, 12.0]), 1));
        assert_eq!(numbers.first_other, Some((3, "x".into())));
    }

    #[test]
    fn sentinels_are_far_from_the_rest() {
        assert_eq!(of(&["1", "5", "9"]).sentinel_doubts().len(), 0);
        assert_eq!(of(&["1", "50", "99"]).sentinel_doubts().len(), 0);
        let doubts = of(&["1.5", "-999.0", "3", "9999", "-999"]).sentinel_doubts();
        assert_eq!(doubts.len(), 2, "{doubts:?}");
        assert!(doubts[0].starts_with("2 cell(s) are -999.0, far from all others (1.5 to 3)"), "{doubts:?}");
    }

    #[test]
    fn dates_are_counted_in_their_order() {
        assert_eq!(of(&["2024-05-31", "2024-06-01"]).date_order(), (Order::Ymd, 2, false));
        assert_eq!(of(&["31.5.2024", "01.06.2024"]).date_order(), (Order::Dmy, 2, false));
        assert_eq!(of(&["05/31/2024", "06/01/2024"]).date_order(), (Order::Mdy, 2, false));
        assert_eq!(of(&["05/03/2024", "06/01/2024"]).date_order(), (Order::Mdy, 2, true));
    }
}
