//! A column of the user's table: what its cells can be, and how each becomes numbers.

use super::dates::{self, Order, PARTS};
use super::nearest::did_you_mean;
use super::numbers::{Decimal, number_in, short};
use super::words::{canonical, listed};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// What one cell can be and how it is encoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Code {
    /// A number.
    Number {
        /// What is below becomes this.
        low: f64,
        /// What is above becomes this.
        high: f64,
        /// What a missing cell becomes.
        fill: f64,
        /// The smallest and the largest value of the training rows.
        seen: [f64; 2],
        /// What is above counts as missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing_above: Option<f64>,
        /// How the table writes it, if it is not plain.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decimal: Option<Decimal>,
        /// Where its pieces begin and end, rising: for each piece one more column says how far the value is through it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        knots: Vec<f64>,
    },
    /// A date.
    Date {
        /// The order of year, month and day.
        order: Order,
        /// The earliest and the latest of the training rows, in days since 1970-01-01; others become the nearest.
        seen: [i64; 2],
        /// What a missing cell becomes.
        fill: [f64; PARTS],
    },
    /// One of two words, or of several in order.
    Levels {
        /// The words, from 0.
        levels: Vec<String>,
        /// What a missing cell becomes.
        fill: f64,
    },
    /// One of several words without an order.
    Categories {
        /// The words, a column each.
        values: Vec<String>,
    },
}

/// A column of the user's table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name in the header.
    pub name: String,
    /// What its numbers are in; empty if there is no unit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// What its cells can be.
    pub code: Code,
    /// Whether one more column tells a missing cell.
    pub flag: bool,
}

/// Something about a cell that is no error, but that its author may want to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Nothing.
    Fine,
    /// The cell is missing.
    Missing,
    /// The number is outside of what the training rows have.
    OutOfRange([f64; 2]),
    /// The date is before or after all of the training rows.
    OutOfDates([String; 2]),
    /// No training row has this word.
    Unseen,
}

impl Notice {
    /// Whether the cell is none that the training rows could have had.
    pub fn is_new(&self) -> bool {
        matches!(self, Notice::OutOfRange(_) | Notice::OutOfDates(_) | Notice::Unseen)
    }
}

impl Field {
    /// How many columns it becomes.
    pub fn columns(&self) -> usize {
        let values = match &self.code {
            Code::Categories { values } => values.len(),
            Code::Date { .. } => PARTS,
            Code::Number { knots, .. } => 1 + knots.len().saturating_sub(1),
            Code::Levels { .. } => 1,
        };
        values + usize::from(self.flag)
    }

