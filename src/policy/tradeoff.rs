//! Trade-offs between loss and cost, α, that one policy was trained for, and how it is told which one counts.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Columns that tell a network the trade-off: hat functions, the knots of a linear spline over ln α.
pub const COLUMNS: usize = 8;

/// A range of trade-offs, from the smallest to the largest α.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "[f64; 2]", into = "[f64; 2]")]
pub struct AlphaRange {
    from: f64,
    to: f64,
}

impl TryFrom<[f64; 2]> for AlphaRange {
    type Error = Error;

    fn try_from([from, to]: [f64; 2]) -> Result<Self> {
        if !(from > 0.0 && to.is_finite() && from < to) {
            return Err(Error::Config(format!(
                "the range of α is {from} to {to}, but it must go from a number above zero to a larger one"
            )));
        }
        Ok(Self { from, to })
    }
}

impl From<AlphaRange> for [f64; 2] {
    fn from(range: AlphaRange) -> Self {
        [range.from, range.to]
    }
}

impl std::fmt::Display for AlphaRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {}", self.from, self.to)
    }
}

/// With three digits: what is worth showing of an α.
pub fn rounded(alpha: f64) -> f64 {
    format!("{alpha:.2e}").parse().unwrap_or(alpha)
}

impl AlphaRange {
    /// A range of next to no width that begins at an α: to look at that one alone.
    pub(crate) fn from_here(alpha: f64) -> Self {
        Self { from: alpha, to: alpha * (1.0 + 1e-6) }
    }

    /// The smallest α.
    pub fn from(&self) -> f64 {
        self.from
    }

    /// The largest α.
    pub fn to(&self) -> f64 {
        self.to
    }

    /// ln of the largest α over the smallest.
    pub fn span(&self) -> f64 {
        (self.to / self.from).ln()
    }

    /// The α in the middle of the logarithms.
    pub fn middle(&self) -> f64 {
        (self.from * self.to).sqrt()
    }

    /// Where an α lies between the ends: 0 at the smallest, 1 at the largest, even in ln α.
    pub fn place(&self, alpha: f64) -> f64 {
        (alpha / self.from).ln() / self.span()
    }

    /// Some α from the smallest to the largest, even in ln α.
    pub fn grid(&self, points: usize) -> Vec<f64> {
        let last = points.max(2) - 1;
        // The ends exactly, so that they are in the range.
        let at = |i: usize| match i {
            0 => self.from,
            i if i == last => self.to,
            i => self.from * (self.span() * i as f64 / last as f64).exp(),
        };
        (0..points).map(at).collect()
    }

    /// An α of the range as it is shown: rounded, unless that would be outside.
    pub fn shown(&self, alpha: f64) -> f64 {
        Some(rounded(alpha)).filter(|&near| self.contains(near)).unwrap_or(alpha)
    }

    /// The range with so much of its width (in ln α) more at each end.
    pub fn widened(&self, share: f64) -> Self {
        let factor = (share * self.span()).exp();
        Self { from: self.from / factor, to: self.to * factor }
    }

    /// Whether an α is in the range, but for rounding.
    pub fn contains(&self, alpha: f64) -> bool {
        alpha >= self.from * (1.0 - 1e-9) && alpha <= self.to * (1.0 + 1e-9)
    }

    /// The columns that tell a network an α: the twin of `condition.wgsl`.
    pub fn columns(&self, alpha: f64) -> [f32; COLUMNS] {
        let at = self.place(alpha) as f32 * (COLUMNS - 1) as f32;
        std::array::from_fn(|knot| (1.0 - (at - knot as f32).abs()).max(0.0))
    }
}

/// What a policy of many trade-offs knows about them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tradeoffs {
    /// The scale on which it is told an α.
    pub scale: AlphaRange,
    /// Those it was trained for; part of the scale.
    pub trained: AlphaRange,
}

impl Tradeoffs {
    /// Checks that the policy knows an α.
    ///
    /// # Errors
    /// It was not trained for it.
    pub fn check(&self, alpha: f64) -> Result<()> {
        if self.trained.contains(alpha) {
            return Ok(());
        }
        Err(Error::Config(format!(
            "α is {alpha}, but the model was trained for α from {}: choose one of these, or train it for others",
            self.trained
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: f64, to: f64) -> AlphaRange {
        AlphaRange::try_from([from, to]).expect("a range")
    }

    #[test]
    fn grids_are_even_in_the_logarithm_and_end_at_the_ends() {
        let range = range(0.01, 1.0);
        assert_eq!((range.grid(2), range.middle()), (vec![0.01, 1.0], 0.1));
        let grid = range.grid(5);
        assert!((grid[2] - 0.1).abs() < 1e-12 && (grid[1] / grid[0] - grid[4] / grid[3]).abs() < 1e-9);
        assert!(grid.iter().all(|&alpha| range.contains(alpha)) && !range.contains(1.01));
        assert_eq!(range.to_string(), "0.01 to 1");
    }

    #[test]
    fn hats_add_up_to_one_and_say_where_it_is() {
        let range = range(0.002, 0.3);
        for alpha in range.grid(23) {
            let hats = range.columns(alpha);
            assert!((hats.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{hats:?}");
            let place: f32 = hats.iter().zip(0u8..).map(|(hat, knot)| hat * f32::from(knot)).sum();
            assert!((f64::from(place) / (COLUMNS - 1) as f64 - range.place(alpha)).abs() < 1e-6);
        }
    }

    #[test]
    fn bad_ranges_are_refused() {
        for bad in [[0.1, 0.1], [0.2, 0.1], [0.0, 0.1], [-1.0, 1.0], [0.1, f64::INFINITY], [f64::NAN, 1.0]] {
            let error = AlphaRange::try_from(bad).expect_err("bad").to_string();
            assert!(error.contains("from a number above zero to a larger one"), "{error}");
        }
        let model = Tradeoffs { scale: range(0.001, 1.0), trained: range(0.01, 0.1) };
        assert!(model.check(0.05).is_ok());
        let error = model.check(0.5).expect_err("outside").to_string();
        assert!(error.contains("0.5") && error.contains("0.01 to 0.1"), "{error}");
    }
}
