//! Twins of `select.wgsl`, `select_grad.wgsl` and `greedy.wgsl`. The maths is beside the shaders.

use super::args::Args;
use super::blocks::{WIDTH, largest, load, starts, store, total};
use super::live::{still_asks, twins_of};
use super::real::Real;
use crate::engine::kernels::{Greedy, Select, SelectGrad};
use crate::engine::state::{NEVER, hyper, losses, scalars};

/// The largest unblocked z/τh, that of the stop included. Temperatures are given as their reciprocals here:
/// a product is several times as fast as a quotient.
#[inline(always)]
fn top_logit<T: Real>(z: &[T], cool_hard: T) -> T {
    let features = z.len() - 1;
    let mut top = [T::BLOCKED; WIDTH];
    for at in starts(features) {
        for (top, z) in top.iter_mut().zip(load(&z[..features], at, T::BLOCKED)) {
            let scaled = if z.is_blocked() { T::BLOCKED } else { z * cool_hard };
            *top = scaled.larger(*top);
        }
    }
    largest(top).larger(z[features] * cool_hard)
}

/// A softmax over what can be done.
struct Softmax<T> {
    /// Σ exp(z − top) over the features, top the largest of all; and the stop's share of it.
    features: T,
    stop: T,
    entropy: T,
}

impl<T: Real> Softmax<T> {
    /// H = −Σ p ln p with ln p = z − top − ln M is ln M − Σ e (z − top)/M: two terms that are not negative.
    #[inline(always)]
    fn new(z: &[T], cool_hard: T) -> Self {
        let features = z.len() - 1;
        let top = top_logit(z, cool_hard);
        let (mut mass, mut lean) = ([T::ZERO; WIDTH], [T::ZERO; WIDTH]);
        for at in starts(features) {
            let z = load(&z[..features], at, T::BLOCKED);
            for lane in 0..WIDTH {
                let below = z[lane] * cool_hard - top;
                let e = below.exp_down();
                mass[lane] += e;
                lean[lane] += e * below;
            }
        }
        let below = z[features] * cool_hard - top;
        let (stop, mass) = (below.exp_down(), total(mass));
        let whole = mass + stop;
        let entropy = whole.ln() - (total(lean) + stop * below) / whole;
        Self { features: mass, stop, entropy }
    }
}

/// From u to exp(u − top), and their sum.
#[inline(always)]
fn exp_below<T: Real>(u: &mut [T], top: T) -> T {
    let mut mass = [T::ZERO; WIDTH];
    for at in starts(u.len()) {
        let mut block = load(u, at, T::BLOCKED);
        for lane in 0..WIDTH {
            block[lane] = (block[lane] - top).exp_down();
            mass[lane] += block[lane];
        }
        store(u, at, &block);
    }
    total(mass)
}

/// From exp(u − top) to r̃, and m̃ one step on; gives Σ r̃ c.
#[inline(always)]
fn relax_mask<T: Real>(chance: &mut [T], mass: T, mask: &[T], mask_next: &mut [T], costs: &[T]) -> T {
    let (mut price, share) = ([T::ZERO; WIDTH], T::ONE / mass);
    for at in starts(chance.len()) {
        let (mut r, mask) = (load(chance, at, T::ZERO), load(mask, at, T::ZERO));
        let (costs, mut mask_after) = (load(costs, at, T::ZERO), [T::ZERO; WIDTH]);
        for lane in 0..WIDTH {
            r[lane] = (r[lane] * share).flush();
            mask_after[lane] = mask[lane] + (T::ONE - mask[lane]) * r[lane];
            price[lane] += r[lane] * costs[lane];
        }
        store(chance, at, &r);
        store(mask_next, at, &mask_after);
    }
    total(price)
}

