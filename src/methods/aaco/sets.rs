//! Candidate sets: which features could be acquired together.

use super::kernels::stream;
use crate::random::Source;
use std::collections::HashSet;

/// Sets of the features that are open, as bits over their places; the empty set is not among them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sets {
    /// Words of a set.
    words: usize,
    bits: Vec<u64>,
}

/// Random words, as many as are asked for.
struct Bits {
    source: Source,
    candidate: u32,
    /// Words that were used.
    used: u32,
    block: [u32; 4],
}

impl Bits {
    /// One of 0..n.
    fn below(&mut self, n: usize) -> usize {
        if self.used.is_multiple_of(4) {
            self.block = self.source.bits(self.candidate, 0, self.used / 4);
        }
        let word = self.block[self.used as usize % 4];
        self.used += 1;
        ((u64::from(word) * n as u64) >> 32) as usize
    }
}

impl Sets {
    /// Sets of `open` features: all there are, in the order of their bits, if they are at most so many; else so many by
    /// chance, their sizes uniform, and of equal ones the first. `mark` keys the chance.
    pub fn draw(open: usize, candidates: usize, seed: u64, mark: u32) -> Self {
        let words = open.div_ceil(64).max(1);
        if open < 32 && (1usize << open) - 1 <= candidates {
            return Self { words, bits: (1..1u64 << open).collect() };
        }
        let source = Source::new(seed, stream::SETS, mark);
        let mut places: Vec<usize> = (0..open).collect();
        let (mut bits, mut seen) = (Vec::with_capacity(words * candidates), HashSet::new());
        for candidate in 0..candidates as u32 {
            let mut random = Bits { source, candidate, used: 0, block: [0; 4] };
            let size = 1 + random.below(open);
            // Of a large set, what is not in it is drawn.
            let drawn = size.min(open - size);
            for place in 0..drawn {
                places.swap(place, place + random.below(open - place));
            }
            let members = if drawn == size { &places[..size] } else { &places[drawn..] };
            let mut set = vec![0u64; words];
            members.iter().for_each(|place| set[place / 64] |= 1 << (place % 64));
            if !seen.contains(&set) {
                bits.extend(&set);
                seen.insert(set);
            }
        }
        Self { words, bits }
    }

    /// Each feature alone.
    pub fn alone(open: usize) -> Self {
        let words = open.div_ceil(64).max(1);
        let mut bits = vec![0; words * open];
        for place in 0..open {
            bits[place * words + place / 64] = 1 << (place % 64);
        }
        Self { words, bits }
    }

    /// One of the sets without each of its features in turn.
    pub fn without_each(&self, set: usize) -> Self {
        let whole = &self.bits[set * self.words..][..self.words];
        let mut bits = Vec::new();
        for place in self.places(set) {
            let at = bits.len() + place / 64;
            bits.extend(whole);
            bits[at] &= !(1 << (place % 64));
        }
        Self { words: self.words, bits }
    }

    /// Nothing at all.
    pub fn nothing() -> Self {
        Self { words: 1, bits: vec![0] }
    }

    pub fn len(&self) -> usize {
        self.bits.len() / self.words
    }

    /// The places of a set's features, ascending.
    pub fn places(&self, set: usize) -> impl Iterator<Item = usize> + '_ {
        let words = self.bits[set * self.words..][..self.words].iter().enumerate();
        words.flat_map(|(word, &bits)| {
            let mut left = bits;
            std::iter::from_fn(move || {
                let place = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(64 * word + place)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sets_where_they_are_few() {
        let sets = Sets::draw(3, 7, 1, 2);
        assert_eq!(sets.len(), 7);
        let all: Vec<Vec<usize>> = (0..7).map(|set| sets.places(set).collect()).collect();
        assert_eq!(all[..4], [vec![0], vec![1], vec![0, 1], vec![2]]);
        assert!((1..=6).contains(&Sets::draw(3, 6, 1, 2).len()), "some by chance, none twice");
        assert_eq!(Sets::draw(0, 5, 1, 2).len(), 0);
        assert_eq!(Sets::alone(70).places(69).collect::<Vec<_>>(), [69]);
        assert_eq!(Sets::nothing().places(0).count(), 0);
        let fewer = sets.without_each(6);
        let fewer: Vec<Vec<usize>> = (0..3).map(|set| fewer.places(set).collect()).collect();
        assert_eq!(fewer, [[1, 2], [0, 2], [0, 1]]);
        assert_eq!(Sets::alone(70).without_each(69).places(0).count(), 0);
    }

    /// Sizes are uniform, so is who is in a set of one size, no set is there twice, and the key decides.
    #[test]
    fn many_sets_are_drawn_evenly() {
        const OPEN: usize = 90;
        let sets = Sets::draw(OPEN, 9_000, 3, 4);
        assert!((8_700..9_000).contains(&sets.len()), "{} are left", sets.len());
        let (mut sizes, mut members) = ([0usize; OPEN + 1], [0usize; OPEN]);
        let mut seen = HashSet::new();
        for set in 0..sets.len() {
            let places: Vec<usize> = sets.places(set).collect();
            assert!(!places.is_empty() && places.is_sorted());
            sizes[places.len()] += 1;
            places.iter().for_each(|&place| members[place] += 1);
            assert!(seen.insert(places));
        }
        let of = |sizes: &[usize]| sizes.iter().sum::<usize>() as f64 / 9_000.0;
        assert!((of(&sizes[1..31]) - 1.0 / 3.0).abs() < 0.03, "{}", of(&sizes[1..31]));
        assert!((of(&sizes[61..]) - 1.0 / 3.0).abs() < 0.03, "{}", of(&sizes[61..]));
        let mean = members.iter().sum::<usize>() as f64 / OPEN as f64;
        assert!(members.iter().all(|&count| (count as f64 / mean - 1.0).abs() < 0.05), "{members:?}");
        assert_eq!(sets, Sets::draw(OPEN, 9_000, 3, 4));
        assert_ne!(sets, Sets::draw(OPEN, 9_000, 3, 5));
    }
}
