//! Random bits as a pure function of what they are for, the same on both engines: the host's twin
//! of `shaders/lib/random.wgsl`.

use pulp::Simd;

/// One number for each use of randomness. Methods number their own uses besides (`Entry::streams`).
pub mod stream {
    /// Gumbel noise.
    pub const GUMBEL: u32 = 1;
    /// Dropout of a hidden layer: 2 and 3 for the first two, then numbers that nothing else has.
    pub const fn dropout(layer: u32) -> u32 {
        if layer < 2 { 2 + layer } else { 1000 + layer }
    }
    /// Masks that are drawn feature by feature.
    pub const MASK: u32 = 4;
    /// The order of the data.
    pub const SHUFFLE: u32 = 5;
    /// Initial weights (on the host).
    pub const INIT: u32 = 6;
    /// Synthetic data (on the host).
    pub const DATA: u32 = 7;
    /// Noise on the rows.
    pub const INPUT_NOISE: u32 = 9;
    /// Conditions of the instances.
    pub const CONDITION: u32 = 10;
    /// What can be had of an instance.
    pub const AVAILABLE: u32 = 11;
    /// All of these, but for the dropout of layers beyond the second.
    pub const GENERAL: [u32; 10] =
        [GUMBEL, dropout(0), dropout(1), MASK, SHUFFLE, INIT, DATA, INPUT_NOISE, CONDITION, AVAILABLE];
}

/// Each round's rotations, over and over.
const ROTATIONS: [[u32; 2]; 8] =
    [[10, 26], [11, 21], [13, 27], [23, 5], [6, 20], [17, 11], [25, 10], [18, 20]];
const ROUNDS: usize = 13;

/// Threefry-4x32 with 13 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
pub fn threefry(key: [u32; 4], counter: [u32; 4]) -> [u32; 4] {
    let keys = [key[0], key[1], key[2], key[3], 0x1bd1_1bda ^ key[0] ^ key[1] ^ key[2] ^ key[3]];
    let mut x = counter;
    for (word, &k) in x.iter_mut().zip(&keys) {
        *word = word.wrapping_add(k);
    }
    for round in 0..ROUNDS {
        if round > 0 && round % 4 == 0 {
            let injection = round / 4;
            for (i, word) in x.iter_mut().enumerate() {
                *word = word.wrapping_add(keys[(injection + i) % 5]);
            }
            x[3] = x[3].wrapping_add(injection as u32);
        }
        let [a, b] = ROTATIONS[round % 8];
        // Odd rounds exchange the second words of the two pairs.
        let (first, second) = if round % 2 == 0 { (1, 3) } else { (3, 1) };
        x[0] = x[0].wrapping_add(x[first]);
        x[first] = x[first].rotate_left(a) ^ x[0];
        x[2] = x[2].wrapping_add(x[second]);
        x[second] = x[second].rotate_left(b) ^ x[2];
    }
    x
}

/// How many blocks [`threefry_blocks`] makes at a time: what the widest vectors hold.
pub const BLOCKS: usize = 16;

/// [`threefry`] on many counters (instance, t, block) at once, word by word.
#[inline(always)]
pub fn threefry_blocks<S: Simd>(simd: S, key: [u32; 4], counters: [[u32; BLOCKS]; 3]) -> [[u32; BLOCKS]; 4] {
    let mut bits = [[0; BLOCKS]; 4];
    for at in (0..BLOCKS).step_by(S::U32_LANES) {
        let mut x = [simd.splat_u32s(0); 4];
        for (x, words) in x.iter_mut().zip(&counters) {
            *x = simd.partial_load_u32s(&words[at..][..S::U32_LANES]);
        }
        let x = threefry_vectors(simd, key, x);
        for (to, &words) in bits.iter_mut().zip(&x) {
            simd.partial_store_u32s(&mut to[at..][..S::U32_LANES], words);
        }
    }
    bits
}

/// [`threefry`], a vector for each word. Its rounds are written out: in a loop, compilers keep the words in memory,
/// which makes it several times as slow.
#[inline(always)]
fn threefry_vectors<S: Simd>(simd: S, key: [u32; 4], mut x: [S::u32s; 4]) -> [S::u32s; 4] {
    let keys = [key[0], key[1], key[2], key[3], 0x1bd1_1bda ^ key[0] ^ key[1] ^ key[2] ^ key[3]];
    macro_rules! inject {
        ($injection:literal) => {
            for i in 0..4 {
                let k = keys[($injection + i) % 5].wrapping_add(if i == 3 { $injection } else { 0 });
                x[i] = simd.add_u32s(x[i], simd.splat_u32s(k));
            }
        };
    }
    macro_rules! rounds {
        ($($round:literal)*) => {
            $({
                let [a, b] = ROTATIONS[$round % 8];
                let (first, second) = if $round % 2 == 0 { (1, 3) } else { (3, 1) };
                for (sum, other, by) in [(0, first, a), (2, second, b)] {
                    x[sum] = simd.add_u32s(x[sum], x[other]);
                    let up = simd.wrapping_dyn_shl_u32s(x[other], simd.splat_u32s(by));
                    let down = simd.wrapping_dyn_shr_u32s(x[other], simd.splat_u32s(32 - by));
                    x[other] = simd.xor_u32s(simd.or_u32s(up, down), x[sum]);
                }
            })*
        };
    }
    inject!(0);
    rounds!(0 1 2 3);
    inject!(1);
    rounds!(4 5 6 7);
    inject!(2);
    rounds!(8 9 10 11);
    inject!(3);
    rounds!(12);
    x
}

