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
        let (mut mass_r, mut mass_p_features) = (T::ZERO, T::ZERO);
        for (i, &z) in z.iter().enumerate() {
            if i < features && z.is_blocked() {
                chance[i] = T::ZERO;
                continue;
            }
            let log_p = z / tau_hard - top_z - log_mass_p;
            entropy -= log_p.exp_down() * log_p;
            if i < features {
                mass_p_features += (z / tau_hard - top_z).exp_down();
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

        let (stop_mass, features_mass) = if hyper[hyper::EXACT_STOP] > T::ZERO {
            ((z[features] / tau_hard - top_z).exp_down(), mass_p_features)
        } else {
            let u_stop = perturbed(z[features], noise[features]);
            let top = u_stop.larger(top_u);
            ((u_stop - top).exp_down(), (top_u - top).exp_down() * mass_r)
        };
        let (hazard, mass) = (hyper[hyper::HAZARD], features_mass + stop_mass);
        let go = (T::ONE - hazard) * (features_mass / mass);
        let (now, then) = tape[tape_row * scalars::LEN..].split_at_mut(rows * scalars::LEN);
        let survival = if step == 0 { T::ONE } else { now[scalars::SURVIVAL] };
        now[scalars::SURVIVAL] = survival;
        now[scalars::HALT] = hazard + (T::ONE - hazard) * (stop_mass / mass);
        now[scalars::GO] = go;
        now[scalars::ENTROPY] = entropy;
        now[scalars::PRICE] = if p.soft != 0 { price } else { costs[chosen as usize] };
        then[scalars::SURVIVAL] = (survival * go).flush();
        let whole = T::ONE - hyper[hyper::PARTS];
        let even = whole * (T::ONE - hyper[hyper::FOCUS]);
        let focus = whole * hyper[hyper::FOCUS] * T::count(p.steps + 1);
        now[scalars::WEIGHT] = even + focus * survival * now[scalars::HALT];
        then[scalars::WEIGHT] = even + focus * then[scalars::SURVIVAL];
        path[tape_row] = chosen;
        seen[chosen as usize] = p.step;
    }
}

#[inline(always)]
pub fn select_grad<T: Real>(p: &SelectGrad, mut args: Args<T>) {
    let (logits, relax, mask_grad) = (args.reals_mut(), args.reals(), args.reals());
    let (tape, losses, costs, hyper) = (args.reals_mut(), args.reals(), args.reals(), args.reals());
    let path = args.words();
    let (alpha, lambda) = (hyper[hyper::ALPHA], hyper[hyper::LAMBDA]);
    let (tau_hard, tau_soft) = (hyper[hyper::TAU_HARD], hyper[hyper::TAU_SOFT]);
    let (hazard, score) = (hyper[hyper::HAZARD], hyper[hyper::SCORE]);
    let exact = hyper[hyper::EXACT_STOP] > T::ZERO;
    let (rows, features) = (p.rows as usize, p.features as usize);
    let (pitch, relax_pitch) = (p.logit_pitch as usize, p.relax_pitch as usize);
    let loss_at = |tape_row: usize| losses[tape_row * losses::LEN + losses::LOSS];
    for row in 0..rows {
        let tape_row = p.step as usize * rows + row;
        let z = &mut logits[tape_row * pitch..][..=features];
        let mask = &relax[tape_row * 2 * relax_pitch..][..features];
        let chance = &relax[tape_row * 2 * relax_pitch + relax_pitch..][..features];
        let from_mask = &mask_grad[row * relax_pitch..][..features];
        // What an instance's rollout pays from this step on, if it goes on here.
        let ahead = |tape: &[T], row: usize| {
            let (at, next) = (p.step as usize * rows + row, (p.step as usize + 1) * rows + row);
            let last = p.step + 1 == p.steps;
            let value = if last { loss_at(next) } else { tape[next * scalars::LEN + scalars::VALUE] };
            (alpha * tape[at * scalars::LEN + scalars::PRICE] + value, value)
        };
        let (paid, value_next) = ahead(tape, row);
        let now = &tape[tape_row * scalars::LEN..][..scalars::LEN];
        let (survival, halt, go) = (now[scalars::SURVIVAL], now[scalars::HALT], now[scalars::GO]);
        let (entropy, price, loss) = (now[scalars::ENTROPY], now[scalars::PRICE], loss_at(tape_row));
        let dq = survival * (loss - alpha * price - value_next);
        let advantage = if score > T::ZERO {
            let twins = twins_of(row, rows, hyper[hyper::TWINS]);
            let others = twins.clone().filter(|&twin| twin != row);
            let mean = others.map(|twin| ahead(tape, twin).0).sum::<T>() / T::count(twins.len() as u32 - 1);
            if twins.len() > 1 { score * survival * go * (paid - mean) } else { T::ZERO }
        } else {
            T::ZERO
        };
        let chosen = path[tape_row] as usize;

        let (top_z, mass_p) = softmax_mass(open(z).map(|z| z / tau_hard));
        let log_mass_p = mass_p.ln();
        let dr = |i: usize| survival * alpha * go * costs[i] + (T::ONE - mask[i]) * from_mask[i];
        let pull: T = (0..features).map(|i| chance[i] * dr(i)).sum();
        let stopping = (z[features] / tau_hard - top_z - log_mass_p).exp_down();
        let push = hyper[hyper::GUARD] * survival * (stopping - T::of(0.5));
        let keep = T::ONE - hazard;
        let (turn, going) = if exact {
            (stopping * go * dq, go / keep)
        } else {
            ((halt - hazard) * go / (keep * tau_soft) * dq, T::ONE - stopping)
        };
        let going = going.larger(T::of(1e-6));
        for (i, z) in z.iter_mut().enumerate() {
            if i < features && z.is_blocked() {
                *z = T::ZERO;
                continue;
            }
            let log_p = *z / tau_hard - top_z - log_mass_p;
            let p = log_p.exp_down();
            let mut dz = lambda * survival * p * (log_p + entropy);
            if i < features {
                let share = p / going;
                let hit = if i == chosen { T::ONE } else { T::ZERO };
                dz += (T::ONE - score) * chance[i] * (dr(i) - pull) / tau_soft;
                dz -= turn * if exact { share } else { chance[i] };
                dz += advantage * (hit - share) - push * share;
            } else {
                dz += turn + push;
            }
            *z = (dz / tau_hard).flush();
        }
        tape[tape_row * scalars::LEN + scalars::VALUE] =
            alpha * go * price + halt * loss - hyper[hyper::LURE] * lambda * entropy + go * value_next;
    }
}

/// The rollouts of a row's instance in this micro-batch: `count` rows one after the other.
#[inline(always)]
fn twins_of<T: Real>(row: usize, rows: usize, count: T) -> std::ops::Range<usize> {
    let mut twins = 1;
    while T::count(twins) < count {
        twins += 1;
    }
    let first = row - row % twins as usize;
    first..(first + twins as usize).min(rows)
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