#[inline(always)]
pub fn select<T: Real>(p: &Select, mut args: Args<T>) {
    let (logits, gumbel, when) = (args.reals_mut(), args.reals(), args.words_mut());
    let (relax, path, tape) = (args.reals_mut(), args.words_mut(), args.reals_mut());
    let (costs, hyper) = (args.reals(), args.reals());
    let (cool_hard, cool_soft) = (T::ONE / hyper[hyper::TAU_HARD], T::ONE / hyper[hyper::TAU_SOFT]);
    let (rows, features, step) = (p.rows as usize, p.features as usize, p.step as usize);
    let (pitch, relax_pitch) = (p.logit_pitch as usize, p.relax_pitch as usize);
    let costs = &costs[..features];
    // How much the predictor cares for a row where so much mass stops.
    let whole = T::ONE - hyper[hyper::PARTS];
    let even = whole * (T::ONE - hyper[hyper::FOCUS]);
    let focus = whole * hyper[hyper::FOCUS] * T::count(p.steps + 1);
    let weight_of = |mass: T| even + focus * mass;
    for row in 0..rows {
        let tape_row = step * rows + row;
        if p.relaxed == 0 && !still_asks(tape, hyper, step, rows, row) {
            let (now, then) = tape[tape_row * scalars::LEN..].split_at_mut(rows * scalars::LEN);
            now[scalars::HALT] = T::ONE;
            now[scalars::GO] = T::ZERO;
            now[scalars::ENTROPY] = T::ZERO;
            now[scalars::PRICE] = T::ZERO;
            now[scalars::WEIGHT] = weight_of(now[scalars::SURVIVAL]);
            then[scalars::SURVIVAL] = T::ZERO;
            path[tape_row] = p.features;
            continue;
        }
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

        // Block, and find the largest u and where it is; u for a while where r̃ will be.
        let (mut top_u, mut whose) = ([T::BLOCKED; WIDTH], [NEVER; WIDTH]);
        for at in starts(features) {
            let (mut z_block, noise) =
                (load(&z[..features], at, T::BLOCKED), load(&noise[..features], at, T::ZERO));
            let (seen, mut u) = (load(seen, at, 0), [T::BLOCKED; WIDTH]);
            for lane in 0..WIDTH {
                let open = seen[lane] == NEVER;
                z_block[lane] = if open { z_block[lane] } else { T::BLOCKED };
                u[lane] =
                    if open { (z_block[lane] * cool_hard + noise[lane]) * cool_soft } else { T::BLOCKED };
                let better = u[lane] > top_u[lane];
                top_u[lane] = if better { u[lane] } else { top_u[lane] };
                whose[lane] = if better { at as u32 + lane as u32 } else { whose[lane] };
            }
            store(&mut z[..features], at, &z_block);
            if p.relaxed != 0 {
                store(chance, at, &u);
            }
        }
        let top = largest(top_u);
        let chosen = whose.iter().zip(&top_u).filter(|&(_, &u)| u == top).map(|(&i, _)| i).min();
        // Logits that are no numbers leave nothing to choose by: the first that is open, then.
        let first_open = || seen.iter().position(|&at| at == NEVER).unwrap_or(0);
        let chosen = chosen.filter(|&i| i != NEVER).map_or_else(first_open, |i| i as usize);
        let top_u = top;
        let softmax = Softmax::new(z, cool_hard);

        let (mut mass_r, mut price) = (T::ONE, T::ZERO);
        if p.relaxed != 0 {
            mass_r = exp_below(chance, top_u);
            price = relax_mask(chance, mass_r, mask, mask_next, costs);
        }

        let (stop_mass, features_mass) = if hyper[hyper::EXACT_STOP] > T::ZERO {
            (softmax.stop, softmax.features)
        } else {
            let u_stop = (z[features] * cool_hard + noise[features]) * cool_soft;
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
        now[scalars::ENTROPY] = softmax.entropy;
        now[scalars::PRICE] = if p.soft != 0 { price } else { costs[chosen] };
        then[scalars::SURVIVAL] = (survival * go).flush();
        now[scalars::WEIGHT] = weight_of(survival * now[scalars::HALT]);
        then[scalars::WEIGHT] = weight_of(then[scalars::SURVIVAL]);
        path[tape_row] = chosen as u32;
        seen[chosen] = p.step;
    }
}

#[inline(always)]
pub fn select_grad<T: Real>(p: &SelectGrad, mut args: Args<T>) {
    let (logits, relax, mask_grad) = (args.reals_mut(), args.reals(), args.reals());
    let (tape, losses, costs, hyper) = (args.reals_mut(), args.reals(), args.reals(), args.reals());
    let path = args.words();
    let (alpha, lambda) = (hyper[hyper::ALPHA], hyper[hyper::LAMBDA]);
    let (cool_hard, cool_soft) = (T::ONE / hyper[hyper::TAU_HARD], T::ONE / hyper[hyper::TAU_SOFT]);
    let (hazard, score) = (hyper[hyper::HAZARD], hyper[hyper::SCORE]);
    let exact = hyper[hyper::EXACT_STOP] > T::ZERO;
    let relaxed = if p.relaxed != 0 { (T::ONE - score) * cool_soft } else { T::ZERO };
    let (rows, features) = (p.rows as usize, p.features as usize);
    let (pitch, relax_pitch) = (p.logit_pitch as usize, p.relax_pitch as usize);
    let loss_at = |tape_row: usize| losses[tape_row * losses::LEN + losses::LOSS];
    let costs = &costs[..features];
    for row in 0..rows {
        let tape_row = p.step as usize * rows + row;
        if p.relaxed == 0 && !still_asks(tape, hyper, p.step as usize, rows, row) {
            tape[tape_row * scalars::LEN + scalars::VALUE] = loss_at(tape_row);
            continue;
        }
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

        let top = top_logit(z, cool_hard);
        let spent = survival * alpha * go;
        let (mut mass, mut pull) = ([T::ZERO; WIDTH], [T::ZERO; WIDTH]);
        for at in starts(features) {
            let z = load(&z[..features], at, T::BLOCKED);
            for lane in 0..WIDTH {
                mass[lane] += (z[lane] * cool_hard - top).exp_down();
            }
            if relaxed > T::ZERO {
                let (r, mask) = (load(chance, at, T::ZERO), load(mask, at, T::ZERO));
                let (costs, back) = (load(costs, at, T::ZERO), load(from_mask, at, T::ZERO));
                for lane in 0..WIDTH {
                    pull[lane] += r[lane] * (spent * costs[lane] + (T::ONE - mask[lane]) * back[lane]);
                }
            }
        }
        let stop_below = z[features] * cool_hard - top;
        let mass = total(mass) + stop_below.exp_down();
        let (log_mass, pull) = (mass.ln(), total(pull));
        let stopping = (stop_below - log_mass).exp_down();
        let push = hyper[hyper::GUARD] * survival * (stopping - T::of(0.5));
        let keep = T::ONE - hazard;
        let (turn, going) = if exact {
            (stopping * go * dq, go / keep)
        } else {
            ((halt - hazard) * go / keep * cool_soft * dq, T::ONE - stopping)
        };
        let per_going = T::ONE / going.larger(T::of(1e-6));
        let (along_share, along_chance) = if exact { (turn, T::ZERO) } else { (T::ZERO, turn) };
        let (bonus, by_share) = (lambda * survival, (along_share + advantage + push) * per_going);
        for at in starts(features) {
            let mut z_block = load(&z[..features], at, T::BLOCKED);
            let mut dz = [T::ZERO; WIDTH];
            for lane in 0..WIDTH {
                let log_p = z_block[lane] * cool_hard - top - log_mass;
                let p = log_p.exp_down();
                // Where p is zero, ln p may be anything.
                dz[lane] = p * (bonus * (log_p + entropy) - by_share);
            }
            if along_chance != T::ZERO || relaxed > T::ZERO {
                let (r, mask) = (load(chance, at, T::ZERO), load(mask, at, T::ZERO));
                let (costs, back) = (load(costs, at, T::ZERO), load(from_mask, at, T::ZERO));
                for lane in 0..WIDTH {
                    let dr = spent * costs[lane] + (T::ONE - mask[lane]) * back[lane];
                    dz[lane] += r[lane] * (relaxed * (dr - pull) - along_chance);
                }
            }
            for lane in 0..WIDTH {
                let open = !z_block[lane].is_blocked();
                let dz = (dz[lane] * cool_hard).flush();
                z_block[lane] = if open { dz } else { T::ZERO };
            }
            store(&mut z[..features], at, &z_block);
        }
        z[chosen] = (z[chosen] + advantage * cool_hard).flush();
        let log_p = stop_below - log_mass;
        let dz = bonus * stopping * (log_p + entropy) + turn + push;
        z[features] = (dz * cool_hard).flush();
        tape[tape_row * scalars::LEN + scalars::VALUE] =
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
