//! Twins of `noise.wgsl`, `dropout.wgsl` and `random_mask.wgsl`.

use super::args::Args;
use super::real::Real;
use crate::engine::kernels::{Dropout, Noise, RandomMask};
use crate::engine::random::{Source, unit};
use crate::engine::state::{clock, stream};

fn source(clock: &[u32], stream: u32) -> Source {
    Source::new(clock::seed(clock), stream, clock[clock::STEP])
}

pub fn noise<T: Real>(p: &Noise, mut args: Args<T>) {
    let (clock, gumbel) = (args.words(), args.reals_mut());
    let source = source(clock, stream::GUMBEL);
    let pitch = p.pitch as usize;
    for (tape_row, row) in gumbel.chunks_exact_mut(pitch).take((p.rows * p.steps) as usize).enumerate() {
        let (t, instance) = (tape_row as u32 / p.rows, p.first + tape_row as u32 % p.rows);
        for (block, values) in row.chunks_exact_mut(4).enumerate() {
            let bits = source.bits(instance, t, block as u32);
            for (i, (value, bits)) in values.iter_mut().zip(bits).enumerate() {
                let live = block * 4 + i < p.actions as usize;
                *value = if live { -(-T::of(unit(bits)).ln()).ln() } else { T::ZERO };
            }
        }
    }
}

pub fn dropout<T: Real>(p: &Dropout, mut args: Args<T>) {
    let (clock, multiplier) = (args.words(), args.reals_mut());
    let source = source(clock, p.stream);
    let pitch = p.pitch as usize;
    let keep = T::of(65536.0) / T::count(65536 - p.threshold);
    for (tape_row, row) in multiplier.chunks_exact_mut(pitch).take((p.rows * p.steps) as usize).enumerate() {
        let (t, instance) = (tape_row as u32 / p.rows, p.first + tape_row as u32 % p.rows);
        for (block, values) in row.chunks_mut(8).enumerate() {
            let bits = source.bits(instance, t, block as u32);
            for (i, value) in values.iter_mut().enumerate() {
                let draw = bits[i / 2] >> (16 * (i % 2)) & 0xffff;
                *value = if draw >= p.threshold { keep } else { T::ZERO };
            }
        }
    }
}

pub fn random_mask<T: Real>(p: &RandomMask, mut args: Args<T>) {
    let (clock, relax) = (args.words(), args.reals_mut());
    let source = source(clock, stream::MASK);
    let pitch = p.pitch as usize;
    for row in 0..p.rows as usize {
        let mask = &mut relax[row * 2 * pitch..][..p.features as usize];
        for (block, values) in mask.chunks_mut(128).enumerate() {
            let bits = source.bits(p.first + row as u32, 0, block as u32);
            for (i, value) in values.iter_mut().enumerate() {
                *value = T::count(bits[i / 32] >> (i % 32) & 1);
            }
        }
    }
}
