//! Where the pieces of a number's encoding begin and end (a piecewise linear encoding: Gorishniy, Rubachev and Babenko,
//! "On embeddings for numerical features in tabular deep learning", 2022, which has both kinds of them).
//!
//! At quantiles, so that each piece has as many rows; and where the classes change, which quantiles may miss: what a network
//! makes of the number may bend there.

use crate::data::ranges::quantile;
use std::cmp::Ordering;

/// Numbers of a table with fewer training rows are not cut into pieces: each would be learned from a handful of rows.
const FEW_ROWS: usize = 1_000;
/// Nor by the classes of fewer than these, which would be learned by heart (docs/training.md has what was measured).
const FEW_LABELS: usize = 2_000;
/// Training rows of a piece at least (docs/training.md has what was measured).
const ROWS_OF_A_PIECE: usize = 300;
/// The same of pieces that the classes cut.
const ROWS_OF_A_CUT: usize = 32;
/// Pieces at most, where nobody says how many; and as many again by classes.
const PIECES_BY_ROWS: usize = 24;
/// Places where the classes may cut, at most.
const PLACES: usize = 1_024;
/// How unlikely what a cut gains has to be by chance: e^−3 for a given cut.
const BEYOND_CHANCE: f64 = 3.0;

/// The numbers of the training rows, rising, and each with its class in the order of the rows, which is looked at only where there
/// are classes.
pub(super) struct Numbers<'a, L> {
    pub sorted: &'a [f64],
    pub labelled: L,
    pub classes: usize,
}

impl<L: Iterator<Item = (f64, u32)>> Numbers<'_, L> {
    /// So many pieces of as many rows each, or as many as there are rows for, and at most as many cuts by classes. None where
    /// there would be one piece only, which is the number itself.
    pub fn knots(self, pieces: Option<usize>) -> Vec<f64> {
        let rows = self.sorted.len();
        let pieces = pieces.unwrap_or(by_rows(rows));
        let at = |share: usize| quantile(self.sorted, share as f64 / pieces.max(1) as f64);
        let mut knots: Vec<f64> = (0..=pieces).map(at).collect();
        if rows >= FEW_LABELS && pieces > 0 && self.classes > 1 {
            // Where both neighbours are knots, no number lies within the piece, and cutting it tells nothing more.
            let is_knot = |value: &f64| knots.binary_search_by(|knot| knot.total_cmp(value)).is_ok();
            let mut cuts = Places::new(self).cuts(pieces - 1);
            cuts.retain(|[low, high]| !(is_knot(low) && is_knot(high)));
            knots.extend(cuts.into_iter().map(|[low, high]| low.midpoint(high)));
            knots.sort_unstable_by(f64::total_cmp);
        }
        knots.dedup();
        if knots.len() > 2 { knots } else { Vec::new() }
    }
}

/// Pieces of as many rows each, where nobody says how many.
fn by_rows(rows: usize) -> usize {
    if rows < FEW_ROWS { 0 } else { (rows / ROWS_OF_A_PIECE).min(PIECES_BY_ROWS) }
}

/// Cuts by classes that a column can have at most, of which these numbers are known, rising, and which has so many in all.
pub(super) fn most_cuts(sorted: &[f64], rows: u64, pieces: Option<usize>) -> usize {
    let different = sorted.chunk_by(|a, b| a == b).count();
    let pieces = pieces.unwrap_or(by_rows(rows.try_into().unwrap_or(usize::MAX)));
    if rows < FEW_LABELS as u64 { 0 } else { pieces.saturating_sub(1).min(different.saturating_sub(1)) }
}

/// The places where a column may be cut, with the classes of what lies between them.
struct Places {
    /// The two numbers of the training rows that each lies between, rising.
    edges: Vec<[f64; 2]>,
    /// For each place, and one beyond the last, how many rows of each class lie below.
    below: Vec<f64>,
    classes: usize,
}

/// Neighbouring intervals between places, and the best cut of them.
struct Run {
    from: usize,
    to: usize,
    at: usize,
    gain: f64,
}

impl Places {
    fn new<L: Iterator<Item = (f64, u32)>>(numbers: Numbers<'_, L>) -> Self {
        let Numbers { sorted, labelled, classes } = numbers;
        let step = sorted.len().div_ceil(PLACES);
        let (mut edges, mut last) = (Vec::new(), 0);
        for at in 1..sorted.len() {
            let (low, high) = (sorted[at - 1], sorted[at]);
            if low < high && at - last >= step {
                edges.push([low, high]);
                last = at;
            }
        }
        let mut below = vec![0.0; (edges.len() + 2) * classes];
        for (value, label) in labelled {
            let interval = edges.partition_point(|[low, _]| *low < value);
            below[(interval + 1) * classes + label as usize] += 1.0;
        }
        for at in classes..below.len() {
            below[at] += below[at - classes];
        }
        Self { edges, below, classes }
    }

    /// The cuts of a decision tree that sees this column alone: always the one that lowers the entropy of the classes most.
    fn cuts(&self, most: usize) -> Vec<[f64; 2]> {
        let mut open: Vec<Run> = self.best(0, self.edges.len() + 1).into_iter().collect();
        let mut cuts = Vec::new();
        while cuts.len() < most {
            let of_most = |a: &(usize, &Run), b: &(usize, &Run)| {
                a.1.gain.partial_cmp(&b.1.gain).unwrap_or(Ordering::Equal).then(b.1.from.cmp(&a.1.from))
            };
            let Some((index, _)) = open.iter().enumerate().max_by(of_most) else { break };
            let Run { from, to, at, .. } = open.swap_remove(index);
            cuts.push(self.edges[at - 1]);
            open.extend(self.best(from, at));
            open.extend(self.best(at, to));
        }
        cuts
    }

