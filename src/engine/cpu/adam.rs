//! Twins of `adam.wgsl` and `advance.wgsl`.

use super::args::Args;
use super::real::Real;
use crate::engine::kernels::{Adam, Advance};
use crate::engine::state::{advance, clock, hyper};
use rayon::prelude::*;

/// Values a task updates: enough to be worth a task.
const CHUNK: usize = 1 << 14;

pub fn adam<T: Real>(p: &Adam, mut args: Args<T>) {
    let (values, mean, variance) = (args.reals_mut(), args.reals_mut(), args.reals_mut());
    let (grad, hyper, powers) = (args.reals(), args.reals(), args.reals());
    let (clock, status) = (args.words(), args.words_mut());
    let len = p.len as usize;
    let (beta1, beta2) = (hyper[hyper::BETA1], hyper[hyper::BETA2]);
    let (rate, epsilon) = (hyper[p.rate as usize], hyper[hyper::EPSILON]);
    let m_scale = T::ONE / (T::ONE - powers[p.power as usize] * beta1);
    let v_scale = T::ONE / (T::ONE - powers[p.power as usize + 1] * beta2);
    let finite = values[..len]
        .par_chunks_mut(CHUNK)
        .zip(mean[..len].par_chunks_mut(CHUNK))
        .zip(variance[..len].par_chunks_mut(CHUNK))
        .enumerate()
        .map(|(chunk, ((values, mean), variance))| {
            let mut finite = true;
            for (i, ((w, m), v)) in values.iter_mut().zip(mean).zip(variance).enumerate() {
                let at = chunk * CHUNK + i;
                let mut g = grad[at];
                for lane in 1..p.lanes as usize {
                    g += grad[lane * len + at];
                }
                if !g.is_finite() {
                    finite = false;
                    continue;
                }
                *m = beta1 * *m + (T::ONE - beta1) * g;
                *v = beta2 * *v + (T::ONE - beta2) * g * g;
                *w -= rate * (*m * m_scale) / ((*v * v_scale).sqrt() + epsilon);
            }
            finite
        })
        .reduce(|| true, |a, b| a && b);
    if !finite {
        status[0] = status[0].min(clock[clock::STEP]);
    }
}

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
    if p.what & advance::REWIND != 0 {
        clock[clock::CHUNK] = 0;
    }
}
