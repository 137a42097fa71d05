//! Ranges of settings: one list of names, values and rules instead of a branch for each.

use crate::error::{Error, Result};

/// What a number must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// 1, 2, 3 …
    Count,
    /// Above 0.
    Positive,
    /// 0 or above.
    NotNegative,
    /// A share that leaves something over: 1 is out.
    BelowOne,
    /// A share that is something: 0 is out.
    AboveZero,
    /// A share, 0 and 1 included.
    Share,
    /// A share that is neither all nor nothing.
    Inside,
}

impl Rule {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::Count => value >= 1.0,
            Self::Positive => value.is_finite() && value > 0.0,
            Self::NotNegative => value.is_finite() && value >= 0.0,
            Self::BelowOne => (0.0..1.0).contains(&value),
            Self::AboveZero => value > 0.0 && value <= 1.0,
            Self::Share => (0.0..=1.0).contains(&value),
            Self::Inside => value > 0.0 && value < 1.0,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Count => "at least 1",
            Self::Positive => "a finite number above 0",
            Self::NotNegative => "a finite number, zero or more",
            Self::BelowOne => "at least 0 and below 1",
            Self::AboveZero => "above 0 and at most 1",
            Self::Share => "0 to 1",
            Self::Inside => "between 0 and 1",
        }
    }
}

/// Checks numbers, each with its name and its rule.
///
/// # Errors
/// The first one that is out of range.
pub(crate) fn check(numbers: &[(&str, f64, Rule)]) -> Result<()> {
    match numbers.iter().find(|(_, value, rule)| !rule.holds(*value)) {
        None => Ok(()),
        Some((name, value, rule)) => {
            Err(Error::Config(format!("{name} is {value}, but it must be {}", rule.words())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_ends_where_it_says() {
        let (below, above) = (1.0 - 1e-16, 5e-324);
        for (rule, inside, outside) in [
            (Rule::Count, &[1.0, 7.0][..], &[0.0, -1.0][..]),
            (Rule::Positive, &[above, 1e300], &[0.0, -1.0, f64::INFINITY]),
            (Rule::NotNegative, &[0.0, 1e300], &[-above, f64::INFINITY]),
            (Rule::BelowOne, &[0.0, below], &[-above, 1.0]),
            (Rule::AboveZero, &[above, 1.0], &[0.0, 1.1]),
            (Rule::Share, &[0.0, 1.0], &[-above, 1.1]),
            (Rule::Inside, &[above, below], &[0.0, 1.0]),
        ] {
            for &value in inside {
                check(&[("a", value, rule)]).expect("in range");
            }
            for &value in outside.iter().chain(&[f64::NAN]) {
                let error = check(&[("b", 0.5, Rule::Share), ("a", value, rule)]).expect_err("out of range");
                assert_eq!(
                    error.to_string(),
                    format!("configuration: a is {value}, but it must be {}", rule.words())
                );
            }
        }
    }
}