    /// The cut of the intervals `from..to` that gains most, if it is more than chance gains.
    ///
    /// With n_c rows of class c among n, their entropy is −Σ n_c ln(n_c / n) = n ln n − Σ n_c ln n_c nats; a cut gains what the
    /// two sides together have less of it. Of labels that have nothing to do with the number, twice the gain of a given cut is about χ²
    /// with d degrees of freedom, one less than there are classes here (Wilks), which is above d + 2 √(d t) + 2 t with a chance
    /// of at most e^−t (Laurent and Massart).
    fn best(&self, from: usize, to: usize) -> Option<Run> {
        let count = |at: usize, class: usize| self.below[at * self.classes + class];
        // Rows of the intervals `from..to`, and their entropy.
        let entropy = |from: usize, to: usize| {
            let each = (0..self.classes).map(|class| count(to, class) - count(from, class));
            let (rows, sum) = each.fold((0.0, 0.0), |(rows, sum), n| (rows + n, sum + n_ln_n(n)));
            (rows, n_ln_n(rows) - sum)
        };
        let (_, before) = entropy(from, to);
        let there = (0..self.classes).filter(|&class| count(to, class) > count(from, class)).count();
        let (d, t) = (there.saturating_sub(1) as f64, BEYOND_CHANCE);
        let mut best = Run { from, to, at: from, gain: d / 2.0 + (d * t).sqrt() + t };
        for at in from + 1..to {
            let ((low, left), (high, right)) = (entropy(from, at), entropy(at, to));
            let gain = before - left - right;
            if low.min(high) >= ROWS_OF_A_CUT as f64 && gain > best.gain {
                best = Run { at, gain, ..best };
            }
        }
        (best.at > from).then_some(best)
    }
}

fn n_ln_n(n: f64) -> f64 {
    if n > 0.0 { n * n.ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knots(values: &[f64], labels: &[u32], classes: usize, pieces: Option<usize>) -> Vec<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let labelled = values.iter().copied().zip(labels.iter().copied());
        Numbers { sorted: &sorted, labelled, classes }.knots(pieces)
    }

    /// 0 to n − 1 in a mixed order.
    fn mixed(n: usize) -> Vec<f64> {
        (0..n).map(|row| (row * 7_919 % n) as f64).collect()
    }

    #[test]
    fn quantiles_and_where_the_classes_change() {
        let values = mixed(3_000);
        // Class 1 in a narrow band that no quantile bounds.
        let labels: Vec<u32> = values.iter().map(|v| u32::from((1_010.0..1_060.0).contains(v))).collect();
        let found = knots(&values, &labels, 2, None);
        let by_rows = knots(&values, &[], 1, None);
        assert_eq!(by_rows.len(), 11, "a piece for each 300 rows");
        assert_eq!(knots(&mixed(9_000), &[], 1, None).len(), 25, "as many pieces as there may be");
        let added: Vec<f64> = found.iter().copied().filter(|knot| !by_rows.contains(knot)).collect();
        assert_eq!(added.len(), 2, "{added:?}");
        // Places are at least three rows apart.
        assert!((added[0] - 1_009.5).abs() <= 3.0 && (added[1] - 1_059.5).abs() <= 3.0, "{added:?}");
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(knots(&values, &labels, 2, Some(0)), [0.0; 0]);
        let few = knots(&values, &labels, 2, Some(2));
        assert_eq!(few.len(), 4, "two pieces by rows, and one cut: {few:?}");
    }

    #[test]
    fn labels_that_have_nothing_to_do_with_it_cut_hardly_ever() {
        let values = mixed(4_000);
        // A hash, so that nothing is even about them.
        let label = |at: usize, seed: u64| {
            let mut h = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed << 40);
            h = (h ^ (h >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            h >> 33
        };
        for classes in [2, 3, 5, 10, 26] {
            let cuts = |seed: u64| {
                let labels: Vec<u32> =
                    (0..values.len()).map(|at| (label(at, seed) % classes) as u32).collect();
                knots(&values, &labels, classes as usize, Some(24)).len() - 25
            };
            let cuts: usize = (0..20).map(cuts).sum();
            assert!(cuts <= 10, "{cuts} in 20 columns of {classes} classes");
        }
    }

    #[test]
    fn few_rows_and_equal_numbers() {
        let values = mixed(1_500);
        let labels: Vec<u32> = values.iter().map(|v| u32::from(*v < 333.0)).collect();
        assert_eq!(knots(&values, &labels, 2, None), knots(&values, &[], 1, None), "too few to trust labels");
        assert_eq!(knots(&mixed(900), &labels[..900], 2, None), [0.0; 0]);
        // Two numbers are one piece, whatever the classes are.
        let labels: Vec<u32> = (0..5_000).map(|row| u32::from(row % 7 == 0)).collect();
        let two: Vec<f64> = labels.iter().map(|&label| label.into()).collect();
        assert_eq!(knots(&two, &labels, 2, None), [0.0; 0]);
        assert_eq!(knots(&vec![4.0; 5_000], &labels, 2, None), [0.0; 0]);
        // What a table is told to need before it is read is never less.
        for (values, most) in [(&mixed(3_000), 9), (&two, 1), (&vec![4.0; 5_000], 0)] {
            let mut sorted = values.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            assert_eq!(most_cuts(&sorted, 3_000, None), most);
            assert_eq!(most_cuts(&sorted, 1_999, None), 0);
        }
    }
}
