//! A target that is a number: the ranges that it is cut into are the classes.

use super::numbers::{Decimal, number_in};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Ranges of numbers, the lowest first. A number that is an edge is in the range above it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranges {
    /// Where one range ends and the next begins, ascending.
    pub edges: Vec<f64>,
    /// How the table writes its numbers, if they are not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<Decimal>,
}

impl Ranges {
    /// The ranges' names: `below 1.5`, `1.5 to 3`, `3 and more`.
    pub fn names(&self) -> Vec<String> {
        let (Some(first), Some(last)) = (self.edges.first(), self.edges.last()) else { return Vec::new() };
        let between = self.edges.windows(2).map(|pair| format!("{} to {}", pair[0], pair[1]));
        std::iter::once(format!("below {first}"))
            .chain(between)
            .chain(std::iter::once(format!("{last} and more")))
            .collect()
    }

    /// The range that a number is in.
    pub fn of(&self, value: f64) -> u32 {
        self.edges.partition_point(|edge| *edge <= value) as u32
    }

    /// The range of a cell's number.
    ///
    /// # Errors
    /// The cell has no number.
    pub fn of_cell(&self, cell: &str) -> Result<u32> {
        Ok(self.of(number_in(cell, self.decimal)?))
    }

    /// Checks that the edges can be some.
    ///
    /// # Errors
    /// There is none, or one is not finite or not above the one before.
    pub fn check(&self) -> Result<()> {
        let fail = |what: String| Err(Error::Problem(what));
        if self.edges.is_empty() {
            return fail("there are no edges: at least one is needed, such as edges = [10]".into());
        }
        if let Some(edge) = self.edges.iter().find(|edge| !edge.is_finite()) {
            return fail(format!("an edge is {edge}, but edges are finite numbers"));
        }
        match self.edges.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => fail(format!(
                "the edges {} and {} are not in order: each must be above the one before",
                pair[0], pair[1]
            )),
            None => Ok(()),
        }
    }
}

/// Edges that cut numbers into so many ranges with about as many numbers each; fewer where many numbers are the same.
#[cfg(feature = "table")]
pub(crate) fn quantile_edges(values: &[f64], bins: usize) -> Vec<f64> {
    use super::numbers::short;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |edge: f64| sorted.partition_point(|value| *value < edge);
    let mut edges: Vec<f64> = Vec::new();
    for k in 1..bins {
        let edge = quantile(&sorted, k as f64 / bins as f64);
        // An edge that leaves the range below it without a number is none.
        if below(edge) > edges.last().map_or(0, |last| below(*last)) {
            edges.push(edge);
        }
    }
    // Numbers that people can read, where they cut about the same.
    let rounded: Vec<f64> = edges.iter().filter_map(|edge| short(*edge).parse().ok()).collect();
    let most_apart = sorted.len() / (20 * bins.max(1));
    let alike =
        edges.iter().zip(&rounded).all(|(edge, round)| below(*edge).abs_diff(below(*round)) <= most_apart);
    let counts: Vec<usize> =
        std::iter::once(0).chain(rounded.iter().map(|edge| below(*edge))).chain([sorted.len()]).collect();
    if alike && counts.windows(2).all(|pair| pair[0] < pair[1]) { rounded } else { edges }
}

/// A quantile of sorted values, between neighbours in proportion.
#[cfg(feature = "table")]
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

#[cfg(all(test, feature = "table"))]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_names_and_edges_belong_above() {
        let ranges = Ranges { edges: vec![1.5, 3.0], decimal: None };
        assert_eq!(ranges.names(), ["below 1.5", "1.5 to 3", "3 and more"]);
        assert_eq!([-9.0, 1.4, 1.5, 2.9, 3.0, 99.0].map(|value| ranges.of(value)), [0, 0, 1, 1, 2, 2]);
        assert_eq!(ranges.of_cell(" 2 ").expect("a number"), 1);
        assert!(ranges.of_cell("two").is_err());
        assert!(Ranges { edges: vec![], decimal: None }.check().is_err());
        assert!(Ranges { edges: vec![1.0, 1.0], decimal: None }.check().is_err());
        assert!(Ranges { edges: vec![f64::NAN], decimal: None }.check().is_err());
    }

    #[test]
    fn every_bin_has_numbers() {
        let even: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(quantile_edges(&even, 4), [249.8, 499.5, 749.2]);
        // More than half of them are the same.
        let same: Vec<f64> = (0..100).map(|i| if i < 60 { 0.0 } else { f64::from(i) }).collect();
        let edges = quantile_edges(&same, 4);
        assert_eq!(edges.len(), 1, "{edges:?}");
        assert!(quantile_edges(&[7.0; 50], 4).is_empty());
        // Too close together to be rounded.
        let close: Vec<f64> = (0..100).map(|i| 5000.0 + f64::from(i) / 1000.0).collect();
        let edges = quantile_edges(&close, 3);
        assert_eq!(edges.len(), 2);
        assert!(edges.iter().all(|edge| (5000.0..5000.1).contains(edge)), "{edges:?}");
    }
}
