//! Adam, the moving average of weights, and the clock.

use super::words::{clock, settings};
use super::{MATH, Part, Work, kernel, line, product, workgroups};
use crate::engine::cpu::{Args, Real, instructions};
use rayon::prelude::*;

kernel! {
    /// Adam, with the micro-batches' gradients added up; notes a gradient that is not finite.
    pub Adam "adam" [MATH, Part::Words(&clock::WORDS), Part::Words(&settings::WORDS)]
    { len, lanes, rate, power }
    (values: Vec4 Write, mean: Vec4 Write, variance: Vec4 Write, grad: Vec4 Read, settings: F32 Read,
     powers: F32 Read, clock: U32 Read, status: Atomic Write)
    grid |p| line(p.len.div_ceil(4));
    work |p| Work { flops: 16 * product(&[p.len]), numbers: product(&[p.len, 6 + p.lanes]) };
    twin adam;
}

kernel! {
    /// The exponential moving average of weights, which evaluation uses.
    pub Average "average" [Part::Words(&settings::WORDS)]
    { len }
    (values: Vec4 Read, average: Vec4 Write, settings: F32 Read)
    grid |p| line(p.len.div_ceil(4));
    work |p| Work { flops: 3 * product(&[p.len]), numbers: 3 * product(&[p.len]) };
    twin average;
}

kernel! {
    /// Moves the clock on: the next step and batch, the powers of Adam's decays of some optimiser groups (a bit for
    /// each), or the next evaluation chunk.
    pub Advance "advance" [Part::Words(&clock::WORDS), Part::Words(&settings::WORDS)]
    { slots, chunk, batches }
    (clock: U32 Write, powers: F32 Write, settings: F32 Read)
    grid |_p| workgroups(1);
    work |_p| Work::of_threads(workgroups(1));
    twin advance;
}

kernel! {
    /// Moves the powers of Adam's decays of some optimiser groups on, a bit for each, and the clock not.
    pub AdvancePowers "advance_powers" [Part::Words(&settings::WORDS)]
    { slots }
    (powers: F32 Write, settings: F32 Read)
    grid |_p| workgroups(1);
    work |_p| Work::of_threads(workgroups(1));
    twin advance_powers;
}

/// Values a task updates: enough to be worth a task.
const CHUNK: usize = 1 << 14;
/// Chunks that an average, which has less to do, takes at least.
const FEW: usize = 4;
/// Values whose gradients are added up at a time: they stay in the first cache.
const BLOCK: usize = 512;

#[inline(always)]
fn adam<T: Real>(p: &Adam, mut args: Args<T>) {
    let (values, mean, variance) = (args.reals_mut(), args.reals_mut(), args.reals_mut());
    let (grad, settings, powers) = (args.reals(), args.reals(), args.reals());
    let (clock, status) = (args.words(), args.words_mut());
    let len = p.len as usize;
    let (beta1, beta2) = (settings[settings::BETA1], settings[settings::BETA2]);
    let (rate, epsilon) = (settings[p.rate as usize], settings[settings::EPSILON]);
    let m_scale = T::ONE / (T::ONE - powers[p.power as usize] * beta1);
    let v_scale = T::ONE / (T::ONE - powers[p.power as usize + 1] * beta2);
    let update = Settings { beta1, beta2, rate, epsilon, m_scale, v_scale };
    let arch = instructions::best();
    let finite = values[..len]
        .par_chunks_mut(CHUNK)
        .zip(mean[..len].par_chunks_mut(CHUNK))
        .zip(variance[..len].par_chunks_mut(CHUNK))
        .enumerate()
        .map(|(chunk, ((values, mean), variance))| {
            let grad = Gradients { all: grad, len, lanes: p.lanes as usize, at: chunk * CHUNK };
            arch.dispatch(Update { values, mean, variance, grad, settings: update })
        })
        .reduce(|| true, |a, b| a && b);
    if !finite {
        status[0] = status[0].min(clock[clock::STEP]);
    }
}

