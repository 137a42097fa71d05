//! Synthetic tasks whose best policy is known.
//!
//! The Syn family: eleven standard-normal features, x11 decides which of two formulas over the others
//! makes the label, so the best first question is x11 although it says nothing about the label alone.

use super::{Dataset, Split};
use crate::engine::random::{Source, unit};
use crate::engine::state::stream;
use crate::error::Result;
use crate::problem::Problem;

/// Features of the Syn tasks.
const FEATURES: usize = 11;
/// Rows of the paper's splits.
pub const SYN_SIZES: [usize; 3] = [60_000, 10_000, 10_000];

/// Two standard-normal numbers by the Box–Muller transform.
fn normal_pair(a: u32, b: u32) -> [f64; 2] {
    let radius = (-2.0 * unit(a).ln()).sqrt();
    let angle = std::f64::consts::TAU * unit(b);
    [radius * angle.cos(), radius * angle.sin()]
}

fn l1(x: &[f64; FEATURES]) -> f64 {
    4.0 * x[0] * x[1]
}

fn l2(x: &[f64; FEATURES]) -> f64 {
    1.2 * x[2..6].iter().map(|v| v * v).sum::<f64>() - 4.2
}

fn l3(x: &[f64; FEATURES]) -> f64 {
    -10.0 * (0.2 * x[6]).sin() + x[7].abs() + x[8] + (-x[9]).exp() - 2.4
}

type Logit = fn(&[f64; FEATURES]) -> f64;

fn syn(seed: u64, sizes: [usize; 3], below: Logit, above: Logit) -> Result<Dataset> {
    let splits = [0u32, 1, 2].map(|which| {
        let source = Source::new(seed, stream::DATA, which);
        let mut split = Split::default();
        for row in 0..sizes[which as usize] as u32 {
            let draws: [[u32; 4]; 4] = std::array::from_fn(|block| source.bits(row, 0, block as u32));
            let draws = draws.as_flattened();
            // Twelve normals from twelve words; the label's coin is the thirteenth.
            let x: [f64; FEATURES] = std::array::from_fn(|i| normal_pair(draws[i & !1], draws[i | 1])[i & 1]);
            let logit = if x[10] < 0.0 { below(&x) } else { above(&x) };
            let is_one = unit(draws[12]) < 1.0 / (1.0 + logit.exp());
            split.x.extend(x.map(|value| value as f32));
            split.y.push(u32::from(is_one));
        }
        split
    });
    let [train, validation, test] = splits;
    Dataset::new(Problem::ungrouped(&[1.0; FEATURES], 2)?, train, validation, test)
}

/// Syn1: 4·x1·x2 if x11 < 0, else 1.2·Σ x3..6² − 4.2. Sizes of the training, validation and test
/// splits; [`SYN_SIZES`] are the paper's.
///
/// # Errors
/// No training rows.
pub fn syn1(seed: u64, sizes: [usize; 3]) -> Result<Dataset> {
    syn(seed, sizes, l1, l2)
}

/// Syn2: 4·x1·x2 if x11 < 0, else −10·sin(0.2·x7) + |x8| + x9 + exp(−x10) − 2.4.
///
/// # Errors
/// No training rows.
pub fn syn2(seed: u64, sizes: [usize; 3]) -> Result<Dataset> {
    syn(seed, sizes, l1, l3)
}

/// Syn3: 1.2·Σ x3..6² − 4.2 if x11 < 0, else −10·sin(0.2·x7) + |x8| + x9 + exp(−x10) − 2.4.
///
/// # Errors
/// No training rows.
pub fn syn3(seed: u64, sizes: [usize; 3]) -> Result<Dataset> {
    syn(seed, sizes, l2, l3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syn_features_are_standard_normal_and_labels_follow_the_formula() {
        let data = syn1(1, [20_000, 10, 10]).expect("valid");
        let split = &data.splits()[0];
        for feature in 0..FEATURES {
            let column = split.x.iter().skip(feature).step_by(FEATURES).map(|&v| f64::from(v));
            let (sum, squares) = column.fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
            let n = split.y.len() as f64;
            assert!((sum / n).abs() < 0.03 && (squares / n - 1.0).abs() < 0.05, "x{}", feature + 1);
        }
        // P(y = 1 | x11 < 0, x1·x2 > 1) is small, and large for x1·x2 < −1.
        let share = |sign: f32| {
            let rows = split.x.chunks_exact(FEATURES).zip(&split.y);
            let hits: Vec<u32> = rows
                .filter(|(x, _)| x[10] < 0.0 && sign * x[0] * x[1] > 1.0)
                .map(|(_, &label)| label)
                .collect();
            hits.iter().sum::<u32>() as f64 / hits.len() as f64
        };
        assert!(share(1.0) < 0.05 && share(-1.0) > 0.95);
        assert_eq!(data, syn1(1, [20_000, 10, 10]).expect("valid"));
        assert_ne!(data.splits()[1], data.splits()[2]);
    }
}