/// A uniform number strictly between 0 and 1: an odd multiple of 2⁻²⁴, exact in f32.
pub fn unit(bits: u32) -> f64 {
    (f64::from(bits >> 9) + 0.5) / 8_388_608.0
}

/// The bits for one use at one training step.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    key: [u32; 4],
}

impl Source {
    /// For a seed, a use of randomness and a step.
    pub fn new(seed: u64, stream: u32, step: u32) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32, stream, step] }
    }

    /// Many blocks at once: see [`threefry_blocks`].
    #[inline(always)]
    pub fn blocks<S: Simd>(&self, simd: S, counters: [[u32; BLOCKS]; 3]) -> [[u32; BLOCKS]; 4] {
        threefry_blocks(simd, self.key, counters)
    }

    /// 128 bits for a block of an instance's step t.
    pub fn bits(&self, instance: u32, t: u32, block: u32) -> [u32; 4] {
        threefry(self.key, [instance, t, block, 0])
    }
}

fn scramble(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// The order of the data in one epoch: a bijection of 0..n.
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    n: u32,
    half: u32,
    keys: [u32; 8],
}

impl Shuffle {
    /// The shuffle of `0..n` in this epoch.
    pub fn new(seed: u64, epoch: u32, n: u32) -> Self {
        let source = Source::new(seed, stream::SHUFFLE, epoch);
        let (a, b) = (source.bits(0, 0, 0), source.bits(1, 0, 0));
        let half = (33 - (n.max(2) - 1).leading_zeros()) / 2;
        Self { n, half, keys: [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]] }
    }

    /// Where position `i` goes: an eight-round Feistel network, walked until it lands below n.
    pub fn index(&self, i: u32) -> u32 {
        let mask = (1 << self.half) - 1;
        let mut x = i;
        loop {
            let (mut l, mut r) = (x >> self.half, x & mask);
            for pair in self.keys.chunks_exact(2) {
                l ^= scramble(r ^ pair[0]) & mask;
                r ^= scramble(l ^ pair[1]) & mask;
            }
            x = (l << self.half) | r;
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threefry_matches_the_published_vectors() {
        assert_eq!(threefry([0; 4], [0; 4]), [0x531c_7e4f, 0x3949_1ee5, 0x2c85_5a92, 0x3d6a_bf9a]);
        assert_eq!(threefry([!0; 4], [!0; 4]), [0xc418_9358, 0x1c9c_c83a, 0xd588_1c67, 0x6a0a_89e0]);
        assert_eq!(
            threefry(
                [0xa409_3822, 0x299f_31d0, 0x082e_fa98, 0xec4e_6c89],
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            ),
            [0x4aa7_1d8f, 0x7347_38c2, 0x431f_c6a8, 0xae6d_ebf1]
        );
    }

    struct LanesAgainstBlocks;

    impl pulp::WithSimd for LanesAgainstBlocks {
        type Output = ();

        fn with_simd<S: Simd>(self, simd: S) {
            let source = Source::new(0x1234_5678_9abc_def0, 3, 77);
            let counters: [[u32; BLOCKS]; 3] =
                std::array::from_fn(|word| std::array::from_fn(|lane| (lane * 31 + word * 1_000_003) as u32));
            let all = source.blocks(simd, counters);
            for block in 0..BLOCKS {
                let one = source.bits(counters[0][block], counters[1][block], counters[2][block]);
                assert_eq!(one, std::array::from_fn(|word| all[word][block]));
            }
        }
    }

    #[test]
    fn many_blocks_are_the_same_bits_as_single_blocks() {
        pulp::Arch::new().dispatch(LanesAgainstBlocks);
        pulp::WithSimd::with_simd(LanesAgainstBlocks, pulp::Scalar::new());
    }

    #[test]
    fn a_shuffle_is_a_bijection_and_moves_things() {
        for n in [1, 2, 3, 7, 64, 65, 1000, 4097] {
            let shuffle = Shuffle::new(7, 3, n);
            let mut seen = vec![false; n as usize];
            let mut fixed = 0;
            for i in 0..n {
                let to = shuffle.index(i);
                assert!(!std::mem::replace(&mut seen[to as usize], true), "{to} twice for n = {n}");
                fixed += u32::from(to == i);
            }
            assert!(n < 64 || fixed < 10, "{fixed} of {n} stayed where they were");
        }
        let (a, b) = (Shuffle::new(7, 3, 1000), Shuffle::new(7, 4, 1000));
        assert!((0..1000).filter(|&i| a.index(i) == b.index(i)).count() < 10);
    }

    #[test]
    fn uniform_numbers_are_exact_in_f32_and_never_0_or_1() {
        for bits in [0, 1, 511, 512, u32::MAX, 0x8000_0000] {
            let v = unit(bits);
            assert!(v > 0.0 && v < 1.0);
            assert_eq!(f64::from(v as f32), v);
        }
    }
}
