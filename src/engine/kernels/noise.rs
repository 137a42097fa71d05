//! What is drawn at random: noise, dropout and masks.

use super::words::{STREAMS, Words, clock, settings};
use super::{MATH, Part, RANDOM, Work, area, kernel, line, product};
use crate::engine::cpu::{Args, Real};
use crate::random::{BLOCKS, Source, stream};
use pulp::Simd;

/// Operations of a Gumbel number: its bits and two logarithms.
const OF_A_GUMBEL: u64 = 64;

kernel! {
    /// Adds noise to the batch's rows.
    pub InputNoise "input_noise"
    [Part::Words(&clock::WORDS), Part::Words(&STREAMS), Part::Words(&settings::WORDS), RANDOM]
    { rows, columns, pitch, first }
    (clock: U32 Read, spread: F32 Read, settings: F32 Read, x: F32 Write)
    grid |p| area(p.columns.div_ceil(4), p.rows);
    work |p| Work::of_numbers(area(p.columns.div_ceil(4), p.rows), 2 * product(&[p.rows, p.columns]));
    twin input_noise;
}

kernel! {
    /// Fills the noise tape with Gumbel(0, 1) numbers.
    pub Gumbel "gumbel" [Part::Words(&clock::WORDS), Part::Words(&STREAMS), MATH, RANDOM]
    { rows, steps, actions, pitch, first }
    (clock: U32 Read, gumbel: F32 Write)
    grid |p| area(p.pitch / 4, p.rows * p.steps);
    work |p| {
        let numbers = product(&[p.rows, p.steps, p.pitch]);
        Work { flops: OF_A_GUMBEL * numbers, numbers }
    };
    twin simd gumbel;
}

kernel! {
    /// Fills a tape of samples with standard normal numbers.
    pub Normals "normals" [Part::Words(&clock::WORDS), Part::Words(&STREAMS), MATH, RANDOM]
    { rows, samples, pitch, first, stream }
    (clock: U32 Read, noise: F32 Write)
    grid |p| area(p.pitch / 4, p.rows * p.samples);
    work |p| {
        let numbers = product(&[p.rows, p.samples, p.pitch]);
        Work { flops: OF_A_GUMBEL * numbers, numbers }
    };
    twin simd normals;
}

kernel! {
    /// Fills a layer's dropout multipliers.
    pub Dropout "dropout" [Part::Words(&clock::WORDS), Part::Words(&STREAMS), RANDOM]
    { rows, steps, pitch, first, threshold, stream }
    (clock: U32 Read, multiplier: F32 Write)
    grid |p| area(p.pitch.div_ceil(8), p.rows * p.steps);
    work |p| Work::of_numbers(
        area(p.pitch.div_ceil(8), p.rows * p.steps),
        product(&[p.rows, p.steps, p.pitch]),
    );
    twin simd dropout;
}

kernel! {
    /// Draws masks, each feature seen with probability one half; or sees everything.
    pub RandomMask "random_mask" [Part::Words(&clock::WORDS), Part::Words(&STREAMS), RANDOM]
    { rows, features, mask_stride, first, all }
    (clock: U32 Read, masks: F32 Write)
    grid |p| area(p.features.div_ceil(32), p.rows);
    work |p| Work::of_threads(area(p.features.div_ceil(32), p.rows));
    twin random_mask;
}

kernel! {
    /// Draws masks of uniform cardinality, the largest of so many 65536ths of the features.
    pub UniformMask "uniform_mask" [Part::Words(&clock::WORDS), Part::Words(&STREAMS), RANDOM]
    { rows, features, mask_stride, first, most, stream }
    (clock: U32 Read, masks: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, p.features]));
    twin uniform_mask;
}

pub(crate) fn source(clock: &[u32], stream: u32) -> Source {
    Source::new(Words::seed(clock), stream, clock[clock::STEP])
}

#[inline(always)]
fn input_noise<T: Real>(p: &InputNoise, mut args: Args<T>) {
    let (clock, spread, settings, x) = (args.words(), args.reals(), args.reals(), args.reals_mut());
    let source = source(clock, stream::INPUT_NOISE);
    let (columns, pitch) = (p.columns as usize, p.pitch as usize);
    let unit = settings[settings::INPUT_NOISE] / T::of(147.80);
    for row in 0..p.rows as usize {
        let instance = (p.first + row as u32) / clock[clock::COPIES].max(1);
        let x = &mut x[row * pitch..][..columns];
        for (block, (x, spread)) in x.chunks_mut(4).zip(spread.chunks(4)).enumerate() {
            let bits = source.bits(instance, 0, block as u32);
            for ((x, &spread), word) in x.iter_mut().zip(spread).zip(bits) {
                let bytes: u32 = word.to_le_bytes().into_iter().map(u32::from).sum();
                *x += (T::count(bytes) - T::of(510.0)) * unit * spread;
            }
        }
    }
}

