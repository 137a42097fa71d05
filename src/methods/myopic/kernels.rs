//! The relaxed choice and its way back. The maths is beside the shaders.

use crate::engine::cpu::pack::{Pack, part_of, parts};
use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::{MARKS, NEVER, metrics as counted, settings, words};
use crate::engine::kernels::{BEST, Kernel, MATH, Params, Part, Work, each, kernel, product};

/// All of them.
pub static KERNELS: &[&Kernel] = &[Concrete::KERNEL, ConcreteGrad::KERNEL];

words! {
    /// Settings that change from epoch to epoch, behind the general ones.
    pub mod hyper: usize, first super::settings::LEN, prefix "", len "HYPER" {
        /// Temperature of the relaxed choice, τ.
        TEMPERATURE,
        /// What logits are divided by before anything else, γ.
        GAMMA,
        /// The learning rate, where each network has one the predictor's.
        RATE,
        /// The selector's, where each network has one.
        SELECTOR_RATE,
    }
}

words! {
    /// Uses of randomness that other methods do not have.
    pub mod stream: u32, first 16, prefix "STREAM_", len "STREAMS_END" {
        /// Masks of uniform cardinality.
        CARDINALITY,
    }
}

words! {
    /// Words of what an evaluation adds to the general metrics.
    pub mod metrics: usize, first super::counted::LEN, prefix "", len "EVALUATED" {
        /// The loss over the steps under hard masks.
        HARD,
        /// The same under relaxed masks.
        SOFT,
    }
}

kernel! {
    /// One step of a rollout: the relaxed choice, and a sampled feature.
    pub Concrete "myopic/concrete" [MATH, BEST, Part::Team, Part::Words(&hyper::WORDS), Part::Words(&MARKS)]
    { rows, step, features, pitch, first_row, fresh_row, sample }
    (logits: F32 Read, gumbel: F32 Read, acquired_at: U32 Write, masks: F32 Write, path: U32 Write, settings: F32 Read)
    grid |p| each(p.rows);
    // Logits, noise twice, acquired_at, m̃.
    work |p| Work::of_numbers(each(p.rows), product(&[p.rows, 5 * p.features]));
    twin rows concrete;
}

#[inline(always)]
fn concrete<V: Pack>(set: V::Set, p: &Concrete, mut args: Args<V::Real>) {
    let (logits, gumbel, acquired_at) = (args.reals(), args.reals(), args.words_mut());
    let (masks, path, settings) = (args.reals_mut(), args.words_mut(), args.reals());
    let (zero, one) = (V::Real::ZERO, V::Real::ONE);
    let (gain, cool) = (one / settings[hyper::GAMMA], one / settings[hyper::TEMPERATURE]);
    let (rows, features, pitch) = (p.rows as usize, p.features as usize, p.pitch as usize);
    for row in 0..rows {
        let tape_row = p.first_row as usize + row;
        let fresh = (p.fresh_row as usize + row) * pitch;
        let z = &logits[tape_row * pitch..][..features];
        let (noise, other) = (&gumbel[tape_row * pitch..][..features], &gumbel[fresh..][..features]);
        let seen = &mut acquired_at[row * features..][..features];
        let mask = &mut masks[tape_row * pitch..][..features];
        if p.step == 0 {
            seen.fill(NEVER);
        }
        // u for a while where m̃ will be; what is acquired is blocked.
        let blocked = V::splat(set, V::Real::BLOCKED);
        let mut top = blocked;
        let (mut chosen, mut most) = (None, zero);
        for part in parts::<V>(features) {
            let open = V::open(set, &seen[part.clone()]);
            let scaled = part_of::<V>(set, z, &part) * V::splat(set, gain);
            let u = (scaled + part_of::<V>(set, noise, &part)) * V::splat(set, cool);
            let u = u.where_or(open, blocked);
            top = u.larger(top);
            u.store(&mut mask[part]);
        }
        for (i, (&z, &noise)) in z.iter().zip(other).enumerate() {
            let value = z * gain + noise;
            if seen[i] == NEVER && (chosen.is_none() || value > most) {
                (chosen, most) = (Some(i), value);
            }
        }
        let top = top.largest();
        let mut mass = V::splat(set, zero);
        for part in parts::<V>(features) {
            let e = (V::load(set, &mask[part.clone()], V::Real::BLOCKED) - V::splat(set, top)).exp_down();
            mass = mass + e;
            e.store(&mut mask[part]);
        }
        let mass = mass.total();
        for (mask, &seen) in mask.iter_mut().zip(seen.iter()) {
            *mask = if seen == NEVER { (*mask / mass).flush() } else { one };
        }
        if let Some(chosen) = chosen.filter(|_| p.sample != 0) {
            path[tape_row] = chosen as u32;
            seen[chosen] = p.step;
        }
    }
}

kernel! {
    /// Backward through the relaxed choices of all steps: the logits become their gradient.
    pub ConcreteGrad "myopic/concrete_grad" [MATH, BEST, Part::Team, Part::Words(&hyper::WORDS)]
    { rows, steps, features, pitch }
    (logits: F32 Write, masks: F32 Read, mask_grad: F32 Read, acquired_at: U32 Read, settings: F32 Read)
    grid |p| each(p.rows * p.steps);
    work |p| Work::of_numbers(each(p.rows * p.steps), product(&[p.rows, p.steps, 4 * p.features]));
    twin concrete_grad;
}

#[inline(always)]
fn concrete_grad<T: Real>(p: &ConcreteGrad, mut args: Args<T>) {
    let (logits, masks, mask_grad) = (args.reals_mut(), args.reals(), args.reals());
    let (acquired_at, settings) = (args.words(), args.reals());
    let scale = T::ONE / (settings[hyper::GAMMA] * settings[hyper::TEMPERATURE]);
    let (rows, features, pitch) = (p.rows as usize, p.features as usize, p.pitch as usize);
    for tape_row in 0..rows * p.steps as usize {
        let step = (tape_row / rows) as u32;
        let seen = &acquired_at[tape_row % rows * features..][..features];
        let mask = &masks[tape_row * pitch..][..features];
        let grad = &mask_grad[tape_row * pitch..][..features];
        let to = &mut logits[tape_row * pitch..][..features];
        let mut pull = T::ZERO;
        for ((&mask, &grad), &seen) in mask.iter().zip(grad).zip(seen) {
            pull += if seen >= step { mask * grad } else { T::ZERO };
        }
        for (((to, &mask), &grad), &seen) in to.iter_mut().zip(mask).zip(grad).zip(seen) {
            *to = if seen >= step { (mask * (grad - pull) * scale).flush() } else { T::ZERO };
        }
    }
}
