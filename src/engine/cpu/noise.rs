//! Twins of `blur.wgsl`, `noise.wgsl`, `dropout.wgsl`, `random_mask.wgsl` and `part_mask.wgsl`.

use super::args::Args;
use super::real::Real;
use crate::engine::kernels::{Blur, Dropout, Noise, PartMask, RandomMask};
use crate::engine::random::{LANES, Source};
use crate::engine::state::{NEVER, clock, hyper, scalars, stream};
use pulp::Simd;

fn source(clock: &[u32], stream: u32) -> Source {
    Source::new(clock::seed(clock), stream, clock[clock::STEP])
}

#[inline(always)]
pub fn blur<T: Real>(p: &Blur, mut args: Args<T>) {
    let (clock, spread, hyper, x) = (args.words(), args.reals(), args.reals(), args.reals_mut());
    let source = source(clock, stream::BLUR);
    let (columns, pitch) = (p.columns as usize, p.pitch as usize);
    let unit = hyper[hyper::BLUR] / T::of(147.80);
    for row in 0..p.rows as usize {
        let instance = (p.first + row as u32) / clock[clock::TWINS].max(1);
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
pub fn noise<T: Real, S: Simd>(simd: S, p: &Noise, mut args: Args<T>) {
    let (clock, gumbel) = (args.words(), args.reals_mut());
    let source = source(clock, stream::GUMBEL);
    let (pitch, actions) = (p.pitch as usize, p.actions as usize);
    let blocks = pitch / 4;
    if blocks >= LANES {
        wide_noise(simd, p, source, gumbel);
        return;
    }
    let total = (p.rows * p.steps) as usize * blocks;
    // Of the next block: its instance's place in the micro-batch, its step, itself, and where its first number goes.
    let ([mut row, mut t, mut block], mut at) = ([0; 3], 0);
    for start in (0..total).step_by(LANES) {
        let (mut counters, mut place) = ([[0; LANES]; 3], [0; LANES]);
        for lane in 0..LANES {
            (counters[0][lane], counters[1][lane], counters[2][lane]) = (p.first + row, t, block);
            place[lane] = at + block as usize;
            block += 1;
            if block as usize == blocks {
                (row, block, at) = (row + 1, 0, at + pitch);
            }
            if row == p.rows {
                (row, t) = (0, t + 1);
            }
        }
        let bits = source.lanes(simd, counters);
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
fn wide_noise<T: Real, S: Simd>(simd: S, p: &Noise, source: Source, gumbel: &mut [T]) {
    let (pitch, actions) = (p.pitch as usize, p.actions as usize);
    let blocks = pitch / 4;
    for tape_row in 0..(p.rows * p.steps) as usize {
        let (t, instance) = (tape_row as u32 / p.rows, p.first + tape_row as u32 % p.rows);
        for start in (0..blocks).step_by(LANES) {
            let bits = bits_from(simd, source, [instance, t, start as u32]);
            for (word, bits) in bits.iter().enumerate() {
                put(&mut gumbel[tape_row * pitch + word * blocks..][start..blocks], gumbels(bits));
            }
        }
        gumbel[tape_row * pitch..][actions..pitch].fill(T::ZERO);
    }
}

/// Bits of an instance at a step, for as many blocks as there are lanes, from one on.
#[inline(always)]
fn bits_from<S: Simd>(simd: S, source: Source, [instance, t, start]: [u32; 3]) -> [[u32; LANES]; 4] {
    let mut block = [0; LANES];
    block.iter_mut().zip(start..).for_each(|(block, index)| *block = index);
    source.lanes(simd, [[instance; LANES], [t; LANES], block])
}

/// Writes as many as there is room for.
#[inline(always)]
fn put<T: Copy>(to: &mut [T], values: [T; LANES]) {
    match to.first_chunk_mut() {
        Some(to) => *to = values,
        None => to.copy_from_slice(&values[..to.len()]),
    }
}

/// Gumbel(0, 1) from random bits.
#[inline(always)]
fn gumbels<T: Real>(bits: &[u32; LANES]) -> [T; LANES] {
    let mut values = [T::ZERO; LANES];
    for (value, &bits) in values.iter_mut().zip(bits) {
        *value = -(-unit_real::<T>(bits).ln()).ln();
    }
    values
}

/// [`unit`](crate::engine::random::unit) in the engine's precision, in which it is exact.
#[inline(always)]
fn unit_real<T: Real>(bits: u32) -> T {
    (T::count(bits >> 9) + T::of(0.5)) * T::of(1.0 / 8_388_608.0)
}

#[inline(always)]
pub fn dropout<T: Real, S: Simd>(simd: S, p: &Dropout, mut args: Args<T>) {
    let (clock, multiplier) = (args.words(), args.reals_mut());
    let source = source(clock, p.stream);
    let pitch = p.pitch as usize;
    let blocks = pitch.div_ceil(8);
    let keep = T::of(65536.0) / T::count(65536 - p.threshold);
    for tape_row in 0..(p.rows * p.steps) as usize {
        let (t, instance) = (tape_row as u32 / p.rows, p.first + tape_row as u32 % p.rows);
        for start in (0..blocks).step_by(LANES) {
            let bits = bits_from(simd, source, [instance, t, start as u32]);
            for draw in 0..8 {
                let len = blocks.min(pitch.saturating_sub(draw * blocks));
                if start >= len {
                    continue;
                }
                let (shift, mut values) = (16 * (draw % 2), [T::ZERO; LANES]);
                for (value, bits) in values.iter_mut().zip(&bits[draw / 2]) {
                    *value = if bits >> shift & 0xffff >= p.threshold { keep } else { T::ZERO };
                }
                put(&mut multiplier[tape_row * pitch + draw * blocks..][start..len], values);
            }
        }
    }
}

#[inline(always)]
pub fn random_mask<T: Real>(p: &RandomMask, mut args: Args<T>) {
    let (clock, relax) = (args.words(), args.reals_mut());
    let source = source(clock, stream::MASK);
    let pitch = p.pitch as usize;
    for row in 0..p.rows as usize {
        let mask = &mut relax[row * 2 * pitch..][..p.features as usize];
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
pub fn part_mask<T: Real>(p: &PartMask, mut args: Args<T>) {
    let (clock, when, hyper) = (args.words(), args.words(), args.reals());
    let (tape, relax) = (args.reals_mut(), args.reals_mut());
    let source = source(clock, stream::PART);
    let (rows, features, pitch) = (p.rows as usize, p.features as usize, p.pitch as usize);
    for row in 0..rows {
        let mut asked = T::ZERO;
        for t in 1..=p.steps as usize {
            asked += tape[(t * rows + row) * scalars::LEN + scalars::SURVIVAL];
        }
        let reach = T::of(2.0) * asked;
        let mask = &mut relax[row * 2 * pitch..][..features];
        let when = &when[row * features..][..features];
        for (block, (values, when)) in mask.chunks_mut(128).zip(when.chunks(128)).enumerate() {
            let bits = source.bits(p.first + row as u32, 0, block as u32);
            for (i, (value, &when)) in values.iter_mut().zip(when).enumerate() {
                let kept = bits[i / 32] >> (i % 32) & 1 == 1;
                let seen = when != NEVER && T::count(when) < reach && kept;
                *value = if seen { T::ONE } else { T::ZERO };
            }
        }
        tape[row * scalars::LEN + scalars::WEIGHT] = hyper[hyper::PARTS];
    }
}
