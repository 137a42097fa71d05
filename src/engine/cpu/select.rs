//! Twins of `select.wgsl`, `select_grad.wgsl` and `greedy.wgsl`. The maths is beside the shaders.

use super::args::Args;
use super::real::Real;
use crate::engine::kernels::{Greedy, Select, SelectGrad};
use crate::engine::state::{NEVER, hyper, losses, scalars};

/// The logits of what can be done: the features that are not blocked, and stopping, which never is.
#[inline(always)]
fn open<T: Real>(z: &[T]) -> impl Iterator<Item = T> + Clone {
    let stop = z.len() - 1;
    z.iter().copied().enumerate().filter(move |&(i, z)| i == stop || !z.is_blocked()).map(|(_, z)| z)
}

/// The largest of the unblocked values, and the sum of exp(value − largest).
#[inline(always)]
fn softmax_mass<T: Real>(values: impl Iterator<Item = T> + Clone) -> (T, T) {
    let top = values.clone().fold(T::BLOCKED, T::larger);
    (top, values.map(|value| (value - top).exp_down()).sum())
}

#[inline(always)]
pub fn select<T: Real>(p: &Select, mut args: Args<T>) {
    let (logits, gumbel, when) = (args.reals_mut(), args.reals(), args.words_mut());
    let (relax, path, tape) = (args.reals_mut(), args.words_mut(), args.reals_mut());
    let (costs, hyper) = (args.reals(), args.reals());
    let (tau_hard, tau_soft) = (hyper[hyper::TAU_HARD], hyper[hyper::TAU_SOFT]);
    let (rows, features, step) = (p.rows as usize, p.features as usize, p.step as usize);
    let (pitch, relax_pitch) = (p.logit_pitch as usize, p.relax_pitch as usize);
    for row in 0..rows {
        let tape_row = step * rows + row;
        let z = &mut logits[tape_row * pitch..][..=features];
        let noise = &gumbel[tape_row * pitch..][..=features];
        let seen = &mut when[row * features..][..features];
        // The tape rows of this step and the next: (m̃, r̃) now, m̃ then.
        let (now, then) = relax[tape_row * 2 * relax_pitch..].split_at_mut(rows * 2 * relax_pitch);
        let (mask, chance) = now.split_at_mut(relax_pitch);
        let (mask, chance, mask_next) =
            (&mut mask[..features], &mut chance[..features], &mut then[..features]);
        if step == 0 {
            seen.fill(NEVER);
            mask.fill(T::ZERO);
        }

        let (mut top_u, mut chosen) = (T::BLOCKED, NEVER);
        let perturbed = |z: T, noise: T| (z / tau_hard + noise) / tau_soft;
        for (i, z) in z[..features].iter_mut().enumerate() {
            if seen[i] != NEVER {
                *z = T::BLOCKED;
                continue;
            }
            let u = perturbed(*z, noise[i]);
            if u > top_u || chosen == NEVER {
                (top_u, chosen) = (u, i as u32);
            }
        }
        let (top_z, mass_p) = softmax_mass(open(z).map(|z| z / tau_hard));
        let log_mass_p = mass_p.ln();
        let mut entropy = T::ZERO;
        let mut mass_r = T::ZERO;
        for (i, &z) in z.iter().enumerate() {
            if i < features && z.is_blocked() {
                chance[i] = T::ZERO;
                continue;
            }
            let log_p = z / tau_hard - top_z - log_mass_p;
            entropy -= log_p.exp_down() * log_p;
            if i < features {
                let e = (perturbed(z, noise[i]) - top_u).exp_down();
                chance[i] = e;
                mass_r += e;
            }
        }
        let mut price = T::ZERO;
        for (i, r) in chance.iter_mut().enumerate() {
            *r = (*r / mass_r).flush();
            mask_next[i] = mask[i] + (T::ONE - mask[i]) * *r;
            price += *r * costs[i];
        }

        let u_stop = perturbed(z[features], noise[features]);
        let top = u_stop.larger(top_u);
        let features_mass = (top_u - top).exp_down() * mass_r;
        let stop_mass = (u_stop - top).exp_down();
        let go = features_mass / (features_mass + stop_mass);
        let (now, then) = tape[tape_row * scalars::LEN..].split_at_mut(rows * scalars::LEN);
        let survival = if step == 0 { T::ONE } else { now[scalars::SURVIVAL] };
        now[scalars::SURVIVAL] = survival;
        now[scalars::HALT] = stop_mass / (features_mass + stop_mass);
        now[scalars::GO] = go;
        now[scalars::ENTROPY] = entropy;
        now[scalars::PRICE] = if p.soft != 0 { price } else { costs[chosen as usize] };
        then[scalars::SURVIVAL] = (survival * go).flush();
        path[tape_row] = chosen;
        seen[chosen as usize] = p.step;
    }
}

