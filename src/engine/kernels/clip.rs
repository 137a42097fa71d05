//! Gradients that are clipped by their norm.

use super::{REDUCE, Work, kernel, line, product, workgroups};
use crate::engine::cpu::{Args, Real};

kernel! {
    /// What a gradient, added up over the lanes, is multiplied by so that its norm is at most a limit.
    pub GradNorm "grad_norm" [REDUCE]
    { len, lanes, limit }
    (grad: F32 Read, settings: F32 Read, factor: F32 Write)
    grid |_p| workgroups(1);
    work |p| Work::of_numbers(workgroups(1), product(&[p.len, p.lanes]));
    twin grad_norm;
}

/// Sums that are added up side by side, as the threads of the shader do: a long one would lose digits.
const SUMS: usize = 64;

#[inline(always)]
fn grad_norm<T: Real>(p: &GradNorm, mut args: Args<T>) {
    let (grad, settings, factor) = (args.reals(), args.reals(), args.reals_mut());
    let len = p.len as usize;
    let mut sums = [T::ZERO; SUMS];
    for start in (0..len).step_by(SUMS) {
        let mut g = [T::ZERO; SUMS];
        let width = SUMS.min(len - start);
        for lane in 0..p.lanes as usize {
            for (g, &more) in g.iter_mut().zip(&grad[lane * len + start..][..width]) {
                *g += more;
            }
        }
        for (sum, &g) in sums.iter_mut().zip(&g) {
            *sum += g * g;
        }
    }
    let mut half = SUMS / 2;
    while half > 0 {
        for i in 0..half {
            sums[i] += sums[i + half];
        }
        half /= 2;
    }
    let (norm, limit) = (sums[0].sqrt(), settings[p.limit as usize]);
    factor[0] = if norm > limit { limit / norm } else { T::ONE };
}

kernel! {
    /// Multiplies a gradient, of all lanes, by a factor.
    pub GradScale "grad_scale" []
    { len }
    (factor: F32 Read, grad: F32 Write)
    grid |p| line(p.len);
    work |p| Work::of_numbers(line(p.len), 2 * product(&[p.len]));
    twin grad_scale;
}

#[inline(always)]
fn grad_scale<T: Real>(p: &GradScale, mut args: Args<T>) {
    let (factor, grad) = (args.reals(), args.reals_mut());
    let factor = factor[0];
    if factor < T::ONE {
        grad[..p.len as usize].iter_mut().for_each(|g| *g *= factor);
    }
}
