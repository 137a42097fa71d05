//! Some rows of a long table, chosen at random while it is read.

use crate::random::{Source, stream};

/// So many rows of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Rows that are taken.
    pub rows: u64,
    /// Rows that there are.
    pub of: u64,
}

/// Decides row by row: each of those that are left is as likely to be taken, and at the end there are exactly as many as
/// were asked for. Which ones depends on the seed and on the rows' numbers alone.
pub(super) struct Choice {
    source: Source,
    sample: Sample,
    seen: u64,
    taken: u64,
}

impl Choice {
    pub fn new(sample: Sample, seed: u64) -> Self {
        // The split has 77 for itself.
        Self { source: Source::new(seed, stream::DATA, 78), sample, seen: 0, taken: 0 }
    }

    /// Whether the next row is taken.
    pub fn takes(&mut self) -> bool {
        let left = self.sample.of.saturating_sub(self.seen);
        let bits = self.source.bits(self.seen as u32, (self.seen >> 32) as u32, 0);
        let drawn = u64::from(bits[0]) << 32 | u64::from(bits[1]);
        // A number from 0 to left − 1.
        let place = (u128::from(drawn) * u128::from(left)) >> 64;
        let takes = place < u128::from(self.sample.rows - self.taken);
        self.seen += 1;
        self.taken += u64::from(takes);
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rows: u64, of: u64, seed: u64) -> Vec<u64> {
        let mut choice = Choice::new(Sample { rows, of }, seed);
        (0..of).filter(|_| choice.takes()).collect()
    }

    #[test]
    fn a_sample_is_exact_and_even() {
        for (rows, of) in [(0, 5), (1, 1), (7, 7), (1, 1000), (999, 1000)] {
            assert_eq!(taken(rows, of, 3).len() as u64, rows);
        }
        assert_eq!(taken(50, 200, 3), taken(50, 200, 3));
        assert_ne!(taken(50, 200, 3), taken(50, 200, 4));
        // Every row has its turn: a quarter of 400 seeds each, give or take five deviations.
        let mut counts = [0u32; 200];
        (0..400).flat_map(|seed| taken(50, 200, seed)).for_each(|row| counts[row as usize] += 1);
        assert!(counts.iter().all(|count| (57..=143).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_table_that_has_grown_gives_no_more() {
        let mut choice = Choice::new(Sample { rows: 3, of: 10 }, 0);
        assert_eq!((0..50).filter(|_| choice.takes()).count(), 3);
    }
}