/// Sixteen blocks at a time, counted through all rows of the tape.
#[inline(always)]
fn gumbel<T: Real, S: Simd>(simd: S, p: &Gumbel, mut args: Args<T>) {
    let (clock, gumbel) = (args.words(), args.reals_mut());
    let source = source(clock, stream::GUMBEL);
    let (pitch, actions) = (p.pitch as usize, p.actions as usize);
    let blocks = pitch / 4;
    if blocks >= BLOCKS {
        wide_gumbel(simd, p, source, gumbel);
        return;
    }
    let total = (p.rows * p.steps) as usize * blocks;
    // Of the next block: its instance's place in the micro-batch, its step, itself, and where its first number goes.
    let ([mut row, mut t, mut block], mut at) = ([0; 3], 0);
    for start in (0..total).step_by(BLOCKS) {
        let (mut counters, mut place) = ([[0; BLOCKS]; 3], [0; BLOCKS]);
        for at_once in 0..BLOCKS {
            (counters[0][at_once], counters[1][at_once], counters[2][at_once]) = (p.first + row, t, block);
            place[at_once] = at + block as usize;
            block += 1;
            if block as usize == blocks {
                (row, block, at) = (row + 1, 0, at + pitch);
            }
            if row == p.rows {
                (row, t) = (0, t + 1);
            }
        }
        let bits = source.blocks(simd, counters);
        for (word, bits) in bits.iter().enumerate() {
            for (&at, value) in place.iter().zip(gumbels::<T>(bits)).take(total - start) {
                gumbel[at + word * blocks] = value;
            }
        }
    }
    for row in gumbel.chunks_exact_mut(pitch).take((p.rows * p.steps) as usize) {
        row[actions..].fill(T::ZERO);
    }
}

/// The same, where a row has enough blocks of its own.
#[inline(always)]
fn wide_gumbel<T: Real, S: Simd>(simd: S, p: &Gumbel, source: Source, gumbel: &mut [T]) {
    let (pitch, actions) = (p.pitch as usize, p.actions as usize);
    let blocks = pitch / 4;
    for tape_row in 0..(p.rows * p.steps) as usize {
        let (t, instance) = (tape_row as u32 / p.rows, p.first + tape_row as u32 % p.rows);
        for start in (0..blocks).step_by(BLOCKS) {
            let bits = bits_from(simd, source, [instance, t, start as u32]);
            for (word, bits) in bits.iter().enumerate() {
                put(&mut gumbel[tape_row * pitch + word * blocks..][start..blocks], gumbels(bits));
            }
        }
        gumbel[tape_row * pitch..][actions..pitch].fill(T::ZERO);
    }
}

#[inline(always)]
fn normals<T: Real, S: Simd>(simd: S, p: &Normals, mut args: Args<T>) {
    let (clock, noise) = (args.words(), args.reals_mut());
    let source = source(clock, p.stream);
    let pitch = p.pitch as usize;
    let blocks = pitch / 4;
    for (tape_row, noise) in noise.chunks_exact_mut(pitch).take((p.rows * p.samples) as usize).enumerate() {
        let (sample, instance) = (tape_row as u32 / p.rows, p.first + tape_row as u32 % p.rows);
        for start in (0..blocks).step_by(BLOCKS) {
            let bits = bits_from(simd, source, [instance, sample, start as u32]);
            for (word, bits) in bits.iter().enumerate() {
                let mut values = [T::ZERO; BLOCKS];
                for (value, &bits) in values.iter_mut().zip(bits) {
                    *value = normal(unit_real::<T>(bits));
                }
                put(&mut noise[word * blocks..][start..blocks], values);
            }
        }
    }
}

/// The number that a share u of a standard normal distribution lies below; see normals.wgsl.
#[inline(always)]
pub fn normal<T: Real>(u: T) -> T {
    let w = -(T::of(4.0) * u * (T::ONE - u)).ln();
    let (center, tail) = (w - T::of(2.5), w.larger(T::ZERO).sqrt() - T::of(3.0));
    let polynomial = |at: T, coefficients: [f64; 9]| {
        coefficients.iter().fold(T::ZERO, |sum, &coefficient| sum * at + T::of(coefficient))
    };
    let (center, tail) = (polynomial(center, CENTER), polynomial(tail, TAIL));
    let factor = if w < T::of(5.0) { center } else { tail };
    T::of(std::f64::consts::SQRT_2) * (T::of(2.0) * u - T::ONE) * factor
}

