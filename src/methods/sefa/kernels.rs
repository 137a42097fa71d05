//! The kernels that only SEFA has. The maths is beside the shaders.

use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::{MARKS, NEVER, metrics as counted, settings, words};
use crate::engine::kernels::{
    DEVIATION, Kernel, MATH, Params, Part, Work, area, deviation, kernel, line, product,
};
use crate::methods::usual::CHEAPEST;

/// All of them.
pub static KERNELS: &[&Kernel] = &[SeenLatents::KERNEL, ClassGrad::KERNEL, Score::KERNEL];

words! {
    /// Settings that change from epoch to epoch, behind the general ones.
    pub mod hyper: usize, first super::settings::LEN, prefix "", len "HYPER" {
        /// The learning rate.
        RATE,
        /// What a nat of the latents' divergence costs, β.
        PRICE,
    }
}

words! {
    /// SEFA's own uses of randomness.
    pub mod stream: u32, first 144, prefix "STREAM_", len "STREAMS_END" {
        /// Masks of uniform cardinality.
        CARDINALITY,
        /// Noise of the latents in training.
        NOISE,
        /// The same in evaluations and sessions (on the host).
        SAMPLES,
    }
}

words! {
    /// Words of what an evaluation adds to the general metrics.
    pub mod metrics: usize, first super::counted::LEN, prefix "", len "EVALUATED" {
        /// The loss over all steps, that before anything is known included.
        ALONG,
    }
}

kernel! {
    /// Samples of the latents of what an instance has acquired, and of what it has not.
    pub SeenLatents "sefa/latents" [MATH, DEVIATION, Part::Words(&MARKS)]
    { rows, samples, blocks, features, latent, heads_pitch, z_pitch, noisy, step }
    (heads: F32 Read, acquired_at: U32 Read, noise: F32 Read, z: F32 Write)
    grid |p| area(p.blocks * p.latent, p.rows);
    work |p| Work {
        flops: 2 * product(&[p.samples, p.rows, p.z_pitch]),
        numbers: product(&[p.samples, p.rows, p.z_pitch]),
    };
    twin seen_latents;
}

#[inline(always)]
fn seen_latents<T: Real>(p: &SeenLatents, mut args: Args<T>) {
    let (heads, acquired_at, noise, z) = (args.reals(), args.words(), args.reals(), args.reals_mut());
    let (rows, latent, pitch) = (p.rows as usize, p.latent as usize, p.z_pitch as usize);
    let features = p.features as usize;
    for (row, block) in
        (0..rows * p.blocks as usize).map(|at| (at / p.blocks as usize, at % p.blocks as usize))
    {
        let open = block < features && (p.step == 0 || acquired_at[row * features + block] == NEVER);
        let from = if open { rows } else { row };
        let heads = &heads[(block * (rows + 1) + from) * p.heads_pitch as usize..][..2 * latent];
        for i in 0..latent {
            let unit = block * latent + i;
            let spread = if p.noisy != 0 { deviation(heads[latent + i]) } else { T::ZERO };
            for sample in 0..p.samples as usize {
                z[(sample * rows + row) * pitch + unit] = heads[i] + spread * noise[sample * pitch + unit];
            }
        }
    }
}

kernel! {
    /// The gradient of a class's probability in each sample by its logits.
    pub ClassGrad "sefa/class_grad" [MATH]
    { rows, classes, pitch, label }
    (logits: F32 Read, grad: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), 2 * product(&[p.rows, p.pitch]));
    twin class_grad;
}

#[inline(always)]
fn class_grad<T: Real>(p: &ClassGrad, mut args: Args<T>) {
    let (logits, grad) = (args.reals(), args.reals_mut());
    let (classes, pitch, class) = (p.classes as usize, p.pitch as usize, p.label as usize);
    for row in 0..p.rows as usize {
        grad_of_class(&logits[row * pitch..][..classes], class, &mut grad[row * pitch..][..classes]);
    }
}

/// The gradient of a class's probability by its logits.
#[inline(always)]
pub fn grad_of_class<T: Real>(logits: &[T], class: usize, grad: &mut [T]) {
    let top = logits.iter().fold(logits[0], |top, &logit| logit.larger(top));
    let mut mass = T::ZERO;
    for (grad, &logit) in grad.iter_mut().zip(logits) {
        *grad = (logit - top).exp_down();
        mass += *grad;
    }
    let f = grad[class] / mass;
    // What is left to the others, added up so that it is exact where the class is nearly sure.
    let mut others = T::ZERO;
    for (other, grad) in grad.iter_mut().enumerate() {
        if other != class {
            let probability = *grad / mass;
            others += probability;
            *grad = -(f * probability).flush();
        }
    }
    grad[class] = (f * others).flush();
}

kernel! {
    /// What each feature's latents move a class's probability by, for its cost.
    pub Score "sefa/score" []
    { rows, samples, blocks, features, latent, z_pitch, belief_pitch, scores_pitch, label, whole }
    (dz: F32 Read, belief: F32 Read, costs: F32 Read, scores: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, p.samples, p.z_pitch]));
    twin score;
}

/// What gradients are multiplied by before they are squared: a sure sample's squares are below what f32 has.
const SCALE: f64 = 1e12;
/// Added to the sum of their lengths, so that it is not zero.
const FLOOR: f64 = 1e-8;

#[inline(always)]
fn score<T: Real>(p: &Score, mut args: Args<T>) {
    let (dz, belief, costs, scores) = (args.reals(), args.reals(), args.reals(), args.reals_mut());
    let (rows, latent, pitch) = (p.rows as usize, p.latent as usize, p.z_pitch as usize);
    let (blocks, features) = (p.blocks as usize, p.features as usize);
    for row in 0..rows {
        let scores = &mut scores[row * p.scores_pitch as usize..][..features];
        if p.label == 0 {
            scores.fill(T::ZERO);
        }
        let of_class = belief[row * p.belief_pitch as usize + p.label as usize];
        let weight = if p.whole != 0 { T::ONE } else { of_class } / T::count(p.samples);
        for sample in 0..p.samples as usize {
            let dz = &dz[(sample * rows + row) * pitch..][..blocks * latent];
            add_score(dz, latent, weight, costs, scores);
        }
    }
}

/// Adds a sample's part to the scores of all features, for their costs.
#[inline(always)]
pub fn add_score<T: Real>(dz: &[T], latent: usize, weight: T, costs: &[T], scores: &mut [T]) {
    let length = |dz: &[T]| {
        let mut square = T::ZERO;
        for &dz in dz {
            let g = dz * T::of(SCALE);
            square += g * g;
        }
        square.sqrt()
    };
    let total: T = dz.chunks_exact(latent).map(length).sum();
    let weight = weight / (total + T::of(FLOOR));
    for ((score, dz), &cost) in scores.iter_mut().zip(dz.chunks_exact(latent)).zip(costs) {
        *score += weight * length(dz) / cost.larger(T::of(CHEAPEST));
    }
}