#[inline(always)]
pub fn select_grad<T: Real>(p: &SelectGrad, mut args: Args<T>) {
    let (logits, relax, mask_grad) = (args.reals_mut(), args.reals(), args.reals());
    let (tape, losses, costs, hyper) = (args.reals_mut(), args.reals(), args.reals(), args.reals());
    let (alpha, lambda) = (hyper[hyper::ALPHA], hyper[hyper::LAMBDA]);
    let (tau_hard, tau_soft) = (hyper[hyper::TAU_HARD], hyper[hyper::TAU_SOFT]);
    let (rows, features) = (p.rows as usize, p.features as usize);
    let (pitch, relax_pitch) = (p.logit_pitch as usize, p.relax_pitch as usize);
    for row in 0..rows {
        let tape_row = p.step as usize * rows + row;
        let next_row = tape_row + rows;
        let z = &mut logits[tape_row * pitch..][..=features];
        let mask = &relax[tape_row * 2 * relax_pitch..][..features];
        let chance = &relax[tape_row * 2 * relax_pitch + relax_pitch..][..features];
        let from_mask = &mask_grad[row * relax_pitch..][..features];
        let loss_at = |tape_row: usize| losses[tape_row * losses::LEN + losses::LOSS];
        let value_next = if p.step + 1 == p.steps {
            loss_at(next_row)
        } else {
            tape[next_row * scalars::LEN + scalars::VALUE]
        };
        let now = &mut tape[tape_row * scalars::LEN..][..scalars::LEN];
        let (survival, halt, go) = (now[scalars::SURVIVAL], now[scalars::HALT], now[scalars::GO]);
        let (entropy, price, loss) = (now[scalars::ENTROPY], now[scalars::PRICE], loss_at(tape_row));
        let dq = survival * (loss - alpha * price - value_next);

        let (top_z, mass_p) = softmax_mass(open(z).map(|z| z / tau_hard));
        let log_mass_p = mass_p.ln();
        let dr = |i: usize| survival * alpha * go * costs[i] + (T::ONE - mask[i]) * from_mask[i];
        let pull: T = (0..features).map(|i| chance[i] * dr(i)).sum();
        let stopping = (z[features] / tau_hard - top_z - log_mass_p).exp_down();
        let push = hyper[hyper::GUARD] * survival * (stopping - T::of(0.5)) / tau_hard;
        let going = (T::ONE - stopping).larger(T::of(1e-6));
        for (i, z) in z.iter_mut().enumerate() {
            if i < features && z.is_blocked() {
                *z = T::ZERO;
                continue;
            }
            let du = if i < features { chance[i] * (dr(i) - pull - halt * go * dq) } else { halt * go * dq };
            let log_p = *z / tau_hard - top_z - log_mass_p;
            let p = log_p.exp_down();
            let dz = du / (tau_soft * tau_hard)
                + lambda * survival * p * (log_p + entropy) / tau_hard
                + if i < features { -push * p / going } else { push };
            *z = dz.flush();
        }
        now[scalars::VALUE] =
            alpha * go * price + halt * loss - hyper[hyper::LURE] * lambda * entropy + go * value_next;
    }
}

#[inline(always)]
pub fn greedy<T: Real>(p: &Greedy, mut args: Args<T>) {
    let (logits, when, path) = (args.reals(), args.words_mut(), args.words_mut());
    let (rows, features, step) = (p.rows as usize, p.features as usize, p.step as usize);
    for row in 0..rows {
        let seen = &mut when[row * features..][..features];
        if step == 0 {
            seen.fill(NEVER);
        }
        let stopped = step > 0 && path[(step - 1) * rows + row] == p.features;
        let mut action = p.features;
        if !stopped {
            let z = &logits[row * p.logit_pitch as usize..][..=features];
            let mut top: Option<T> = None;
            for (i, &z) in z.iter().enumerate() {
                let open = i == features || seen[i] == NEVER;
                if open && top.is_none_or(|top| z > top) {
                    (top, action) = (Some(z), i as u32);
                }
            }
        }
        path[step * rows + row] = action;
        if action < p.features {
            seen[action as usize] = p.step;
        }
    }
}