/// Giles's polynomials, from the highest power on.
const CENTER: [f64; 9] = [
    2.81022636e-8,
    3.43273939e-7,
    -3.5233877e-6,
    -4.39150654e-6,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
];
const TAIL: [f64; 9] = [
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
];

/// Bits of an instance at a step, for sixteen blocks, from one on.
#[inline(always)]
fn bits_from<S: Simd>(simd: S, source: Source, [instance, t, start]: [u32; 3]) -> [[u32; BLOCKS]; 4] {
    let mut block = [0; BLOCKS];
    block.iter_mut().zip(start..).for_each(|(block, index)| *block = index);
    source.blocks(simd, [[instance; BLOCKS], [t; BLOCKS], block])
}

/// Writes as many as there is room for.
#[inline(always)]
fn put<T: Copy>(to: &mut [T], values: [T; BLOCKS]) {
    match to.first_chunk_mut() {
        Some(to) => *to = values,
        None => to.copy_from_slice(&values[..to.len()]),
    }
}

/// Gumbel(0, 1) from random bits.
#[inline(always)]
fn gumbels<T: Real>(bits: &[u32; BLOCKS]) -> [T; BLOCKS] {
    let mut values = [T::ZERO; BLOCKS];
    for (value, &bits) in values.iter_mut().zip(bits) {
        *value = -(-unit_real::<T>(bits).ln()).ln();
    }
    values
}

/// [`unit`](crate::random::unit) in the engine's precision, in which it is exact.
#[inline(always)]
fn unit_real<T: Real>(bits: u32) -> T {
    (T::count(bits >> 9) + T::of(0.5)) * T::of(1.0 / 8_388_608.0)
}

#[inline(always)]
fn dropout<T: Real, S: Simd>(simd: S, p: &Dropout, mut args: Args<T>) {
    let (clock, multiplier) = (args.words(), args.reals_mut());
    let source = source(clock, p.stream);
    let pitch = p.pitch as usize;
    let blocks = pitch.div_ceil(8);
    let keep = T::of(65536.0) / T::count(65536 - p.threshold);
    for tape_row in 0..(p.rows * p.steps) as usize {
        let (t, instance) = (tape_row as u32 / p.rows, p.first + tape_row as u32 % p.rows);
        for start in (0..blocks).step_by(BLOCKS) {
            let bits = bits_from(simd, source, [instance, t, start as u32]);
            for draw in 0..8 {
                let len = blocks.min(pitch.saturating_sub(draw * blocks));
                if start >= len {
                    continue;
                }
                let (shift, mut values) = (16 * (draw % 2), [T::ZERO; BLOCKS]);
                for (value, bits) in values.iter_mut().zip(&bits[draw / 2]) {
                    *value = if bits >> shift & 0xffff >= p.threshold { keep } else { T::ZERO };
                }
                put(&mut multiplier[tape_row * pitch + draw * blocks..][start..len], values);
            }
        }
    }
}

#[inline(always)]
fn random_mask<T: Real>(p: &RandomMask, mut args: Args<T>) {
    let (clock, masks) = (args.words(), args.reals_mut());
    let source = source(clock, stream::MASK);
    for row in 0..p.rows as usize {
        let mask = &mut masks[row * p.mask_stride as usize..][..p.features as usize];
        for (block, values) in mask.chunks_mut(128).enumerate() {
            let bits = source.bits(p.first + row as u32, 0, block as u32);
            for (i, value) in values.iter_mut().enumerate() {
                let seen = p.all != 0 || bits[i / 32] >> (i % 32) & 1 == 1;
                *value = if seen { T::ONE } else { T::ZERO };
            }
        }
    }
}

#[inline(always)]
fn uniform_mask<T: Real>(p: &UniformMask, mut args: Args<T>) {
    let (clock, masks) = (args.words(), args.reals_mut());
    let source = source(clock, p.stream);
    for row in 0..p.rows {
        let share = !source.bits(p.first + row, 1, 0)[0];
        let threshold = !((share >> 16) * p.most + (((share & 0xffff) * p.most) >> 16));
        let mask = &mut masks[(row * p.mask_stride) as usize..][..p.features as usize];
        for (block, values) in mask.chunks_mut(4).enumerate() {
            let bits = source.bits(p.first + row, 0, block as u32);
            for (value, &bits) in values.iter_mut().zip(&bits) {
                *value = if bits > threshold { T::ONE } else { T::ZERO };
            }
        }
    }
}
