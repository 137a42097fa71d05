//! Dates as tables have them, and the numbers that a date becomes.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// In which order a column's dates have year, month and day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// `2024-05-31`.
    #[default]
    Ymd,
    /// `31.5.2024` or `31/05/2024`.
    Dmy,
    /// `05/31/2024`.
    Mdy,
}

impl Order {
    /// A date in this order.
    pub fn example(self) -> &'static str {
        match self {
            Order::Ymd => "2024-05-31",
            Order::Dmy => "31.05.2024",
            Order::Mdy => "05/31/2024",
        }
    }
}

/// Days before and after 1970 at most: years have four digits.
pub(crate) const MOST_DAYS: i64 = 3_000_000;

/// How many columns a date becomes.
pub const PARTS: usize = 4;

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have their leap day at the end.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of so many days after 1970-01-01.
fn date(days: i64) -> [i64; 3] {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    [year + era * 400 + i64::from(month <= 2), month, day]
}

/// The days from 1970-01-01 to a date; a time of day behind it is left out. `None` if it is no date of that order, with
/// a year of four digits.
pub(crate) fn parse(cell: &str, order: Order) -> Option<i64> {
    let cell = cell.trim();
    // `2024-05-31T12:30:00Z`, `31.5.2024 12:30`
    let (text, time) = match cell.find(['T', ' ']) {
        Some(at) => (&cell[..at], &cell[at + 1..]),
        None => (cell, ""),
    };
    if !time.chars().all(|c| c.is_ascii_digit() || ":.+-Z ".contains(c) || "APMapm".contains(c)) {
        return None;
    }
    let separator = text.chars().find(|c| !c.is_ascii_digit()).filter(|c| "-/.".contains(*c))?;
    let mut parts = [0i64; 3];
    let mut widths = [0usize; 3];
    let mut pieces = text.split(separator);
    for (part, width) in parts.iter_mut().zip(&mut widths) {
        let piece = pieces.next().filter(|piece| (1..=4).contains(&piece.len()))?;
        *part = piece.bytes().all(|byte| byte.is_ascii_digit()).then(|| piece.parse().ok())??;
        *width = piece.len();
    }
    let [a, b, c] = [0, 1, 2];
    let [year, month, day] = match order {
        Order::Ymd => [a, b, c],
        Order::Dmy => [c, b, a],
        Order::Mdy => [c, a, b],
    };
    if pieces.next().is_some() || widths[year] != 4 || widths[month] > 2 || widths[day] > 2 {
        return None;
    }
    let said = [parts[year], parts[month], parts[day]];
    let count = days(said[0], said[1], said[2]);
    // A day that is not there, such as the 30th of February, comes back as another one.
    ((1..=12).contains(&said[1]) && date(count) == said).then_some(count)
}

/// The same, with what is wrong.
pub(crate) fn parse_in(cell: &str, order: Order) -> Result<i64> {
    parse(cell, order).ok_or_else(|| {
        let example = order.example();
        let cell: String = cell.trim().chars().take(40).collect();
        Error::Data(format!("`{cell}` is not a date such as {example}"))
    })
}

/// A date as a person reads it.
pub(crate) fn shown(days: i64) -> String {
    let [year, month, day] = date(days);
    format!("{year}-{month:02}-{day:02}")
}

/// What a date becomes: year, month, day of week (Monday is 0), and its age, the days before another one.
pub(crate) fn parts(days: i64, before: i64) -> [f64; PARTS] {
    let [year, month, _] = date(days);
    // 1970-01-01 was a Thursday.
    let weekday = (days + 3).rem_euclid(7);
    [year as f64, month as f64, weekday as f64, (before - days) as f64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_their_order() {
        assert_eq!(parse("1970-01-01", Order::Ymd), Some(0));
        assert_eq!(parse("2000/2/29", Order::Ymd), Some(11_016));
        assert_eq!(parse("31.12.1969", Order::Dmy), Some(-1));
        assert_eq!(parse("12/31/1969", Order::Mdy), Some(-1));
        assert_eq!(parse("2024-05-31T12:30:00.5Z", Order::Ymd), parse("2024-05-31", Order::Ymd));
        assert_eq!(parse("05/31/2024 1:30 PM", Order::Mdy), parse("2024-05-31", Order::Ymd));
        for wrong in [
            "2023-02-29",
            "2023-13-01",
            "2023-00-10",
            "24-05-31",
            "2024-05",
            "2024-05-31-1",
            "2024-05-31 noon",
            "x",
            "",
        ] {
            assert_eq!(parse(wrong, Order::Ymd), None, "{wrong}");
        }
        assert_eq!(parse("13/13/2024", Order::Mdy), None);
        assert_eq!(parse("1.2.3", Order::Ymd), None);
        for days in (-800_000..800_000).step_by(977) {
            assert_eq!(
                parse(&shown(days), Order::Ymd),
                Some(days).filter(|_| date(days)[0] >= 1000),
                "{days}"
            );
        }
    }

    #[test]
    fn a_date_becomes_four_numbers() {
        // A Friday.
        let day = parse("2024-05-31", Order::Ymd).expect("a date");
        assert_eq!(parts(day, day + 10), [2024.0, 5.0, 4.0, 10.0]);
        assert!(parse_in("31.5.2024", Order::Ymd).expect_err("refused").message().contains("2024-05-31"));
    }
}
