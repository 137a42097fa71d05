//! Twins of `adam.wgsl`, `average.wgsl` and `advance.wgsl`.

use super::args::Args;
use super::instructions;
use super::real::Real;
use crate::engine::kernels::{Adam, Advance, Average};
use crate::engine::state::{advance, clock, hyper};
use rayon::prelude::*;

/// Values a task updates: enough to be worth a task.
const CHUNK: usize = 1 << 14;
/// Chunks that an average, which has less to do, takes at least.
const FEW: usize = 4;
/// Values whose gradients are added up at a time: they stay in the first cache.
const BLOCK: usize = 512;

#[inline(always)]
pub fn adam<T: Real>(p: &Adam, mut args: Args<T>) {
    let (values, mean, variance) = (args.reals_mut(), args.reals_mut(), args.reals_mut());
    let (grad, hyper, powers) = (args.reals(), args.reals(), args.reals());
    let (clock, status) = (args.words(), args.words_mut());
    let len = p.len as usize;
    let (beta1, beta2) = (hyper[hyper::BETA1], hyper[hyper::BETA2]);
    let (rate, epsilon) = (hyper[p.rate as usize], hyper[hyper::EPSILON]);
    let m_scale = T::ONE / (T::ONE - powers[p.power as usize] * beta1);
    let v_scale = T::ONE / (T::ONE - powers[p.power as usize + 1] * beta2);
    let settings = Settings { beta1, beta2, rate, epsilon, m_scale, v_scale };
    let arch = instructions::best();
    let finite = values[..len]
        .par_chunks_mut(CHUNK)
        .zip(mean[..len].par_chunks_mut(CHUNK))
        .zip(variance[..len].par_chunks_mut(CHUNK))
        .enumerate()
        .map(|(chunk, ((values, mean), variance))| {
            let grad = Lanes { all: grad, len, lanes: p.lanes as usize, at: chunk * CHUNK };
            arch.dispatch(Update { values, mean, variance, grad, settings })
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
struct Lanes<'a, T> {
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
    grad: Lanes<'a, T>,
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
pub fn average<T: Real>(p: &Average, mut args: Args<T>) {
    let (values, average, hyper) = (args.reals(), args.reals_mut(), args.reals());
    let share = hyper[hyper::AVERAGE];
    let len = p.len as usize;
    let parts = average[..len].par_chunks_mut(CHUNK).zip(values[..len].par_chunks(CHUNK));
    parts.with_min_len(FEW).for_each(|(average, values)| {
        for (average, &value) in average.iter_mut().zip(values) {
            *average += share * (value - *average);
        }
    });
}

#[inline(always)]
pub fn advance<T: Real>(p: &Advance, mut args: Args<T>) {
    let (clock, powers, hyper) = (args.words_mut(), args.reals_mut(), args.reals());
    if p.what & (advance::POLICY | advance::PREDICTOR) != 0 {
        clock[clock::STEP] += 1;
        clock[clock::BATCH] += 1;
        if clock[clock::BATCH] == p.batches {
            clock[clock::BATCH] = 0;
            clock[clock::EPOCH] += 1;
        }
    }
    for (bit, at) in [(advance::POLICY, 0), (advance::PREDICTOR, 2)] {
        if p.what & bit != 0 {
            powers[at] *= hyper[hyper::BETA1];
            powers[at + 1] *= hyper[hyper::BETA2];
        }
    }
    if p.what & advance::CHUNK != 0 {
        clock[clock::CHUNK] += 1;
    }
}