    /// The name with its unit.
    pub fn label(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.unit) }
    }

    /// The words that its cells can be; none if they are numbers.
    pub fn words(&self) -> &[String] {
        match &self.code {
            Code::Number { .. } | Code::Date { .. } => &[],
            Code::Levels { levels: words, .. } | Code::Categories { values: words } => words,
        }
    }

    /// What an answer looks like, for a person: `a number, 35 to 41.2`.
    pub fn expected(&self) -> String {
        match &self.code {
            // No table says what it can be.
            Code::Number { seen: [low, high], .. }
                if *low <= f64::from(f32::MIN) && *high >= f64::from(f32::MAX) =>
            {
                "a number".into()
            }
            Code::Number { seen, .. } => format!("a number, {} to {} so far", short(seen[0]), short(seen[1])),
            Code::Date { order, seen, .. } => format!(
                "a date such as {}, {} to {} so far",
                order.example(),
                dates::shown(seen[0]),
                dates::shown(seen[1])
            ),
            Code::Levels { levels, .. } => listed(levels),
            Code::Categories { values } => listed(values),
        }
    }

    /// Appends a missing cell's columns.
    pub fn encode_missing(&self, out: &mut Vec<f32>) {
        match &self.code {
            Code::Number { fill, knots, .. } => {
                out.push(*fill as f32);
                push_pieces(*fill, knots, out);
            }
            Code::Levels { fill, .. } => out.push(*fill as f32),
            Code::Date { fill, .. } => out.extend(fill.map(|value| value as f32)),
            Code::Categories { values } => out.extend(std::iter::repeat_n(0.0, values.len())),
        }
        if self.flag {
            out.push(1.0);
        }
    }

    /// How a number that is no text is written in the table.
    pub fn spelled(&self, number: &str) -> String {
        match &self.code {
            Code::Number { decimal: Some(Decimal::Comma), .. } => number.replace('.', ","),
            _ => number.to_string(),
        }
    }

    /// Appends a number's column(s); of a date, the days since 1970-01-01.
    pub(crate) fn encode_number(&self, value: f64, out: &mut Vec<f32>) -> Notice {
        if let Code::Date { seen: [first, last], .. } = &self.code {
            let day = value as i64;
            let near = day.max(*first).min(*last);
            out.extend(dates::parts(near, *last).map(|part| part as f32));
            self.push_present(out);
            let range = || Notice::OutOfDates([dates::shown(*first), dates::shown(*last)]);
            return if near == day { Notice::Fine } else { range() };
        }
        let Code::Number { low, high, seen, missing_above, knots, .. } = &self.code else {
            self.encode_missing(out);
            return Notice::Missing;
        };
        if missing_above.is_some_and(|most| value as f32 > most as f32) {
            self.encode_missing(out);
            return Notice::Missing;
        }
        out.push(value.max(*low).min(*high) as f32);
        push_pieces(value, knots, out);
        self.push_present(out);
        if value < seen[0] || value > seen[1] { Notice::OutOfRange(*seen) } else { Notice::Fine }
    }

    fn push_present(&self, out: &mut Vec<f32>) {
        if self.flag {
            out.push(0.0);
        }
    }

    /// Appends the columns of a cell that is not missing.
    ///
    /// # Errors
    /// What is wrong with the cell; nothing has been appended then.
    pub fn encode(&self, cell: &str, out: &mut Vec<f32>) -> Result<Notice> {
        let word = canonical(cell);
        match &self.code {
            // Of 32 bits, as the training rows were: else the smallest of them would be below their range.
            Code::Number { decimal, .. } => {
                Ok(self.encode_number(f64::from(number_in(cell, *decimal)? as f32), out))
            }
            Code::Date { order, .. } => Ok(self.encode_number(dates::parse_in(cell, *order)? as f64, out)),
            Code::Levels { levels, .. } => {
                let Some(level) = position(levels, word) else {
                    let meant = did_you_mean(word, levels.iter().map(String::as_str));
                    return Err(Error::Data(format!("`{word}` is none of {}{meant}", listed(levels))));
                };
                out.push(level as f32);
                self.push_present(out);
                Ok(Notice::Fine)
            }
            Code::Categories { values } => {
                let at = position(values, word);
                out.extend((0..values.len()).map(|i| if at == Some(i) { 1.0 } else { 0.0 }));
                self.push_present(out);
                Ok(if at.is_none() { Notice::Unseen } else { Notice::Fine })
            }
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let fail = |what: &str| Err(Error::Problem(format!("the encoding of `{}` {what}", self.name)));
        match &self.code {
            Code::Number { knots, .. }
                if knots.len() == 1
                    || knots.iter().any(|knot| !knot.is_finite())
                    || knots.windows(2).any(|piece| piece[0] >= piece[1]) =>
            {
                return fail("has pieces that do not rise");
            }
            Code::Number { low, high, fill, seen, missing_above, .. } => {
                let all = [*low, *high, *fill, seen[0], seen[1], missing_above.unwrap_or(0.0)];
                if all.iter().any(|value| !value.is_finite()) || low > high {
                    return fail("has numbers that are not finite or not in order");
                }
            }
            Code::Date { seen: [first, last], fill, .. }
                if first > last
                    || fill.iter().any(|value| !value.is_finite())
                    || first.abs().max(last.abs()) > dates::MOST_DAYS =>
            {
                return fail("has dates that are not in order or not of this calendar");
            }
            Code::Levels { levels, fill } if levels.is_empty() || !fill.is_finite() => {
                return fail("has no levels, or a fill that is not finite");
            }
            Code::Categories { values } if values.is_empty() && !self.flag => {
                return fail("has no values");
            }
            _ => {}
        }
        Ok(())
    }
}

/// How far a number is through each piece: 0 before it, 1 behind it. What a network can tell apart within a piece does
/// not depend on how narrow it is, so that fine differences are seen where there are many rows (Gorishniy et al. 2022).
fn push_pieces(value: f64, knots: &[f64], out: &mut Vec<f32>) {
    out.extend(
        knots.windows(2).map(|piece| ((value - piece[0]) / (piece[1] - piece[0])).clamp(0.0, 1.0) as f32),
    );
}

