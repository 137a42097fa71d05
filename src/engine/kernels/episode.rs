//! Several passes over kept steps (proximal policy optimisation): advantages, the clipped surrogate of the choices, and
//! the critic's error. The maths is beside the shaders.

use super::words::words;
use super::{MATH, Part, Work, kernel, line, product};
use crate::engine::cpu::{Args, Real};

words! {
    /// Words of a kept step.
    pub mod kept: usize, first 0, prefix "KEPT_", len "KEPT" {
        /// What it cost: minus its reward.
        COST,
        /// Whether it was taken: 1, or 0 after an end.
        LIVE,
        /// The logarithm of the probability that what was done had then.
        LOG_CHANCE,
        /// Its advantage.
        ADVANTAGE,
        /// What the critic is to say of the state before it.
        TARGET,
        /// The choice's entropy.
        ENTROPY,
        /// The critic's squared error.
        ERROR,
        /// Not used: keeps the length even.
        SPARE,
    }
}

kernel! {
    /// Generalised advantage estimation over kept steps, and the critic's targets.
    pub Advantage "advantage" [Part::Words(&kept::WORDS)]
    { rows, steps, pitch, discount, decay }
    (values: F32 Read, settings: F32 Read, kept: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, p.steps, 1 + kept::LEN as u32]));
    twin advantage;
}

#[inline(always)]
fn advantage<T: Real>(p: &Advantage, mut args: Args<T>) {
    let (values, settings, kept) = (args.reals(), args.reals(), args.reals_mut());
    let rows = p.rows as usize;
    let discount = settings[p.discount as usize];
    let decay = discount * settings[p.decay as usize];
    for row in 0..rows {
        let (mut next, mut advantage) = (T::ZERO, T::ZERO);
        for tape_row in (0..p.steps as usize).rev().map(|step| step * rows + row) {
            let kept = &mut kept[tape_row * kept::LEN..][..kept::LEN];
            (kept[kept::ADVANTAGE], kept[kept::TARGET]) = (T::ZERO, T::ZERO);
            if kept[kept::LIVE] > T::of(0.5) {
                let value = values[tape_row * p.pitch as usize];
                advantage = -kept[kept::COST] + discount * next - value + decay * advantage;
                (kept[kept::ADVANTAGE], kept[kept::TARGET]) = (advantage, advantage + value);
                next = value;
            }
        }
    }
}

kernel! {
    /// The clipped surrogate of kept choices: the logits become its gradient.
    pub ClippedChoice "clipped_choice" [MATH, Part::Words(&kept::WORDS)]
    { rows, batch, features, pitch, clip, bonus }
    (logits: F32 Write, acquired_at: U32 Read, path: U32 Read, settings: F32 Read, kept: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows * p.features), product(&[p.rows, 3 * p.features + kept::LEN as u32]));
    twin clipped_choice;
}

#[inline(always)]
fn clipped_choice<T: Real>(p: &ClippedChoice, mut args: Args<T>) {
    let (logits, acquired_at, path) = (args.reals_mut(), args.words(), args.words());
    let (settings, kept) = (args.reals(), args.reals_mut());
    let features = p.features as usize;
    let (clip, bonus) = (settings[p.clip as usize], settings[p.bonus as usize]);
    for row in 0..p.rows as usize {
        let step = row as u32 / p.batch;
        let seen = &acquired_at[(row % p.batch as usize) * features..][..features];
        let z = &mut logits[row * p.pitch as usize..][..features + 1];
        let kept = &mut kept[row * kept::LEN..][..kept::LEN];
        if kept[kept::LIVE] < T::of(0.5) {
            z.fill(T::ZERO);
            kept[kept::ENTROPY] = T::ZERO;
            continue;
        }
        let is_open = |i: usize| seen.get(i).is_none_or(|&at| at >= step);
        let open = || (0..=features).filter(|&i| is_open(i));
        let top = open().fold(z[features], |top, i| z[i].larger(top));
        let (mut mass, mut spread) = (T::ZERO, T::ZERO);
        for i in open() {
            let e = (z[i] - top).exp_down();
            mass += e;
            spread += e * (top - z[i]);
        }
        let log_mass = mass.ln();
        let entropy = log_mass + spread / mass;
        let chosen = path[row] as usize;
        let change = z[chosen] - top - log_mass - kept[kept::LOG_CHANCE];
        let most = T::of(20.0);
        let ratio = (if change > most { most } else { change.larger(-most) }).exp();
        let advantage = kept[kept::ADVANTAGE];
        let is_clipped =
            (advantage > T::ZERO && ratio > T::ONE + clip) || (advantage < T::ZERO && ratio < T::ONE - clip);
        let g = if is_clipped { T::ZERO } else { -advantage * ratio };
        kept[kept::ENTROPY] = entropy;
        for (i, z) in z.iter_mut().enumerate() {
            if !is_open(i) {
                *z = T::ZERO;
                continue;
            }
            let log_share = *z - top - log_mass;
            let share = log_share.exp_down();
            let hit = if i == chosen { T::ONE } else { T::ZERO };
            *z = (g * (hit - share) + bonus * share * (log_share + entropy)).flush();
        }
    }
}

kernel! {
    /// The critic's squared error of kept steps: the values become its gradient.
    pub ValueError "value_error" [Part::Words(&kept::WORDS)]
    { rows, pitch }
    (values: F32 Write, kept: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, 2 + kept::LEN as u32]));
    twin value_error;
}

#[inline(always)]
fn value_error<T: Real>(p: &ValueError, mut args: Args<T>) {
    let (values, kept) = (args.reals_mut(), args.reals_mut());
    for row in 0..p.rows as usize {
        let kept = &mut kept[row * kept::LEN..][..kept::LEN];
        let value = &mut values[row * p.pitch as usize];
        let is_live = kept[kept::LIVE] > T::of(0.5);
        let error = if is_live { *value - kept[kept::TARGET] } else { T::ZERO };
        *value = T::of(2.0) * error;
        kept[kept::ERROR] = error * error;
    }
}
