//! Gaussian latents: columns that are made normal, samples that are reparametrised, and their gradient.

use super::{MATH, Part, Work, area, kernel, line, product};
use crate::engine::cpu::{Args, Real};

/// A latent's standard deviation, for shaders.
pub const DEVIATION: Part =
    Part::Text(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/lib/latent.wgsl")));
/// The smallest standard deviation of a latent.
const LEAST: f64 = 1e-3;

/// A latent's standard deviation, from its head.
#[inline(always)]
pub fn deviation<T: Real>(v: T) -> T {
    let e = (if v < T::ZERO { v } else { -v }).exp_down();
    v.larger(T::ZERO) + (T::ONE + e).ln() + T::of(LEAST)
}

kernel! {
    /// Columns through their empirical distributions to a normal one.
    pub NormalScores "normal_scores" []
    { rows, columns, pitch, knots, at }
    (values: F32 Read, x: F32 Write)
    grid |p| line(p.rows * p.columns);
    work |p| Work::of_numbers(line(p.rows * p.columns), 2 * product(&[p.rows, p.columns]));
    twin normal_scores;
}

#[inline(always)]
fn normal_scores<T: Real>(p: &NormalScores, mut args: Args<T>) {
    let (values, x) = (args.reals(), args.reals_mut());
    let (columns, knots) = (p.columns as usize, p.knots as usize);
    let tables = &values[p.at as usize..][..columns * 2 * knots];
    for row in x.chunks_exact_mut(p.pitch as usize).take(p.rows as usize) {
        for (x, table) in row.iter_mut().zip(tables.chunks_exact(2 * knots)) {
            *x = normal_score(table, *x);
        }
    }
}

/// A value's normal score: `table` has the knots, then their scores.
#[inline(always)]
pub fn normal_score<T: Real>(table: &[T], value: T) -> T {
    let (knots, scores) = table.split_at(table.len() / 2);
    let low = knots.partition_point(|&knot| knot <= value).max(1) - 1;
    let next = (low + 1).min(knots.len() - 1);
    let width = knots[next] - knots[low];
    if width <= T::ZERO || value <= knots[low] {
        return scores[low];
    }
    scores[low] + (value - knots[low]) / width * (scores[next] - scores[low])
}

kernel! {
    /// Samples of Gaussian latents.
    pub Latents "latents" [MATH, DEVIATION]
    { rows, samples, blocks, latent, heads_pitch, z_pitch, noisy }
    (heads: F32 Read, noise: F32 Read, z: F32 Write)
    grid |p| area(p.blocks * p.latent, p.rows);
    work |p| Work {
        flops: 2 * product(&[p.samples, p.rows, p.z_pitch]),
        numbers: 2 * product(&[p.samples, p.rows, p.z_pitch]),
    };
    twin latents;
}

#[inline(always)]
fn latents<T: Real>(p: &Latents, mut args: Args<T>) {
    let (heads, noise, z) = (args.reals(), args.reals(), args.reals_mut());
    let (rows, latent, pitch) = (p.rows as usize, p.latent as usize, p.z_pitch as usize);
    for at in (0..p.blocks as usize * rows).map(|at| (at / rows, at % rows)) {
        let (block, row) = at;
        let heads = &heads[(block * rows + row) * p.heads_pitch as usize..];
        for i in 0..latent {
            let (mean, spread) =
                (heads[i], if p.noisy != 0 { deviation(heads[latent + i]) } else { T::ZERO });
            for sample in 0..p.samples as usize {
                let to = (sample * rows + row) * pitch + block * latent + i;
                z[to] = mean + spread * noise[to];
            }
        }
    }
}

kernel! {
    /// The gradient of latents' means and deviations from that of their samples, with what their divergence from a
    /// standard normal costs.
    pub LatentGrad "latent_grad" [MATH, DEVIATION]
    { rows, samples, blocks, latent, heads_pitch, z_pitch, noisy, beta }
    (dz: F32 Read, heads: F32 Read, noise: F32 Read, settings: F32 Read, grad: F32 Write, paid: F32 Write)
    grid |p| area(p.blocks * p.latent, p.rows);
    work |p| Work {
        flops: 3 * product(&[p.samples, p.rows, p.z_pitch]),
        numbers: 2 * product(&[p.samples, p.rows, p.z_pitch]),
    };
    twin latent_grad;
}

#[inline(always)]
fn latent_grad<T: Real>(p: &LatentGrad, mut args: Args<T>) {
    let (dz, heads, noise, settings) = (args.reals(), args.reals(), args.reals(), args.reals());
    let (grad, paid) = (args.reals_mut(), args.reals_mut());
    let (rows, latent, pitch) = (p.rows as usize, p.latent as usize, p.z_pitch as usize);
    let noisy = p.noisy != 0;
    let beta = if noisy { settings[p.beta as usize] } else { T::ZERO };
    let half = T::of(0.5);
    for (block, row) in (0..p.blocks as usize * rows).map(|at| (at / rows, at % rows)) {
        let at = (block * rows + row) * p.heads_pitch as usize;
        let (heads, grad) = (&heads[at..][..2 * latent], &mut grad[at..][..2 * latent]);
        for i in 0..latent {
            let unit = block * latent + i;
            let (mut plain, mut along) = (T::ZERO, T::ZERO);
            for sample in 0..p.samples as usize {
                let from = (sample * rows + row) * pitch + unit;
                plain += dz[from];
                along += dz[from] * noise[from];
            }
            let (mean, v) = (heads[i], heads[latent + i]);
            let sigma = deviation(v);
            let e = (if v < T::ZERO { v } else { -v }).exp_down();
            let slope = (if v < T::ZERO { e } else { T::ONE }) / (T::ONE + e);
            grad[i] = plain + beta * mean;
            let of_spread = (along + beta * (sigma - T::ONE / sigma)) * slope;
            grad[latent + i] = if noisy { of_spread } else { T::ZERO };
            paid[row * pitch + unit] = beta * (half * (sigma * sigma + mean * mean - T::ONE) - sigma.ln());
        }
    }
}