#[derive(Clone, Copy)]
struct Settings<T> {
    beta1: T,
    beta2: T,
    rate: T,
    epsilon: T,
    m_scale: T,
    v_scale: T,
}

/// The lanes' gradients, one after the other, from an element on.
#[derive(Clone, Copy)]
struct Gradients<'a, T> {
    all: &'a [T],
    len: usize,
    lanes: usize,
    at: usize,
}

/// The update of one chunk; says whether all its gradients were finite.
struct Update<'a, T> {
    values: &'a mut [T],
    mean: &'a mut [T],
    variance: &'a mut [T],
    grad: Gradients<'a, T>,
    settings: Settings<T>,
}

impl<T: Real> pulp::WithSimd for Update<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> bool {
        let Settings { beta1, beta2, rate, epsilon, m_scale, v_scale } = self.settings;
        let mut sum = [T::ZERO; BLOCK];
        let mut finite = true;
        let blocks = self.values.chunks_mut(BLOCK).zip(self.mean.chunks_mut(BLOCK));
        for (block, ((values, mean), variance)) in blocks.zip(self.variance.chunks_mut(BLOCK)).enumerate() {
            let sum = &mut sum[..values.len()];
            sum.fill(T::ZERO);
            for lane in 0..self.grad.lanes {
                let at = lane * self.grad.len + self.grad.at + block * BLOCK;
                for (sum, &g) in sum.iter_mut().zip(&self.grad.all[at..]) {
                    *sum += g;
                }
            }
            for (((w, m), v), &g) in values.iter_mut().zip(mean).zip(variance).zip(sum.iter()) {
                let good = g.is_finite();
                finite &= good;
                let m_new = (beta1 * *m + (T::ONE - beta1) * g).flush();
                let v_new = beta2 * *v + (T::ONE - beta2) * g * g;
                let v_new = if v_new < T::TINY * T::TINY { T::ZERO } else { v_new };
                let step = rate * (m_new * m_scale) / ((v_new * v_scale).sqrt() + epsilon);
                *m = if good { m_new } else { *m };
                *v = if good { v_new } else { *v };
                *w = if good { *w - step } else { *w };
            }
        }
        finite
    }
}

#[inline(always)]
fn average<T: Real>(p: &Average, mut args: Args<T>) {
    let (values, average, settings) = (args.reals(), args.reals_mut(), args.reals());
    let share = settings[settings::AVERAGE];
    let len = p.len as usize;
    let parts = average[..len].par_chunks_mut(CHUNK).zip(values[..len].par_chunks(CHUNK));
    parts.with_min_len(FEW).for_each(|(average, values)| {
        for (average, &value) in average.iter_mut().zip(values) {
            *average += share * (value - *average);
        }
    });
}

#[inline(always)]
fn advance<T: Real>(p: &Advance, mut args: Args<T>) {
    let (clock, powers, settings) = (args.words_mut(), args.reals_mut(), args.reals());
    if p.slots != 0 {
        clock[clock::STEP] += 1;
        clock[clock::BATCH] += 1;
        if clock[clock::BATCH] == p.batches {
            clock[clock::BATCH] = 0;
            clock[clock::EPOCH] += 1;
        }
    }
    move_powers(p.slots, powers, settings);
    if p.chunk != 0 {
        clock[clock::CHUNK] += 1;
    }
}

#[inline(always)]
fn advance_powers<T: Real>(p: &AdvancePowers, mut args: Args<T>) {
    let (powers, settings) = (args.reals_mut(), args.reals());
    move_powers(p.slots, powers, settings);
}

#[inline(always)]
fn move_powers<T: Real>(slots: u32, powers: &mut [T], settings: &[T]) {
    for (slot, powers) in powers.chunks_exact_mut(2).enumerate() {
        if slots >> slot & 1 != 0 {
            powers[0] *= settings[settings::BETA1];
            powers[1] *= settings[settings::BETA2];
        }
    }
}
