//! The numbers of the methods' own uses of randomness, all in one place. Equal numbers are equal bits: two uses of one
//! run that shared them would not be independent. This does not compile if two blocks overlap.
//!
//! A new method takes the numbers behind the last block. Those that are taken stay, as they decide the bits of a run.

use super::{aaco, dime, fixed, gsmrl, myopic, nmppg, ol, sefa};
use crate::random::stream;

/// Numbers one after the other: the first, and the one behind the last.
#[derive(Clone, Copy)]
struct Block(u32, u32);

const NMPPG: Block = Block(nmppg::kernels::stream::SUBMASK, nmppg::kernels::stream::LEN);
/// Of GDFS and DiFA.
const MYOPIC: Block = Block(myopic::kernels::stream::CARDINALITY, myopic::kernels::stream::LEN);
const FIXED: Block = Block(fixed::kernels::stream::LIST, fixed::kernels::stream::LEN);
const DIME: Block = Block(dime::kernels::stream::CARDINALITY, dime::kernels::stream::LEN);
const GSMRL: Block = Block(gsmrl::kernels::stream::CARDINALITY, gsmrl::kernels::stream::LEN);
const AACO: Block = Block(aaco::kernels::stream::VISITED, aaco::kernels::stream::LEN);
const OL: Block = Block(ol::kernels::stream::CARDINALITY, ol::kernels::stream::LEN);
const SEFA: Block = Block(sefa::kernels::stream::CARDINALITY, sefa::kernels::stream::LEN);

// GSMRL's and AACO's begin at the same number. That does no harm, as no run has both.
const _: () = assert!(are_apart(&[NMPPG, MYOPIC, FIXED, DIME, GSMRL, OL, SEFA]));
const _: () = assert!(are_apart(&[NMPPG, MYOPIC, FIXED, DIME, AACO, OL, SEFA]));

/// Whether no number is in two blocks, or is one that every method uses.
const fn are_apart(blocks: &[Block]) -> bool {
    let mut i = 0;
    while i < blocks.len() {
        let Block(first, end) = blocks[i];
        // Those of dropout go on from there, a number for each layer.
        if first >= end || end > stream::dropout(2) {
            return false;
        }
        let mut j = 0;
        while j < stream::GENERAL.len() {
            if first <= stream::GENERAL[j] && stream::GENERAL[j] < end {
                return false;
            }
            j += 1;
        }
        let mut j = 0;
        while j < i {
            if first < blocks[j].1 && blocks[j].0 < end {
                return false;
            }
            j += 1;
        }
        i += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kernels::Part;
    use crate::methods::METHODS;

    #[test]
    fn overlaps_are_seen() {
        assert!(are_apart(&[Block(20, 22), Block(22, 23), Block(12, 20)]));
        for wrong in [
            &[Block(20, 22), Block(21, 23)][..],
            &[Block(20, 30), Block(22, 23)],
            &[Block(7, 9)],
            &[Block(20, 20)],
            &[Block(1000, 1003)],
        ] {
            assert!(!are_apart(wrong));
        }
    }

    /// Whoever has numbers of its own in a shader is in the list above.
    #[test]
    fn every_stream_of_a_shader_is_in_a_block() {
        let blocks = [NMPPG, MYOPIC, FIXED, DIME, GSMRL, AACO, OL, SEFA];
        let mut own = 0;
        for method in METHODS {
            for part in method.kernels.iter().flat_map(|kernel| kernel.parts) {
                let Part::Words(words) = part else { continue };
                for (name, number) in words.numbers.iter().filter(|(name, _)| name.starts_with("STREAM_")) {
                    let is_general = stream::GENERAL.contains(number);
                    let is_listed = blocks.iter().any(|block| (block.0..block.1).contains(number));
                    assert!(is_general || is_listed, "{}: {name} is {number}", method.name);
                    own += usize::from(!is_general);
                }
            }
        }
        assert!(own >= 5, "{own}");
    }
}
