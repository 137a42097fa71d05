//! Numbers as tables have them: plain ones, and ones with decimal commas, thousands separators, currency or percent
//! signs, which are read only where a column says so.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// What stands before the decimals of a column whose numbers are not plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decimal {
    /// A point, as in `$1,234.50`.
    #[serde(rename = ".")]
    Point,
    /// A comma, as in `1.234,50 €`.
    #[serde(rename = ",")]
    Comma,
}

/// Signs around a number that say what it is of.
const SIGNS: &str = "$€£¥₹₽₩₺₫₦₴₱฿¢%";
/// Words that do.
const WORDS: [&str; 18] = [
    "EUR", "USD", "GBP", "CHF", "JPY", "CAD", "AUD", "CNY", "INR", "SEK", "NOK", "DKK", "PLN", "CZK", "kr",
    "zł", "Kč", "Fr.",
];

/// A plain number.
pub(crate) fn number(cell: &str) -> Result<f64> {
    let cell = cell.trim();
    let fail = |what: String| Err(Error::Data(what));
    match cell.parse::<f64>() {
        Ok(value) if (value as f32).is_finite() => Ok(value),
        Ok(value) => fail(format!("`{cell}` is {value}, not a finite number of 32 bits")),
        Err(_) if cell.contains(',') && cell.replace(',', ".").parse::<f64>().is_ok() => {
            fail(format!("`{cell}` is not a number: write a decimal point, no comma"))
        }
        Err(_) => fail(format!("`{}` is not a number", cell.chars().take(40).collect::<String>())),
    }
}

/// A number of a column: a plain one, unless the column says how its numbers are written.
pub(crate) fn number_in(cell: &str, decimal: Option<Decimal>) -> Result<f64> {
    let Some(decimal) = decimal else { return number(cell) };
    written(cell, decimal).ok_or_else(|| {
        let (mark, other) = match decimal {
            Decimal::Point => ("point", ','),
            Decimal::Comma => ("comma", '.'),
        };
        Error::Data(format!(
            "`{}` is not a number with a decimal {mark} (and at most a `{other}` between thousands, and a currency or \
             percent sign)",
            cell.trim().chars().take(40).collect::<String>()
        ))
    })
}

/// The number that a cell says, with separators and signs around it.
pub(crate) fn written(cell: &str, decimal: Decimal) -> Option<f64> {
    let cell = cell.trim();
    // Most cells of a table may be words: those are told quickly.
    if cell.len() > 60 || !cell.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (negative, rest) = signed(cell);
    let rest = bare(rest);
    let (inner, rest) = signed(rest);
    if negative && inner {
        return None;
    }
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], &rest[at..]),
        None => (rest, ""),
    };
    let (mark, other) = match decimal {
        Decimal::Point => ('.', ','),
        Decimal::Comma => (',', '.'),
    };
    let (whole, fraction) = match mantissa.split_once(mark) {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole = ungrouped(whole, other)?;
    let value: f64 = format!("{whole}.{fraction}0{exponent}").parse().ok()?;
    let value = if negative || inner { -value } else { value };
    (value as f32).is_finite().then_some(value)
}

/// Whether there is a minus, and what stands behind the sign.
fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Without one currency or percent sign, on either side.
fn bare(text: &str) -> &str {
    let is_sign = |c: char| SIGNS.contains(c);
    if let Some(rest) = text.strip_prefix(is_sign).or_else(|| text.strip_suffix(is_sign)) {
        return rest.trim();
    }
    let word = |word: &&str| text.strip_prefix(*word).or_else(|| text.strip_suffix(*word));
    WORDS.iter().find_map(word).map_or(text, str::trim)
}

/// The digits of a whole number, without what separates its thousands.
fn ungrouped(whole: &str, other: char) -> Option<String> {
    let is_separator = |c: char| c == other || matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\'' | '’');
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    if digits(whole) {
        // `.5` is a number, too.
        return Some(if whole.is_empty() { "0".into() } else { whole.into() });
    }
    let separator = whole.chars().find(|c| is_separator(*c))?;
    let mut groups = whole.split(separator);
    let first = groups.next().filter(|first| (1..=3).contains(&first.len()) && digits(first))?;
    // A zero before a separator is no group of thousands: `0,123` has a decimal comma.
    if first.starts_with('0') {
        return None;
    }
    let mut all = first.to_string();
    for group in groups {
        if group.len() != 3 || !digits(group) {
            return None;
        }
        all += group;
    }
    Some(all)
}

/// The currency or percent sign of a cell, as a unit.
#[cfg(feature = "table")]
pub(crate) fn sign(cell: &str) -> Option<String> {
    let cell = signed(cell.trim()).1;
    let bare = bare(cell);
    let at = cell.find(bare).filter(|_| bare.len() < cell.len() && !bare.is_empty())?;
    let sign = if at == 0 { &cell[bare.len()..] } else { &cell[..at] };
    Some(sign.trim().to_string())
}

/// A number with up to four significant digits.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_signs_are_read() {
        use Decimal::{Comma, Point};
        for (cell, point, comma) in [
            ("12", Some(12.0), Some(12.0)),
            ("1.5", Some(1.5), None),
            ("1,5", None, Some(1.5)),
            ("1.234", Some(1.234), Some(1234.0)),
            ("1,234", Some(1234.0), Some(1.234)),
            ("0,123", None, Some(0.123)),
            ("1,234.50", Some(1234.5), None),
            ("1.234,50", None, Some(1234.5)),
            ("1 234 567,5", None, Some(1_234_567.5)),
            ("1\u{202f}234", Some(1234.0), Some(1234.0)),
            ("1'234.5", Some(1234.5), None),
            ("12,34,567", None, None),
            ("$1,234.50", Some(1234.5), None),
            ("-$5", Some(-5.0), Some(-5.0)),
            ("$-5.5", Some(-5.5), None),
            ("−1,5 €", None, Some(-1.5)),
            ("EUR 3", Some(3.0), Some(3.0)),
            ("12.5 %", Some(12.5), None),
            ("12,5%", None, Some(12.5)),
            (".5", Some(0.5), None),
            ("1e3", Some(1000.0), Some(1000.0)),
            ("1,5e-1", None, Some(0.15)),
            ("5,", None, None),
            ("--5", None, None),
            ("2024-05-03", None, None),
            ("10 mg", None, None),
            ("$", None, None),
            ("", None, None),
            ("1e999", None, None),
            ("a1", None, None),
        ] {
            assert_eq!(written(cell, Point), point, "{cell} with a point");
            assert_eq!(written(cell, Comma), comma, "{cell} with a comma");
        }
        assert_eq!(number_in("1.5", None).expect("plain"), 1.5);
        let error = number_in("1.5", Some(Comma)).expect_err("refused").message();
        assert!(error.contains("a decimal comma"), "{error}");
    }

    #[cfg(feature = "table")]
    #[test]
    fn a_sign_is_a_unit() {
        assert_eq!(sign("$1,234.50").as_deref(), Some("$"));
        assert_eq!(sign("-3,5 %").as_deref(), Some("%"));
        assert_eq!(sign("EUR 3").as_deref(), Some("EUR"));
        assert_eq!(sign("3"), None);
        assert_eq!(sign("$"), None);
    }

    #[test]
    fn short_numbers_have_four_digits() {
        assert_eq!(short(37.04), "37.04");
        assert_eq!(short(0.000_123_456), "0.0001235");
        assert_eq!(short(123_456.0), "123456");
    }
}