fn position(words: &[String], word: &str) -> Option<usize> {
    words.iter().position(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(code: Code, flag: bool) -> Field {
        Field { name: "f".into(), unit: String::new(), code, flag }
    }

    fn columns(field: &Field, cell: &str) -> (Vec<f32>, Notice) {
        let mut out = Vec::new();
        let notice = field.encode(cell, &mut out).expect("encodes");
        assert_eq!(out.len(), field.columns());
        (out, notice)
    }

    #[test]
    fn numbers_are_clipped_and_missing_ones_flagged() {
        let code = Code::Number {
            low: 1.0,
            high: 9.0,
            fill: 4.5,
            seen: [0.0, 10.0],
            missing_above: Some(50.0),
            decimal: None,
            knots: Vec::new(),
        };
        let f = field(code, true);
        assert_eq!(columns(&f, " 3.5 "), (vec![3.5, 0.0], Notice::Fine));
        assert_eq!(columns(&f, "10"), (vec![9.0, 0.0], Notice::Fine));
        assert_eq!(columns(&f, "-1e3"), (vec![1.0, 0.0], Notice::OutOfRange([0.0, 10.0])));
        assert_eq!(columns(&f, "99"), (vec![4.5, 1.0], Notice::Missing));
        let mut out = Vec::new();
        f.encode_missing(&mut out);
        assert_eq!(out, [4.5, 1.0]);
        for (cell, says) in [("x", "not a number"), ("inf", "not a finite"), ("3,5", "decimal point")] {
            assert!(f.encode(cell, &mut out).expect_err("refused").message().contains(says));
        }
        assert_eq!(out.len(), 2, "a refused cell leaves nothing");
    }

    #[test]
    fn dates_become_four_numbers_and_commas_are_read() {
        let code = Code::Date { order: Order::Dmy, seen: [0, 10], fill: [1970.0, 1.0, 3.0, 5.0] };
        let f = field(code, true);
        assert_eq!(columns(&f, "3.1.1970"), (vec![1970.0, 1.0, 5.0, 8.0, 0.0], Notice::Fine));
        let late = Notice::OutOfDates(["1970-01-01".into(), "1970-01-11".into()]);
        assert_eq!(columns(&f, "1.2.1971"), (vec![1970.0, 1.0, 6.0, 0.0, 0.0], late));
        assert!(
            f.encode("1970-01-03", &mut Vec::new()).expect_err("refused").message().contains("31.05.2024")
        );
        let seen = [0.0, 2000.0];
        let decimal = Some(Decimal::Comma);
        let f = field(
            Code::Number {
                low: 0.0,
                high: 2000.0,
                fill: 1.0,
                seen,
                missing_above: None,
                decimal,
                knots: vec![],
            },
            false,
        );
        assert_eq!(columns(&f, "1.234,5 €").0, [1234.5]);
        assert_eq!(columns(&f, &f.spelled("1.5")).0, [1.5]);
    }

    #[test]
    fn the_smallest_number_of_the_training_rows_is_within_their_range() {
        let ends = [0.1f32, 0.7].map(f64::from);
        let [low, high] = ends;
        let knots = Vec::new();
        let code =
            Code::Number { low, high, fill: 0.5, seen: ends, missing_above: Some(0.7), decimal: None, knots };
        let f = field(code, false);
        assert_eq!(columns(&f, "0.1").1, Notice::Fine);
        assert_eq!(columns(&f, "0.7").1, Notice::Fine);
        assert_eq!(columns(&f, "0.0999").1, Notice::OutOfRange(ends));
    }

    #[test]
    fn pieces_say_how_far_a_number_is_through_each() {
        let number = |knots: &[f64]| {
            let (low, high, seen, knots) = (1.0, 9.0, [0.0, 10.0], knots.to_vec());
            let code = Code::Number { low, high, fill: 5.0, seen, missing_above: None, decimal: None, knots };
            field(code, true)
        };
        let f = number(&[0.0, 4.0, 5.0, 10.0]);
        assert_eq!(f.columns(), 5);
        assert_eq!(columns(&f, "3").0, [3.0, 0.75, 0.0, 0.0, 0.0]);
        assert_eq!(columns(&f, "4.5").0, [4.5, 1.0, 0.5, 0.0, 0.0]);
        assert_eq!(
            columns(&f, "9.5").0,
            [9.0, 1.0, 1.0, 0.9, 0.0],
            "pieces are not clipped to the quantiles"
        );
        assert_eq!(columns(&f, "-7").0, [1.0, 0.0, 0.0, 0.0, 0.0]);
        let mut out = Vec::new();
        f.encode_missing(&mut out);
        assert_eq!(out, [5.0, 1.0, 1.0, 0.0, 1.0]);
        for knots in [&[1.0][..], &[1.0, 1.0], &[2.0, 1.0], &[0.0, f64::NAN]] {
            assert!(number(knots).check().expect_err("refused").message().contains("pieces"), "{knots:?}");
        }
        number(&[]).check().expect("no pieces");
    }

    #[test]
    fn an_unseen_category_has_its_own_code() {
        let f = field(Code::Categories { values: vec!["a".into(), "2".into()] }, true);
        assert_eq!(columns(&f, "a").0, [1.0, 0.0, 0.0]);
        assert_eq!(columns(&f, "2.0").0, [0.0, 1.0, 0.0]);
        assert_eq!(columns(&f, "new"), (vec![0.0, 0.0, 0.0], Notice::Unseen));
        let mut out = Vec::new();
        f.encode_missing(&mut out);
        assert_eq!(out, [0.0, 0.0, 1.0]);
        let f = field(Code::Levels { levels: vec!["low".into(), "high".into()], fill: 0.25 }, false);
        assert_eq!(columns(&f, "high").0, [1.0]);
        assert!(f.encode("mid", &mut out).expect_err("refused").message().contains("`low`, `high`"));
    }
}
