//! Synthetic tasks whose best policy is known.
//!
//! The Syn family: eleven standard-normal features, x11 decides which of two formulas over the others
//! makes the label, so the best first question is x11 although it says nothing about the label alone.
//!
//! Cube-NM: the label shows in three of the ten entries of one block out of several; which block, the
//! cheap context indicators tell, which say nothing about the label either.

use super::{Dataset, Split};
use crate::error::Result;
use crate::problem::{Feature, Problem};
use crate::random::stream;
use crate::random::{Source, unit};

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

/// Rows of the paper's Cube-NM splits.
pub const CUBE_SIZES: [usize; 3] = [7_000, 1_500, 1_500];
/// Entries of a block.
const BLOCK: usize = 10;
/// Labels: the corners of a cube.
const CORNERS: u32 = 8;

/// A source's bits as a stream of words, for one row.
struct Words {
    source: Source,
    row: u32,
    block: u32,
    left: Vec<u32>,
}

impl Words {
    fn new(source: Source, row: u32) -> Self {
        Self { source, row, block: 0, left: Vec::new() }
    }

    fn next(&mut self) -> u32 {
        if self.left.is_empty() {
            self.left = self.source.bits(self.row, 0, self.block).to_vec();
            self.block += 1;
        }
        self.left.pop().unwrap_or_default()
    }

    fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.next()) * u64::from(n)) >> 32) as u32
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (self.next(), self.next());
        normal_pair(a, b)[0]
    }
}

/// Cube-NM: label y in 1..=8 and context r in 1..=contexts, both uniform. The first features are the
/// context's exact one-hot indicators (cost 0.2 each), then come `contexts` blocks of ten (cost 1 each).
/// In block r the entries q + 1 … q + 3 (q = y − 1) have the means given by q's three binary digits, most
/// significant first; every other mean is ½. Noise of standard deviation `sigma` everywhere but in the
/// context.
///
/// # Errors
/// No contexts, a `sigma` that is not a finite number above or equal to zero, or no training rows.
pub fn cube_nm(seed: u64, sizes: [usize; 3], contexts: usize, sigma: f64) -> Result<Dataset> {
    if contexts == 0 || !sigma.is_finite() || sigma < 0.0 {
        return Err(crate::Error::Config(format!(
            "Cube-NM with {contexts} contexts and sigma {sigma}: at least one context and a sigma of zero or more \
             are needed"
        )));
    }
    let splits = [0u32, 1, 2].map(|which| {
        let source = Source::new(seed, stream::DATA, 16 + which);
        let mut split = Split::default();
        for row in 0..sizes[which as usize] as u32 {
            let mut words = Words::new(source, row);
            let (label, context) = (words.below(CORNERS), words.below(contexts as u32));
            split.x.extend((0..contexts as u32).map(|r| if r == context { 1.0 } else { 0.0 }));
            for block in 0..contexts as u32 {
                for entry in 0..BLOCK as u32 {
                    let digit = entry.checked_sub(label).filter(|&digit| digit < 3 && block == context);
                    let mean = digit.map_or(0.5, |digit| f64::from(label >> (2 - digit) & 1));
                    split.x.push((mean + sigma * words.normal()) as f32);
                }
            }
            split.y.push(label);
        }
        split
    });
    let indicators = (1..=contexts).map(|r| Feature { name: format!("context {r}"), cost: 0.2 });
    let entries = (1..=contexts).flat_map(|block| {
        (1..=BLOCK).map(move |entry| Feature { name: format!("block {block}.{entry}"), cost: 1.0 })
    });
    let features: Vec<Feature> = indicators.chain(entries).collect();
    let columns = (0..features.len() as u32).collect();
    let classes = (1..=CORNERS).map(|label| label.to_string()).collect();
    let [train, validation, test] = splits;
    Dataset::new(Problem::new(features, columns, classes)?, train, validation, test)
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
    fn cube_shows_the_label_in_the_active_block_only() {
        let data = cube_nm(5, [4_000, 10, 10], 5, 0.1).expect("valid");
        let split = &data.splits()[0];
        let columns = data.problem().columns();
        assert_eq!(columns, 55);
        assert_eq!(data.problem().features()[4].cost, 0.2);
        assert_eq!(data.problem().features()[5].name, "block 1.1");
        let mut sums = vec![[0.0f64; BLOCK]; 8];
        let mut counts = [0.0f64; 8];
        for (x, &label) in split.x.chunks_exact(columns).zip(&split.y) {
            let context = x[..5].iter().position(|&v| v == 1.0).expect("one context");
            assert_eq!(x[..5].iter().sum::<f32>(), 1.0);
            let active = &x[5 + context * BLOCK..][..BLOCK];
            sums[label as usize].iter_mut().zip(active).for_each(|(sum, &v)| *sum += f64::from(v));
            counts[label as usize] += 1.0;
            let idle = &x[5 + ((context + 1) % 5) * BLOCK..][..BLOCK];
            assert!(idle.iter().all(|v| (v - 0.5).abs() < 0.6));
        }
        // Label 7 (q = 6 = 110b): entries 7, 8, 9 are 1, 1, 0, the others ½.
        let means: Vec<f64> = sums[6].iter().map(|sum| sum / counts[6]).collect();
        let expected = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 0.0, 0.5];
        assert!(means.iter().zip(expected).all(|(got, want)| (got - want).abs() < 0.03), "{means:?}");
        assert!(counts.iter().all(|&n| (n - 500.0).abs() < 100.0), "{counts:?}");
    }

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
