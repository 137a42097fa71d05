//! The way back through one acquisition. The maths is beside the shader.

use super::select::ROW;
use super::{hyper, masks, scalars};
use crate::engine::cpu::pack::{Pack, part_of, parts};
use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::losses;
use crate::engine::kernels::{BEST, MATH, Part, Work, each, kernel, product};
use std::ops::Range;

kernel! {
    /// Backward through one acquisition: the logits become their gradient.
    pub SelectGrad "nmppg/select_grad"
    [MATH, BEST, Part::Team, Part::Words(&hyper::WORDS), Part::Words(&scalars::WORDS), Part::Words(&losses::WORDS), masks::PART]
    { rows, step, steps, features, logit_pitch, mask_pitch, relaxed }
    (logits: F32 Write, masks: F32 Read, mask_grad: F32 Read, scalars: F32 Write, losses: F32 Read,
     costs: F32 Read, settings: F32 Read, path: U32 Read)
    grid |p| each(p.rows);
    // Logits twice, m̃, r̃ and M.
    work |p| Work::of_numbers(
        each(p.rows),
        product(&[p.rows, 2 * p.features + p.relaxed * 3 * p.features + ROW]),
    );
    twin rows select_grad;
}

/// The rollouts of a row's instance in this micro-batch: `count` rows one after the other.
#[inline(always)]
fn rollouts_of<T: Real>(row: usize, rows: usize, count: T) -> Range<usize> {
    let mut rollouts = 1;
    while T::count(rollouts) < count {
        rollouts += 1;
    }
    let first = row - row % rollouts as usize;
    first..(first + rollouts as usize).min(rows)
}

/// dr̃ = s α g c + (1 − m̃) ⊙ M of some features, with s α g as `spent`.
#[inline(always)]
fn chance_grad<V: Pack>(
    set: V::Set,
    spent: V,
    [costs, mask, from_mask]: [&[V::Real]; 3],
    part: &Range<usize>,
) -> V {
    let unseen = V::splat(set, V::Real::ONE) - part_of(set, mask, part);
    spent * part_of(set, costs, part) + unseen * part_of(set, from_mask, part)
}

/// Σ r̃ dr̃.
#[inline(always)]
fn pull_of<V: Pack>(set: V::Set, spent: V, chance: &[V::Real], of: [&[V::Real]; 3]) -> V::Real {
    let mut pull = V::splat(set, V::Real::ZERO);
    for part in parts::<V>(chance.len()) {
        pull = pull + part_of::<V>(set, chance, &part) * chance_grad::<V>(set, spent, of, &part);
    }
    pull.total()
}

/// What the gradient of a row's logits is made of.
struct LogitGrad<T> {
    cool_hard: T,
    top: T,
    log_mass: T,
    entropy: T,
    /// Weight of the entropy bonus, and of p itself.
    bonus: T,
    by_share: T,
    /// Weight of the way through r̃, Σ r̃ dr̃, and what the stop's relaxed share adds.
    relaxed: T,
    pull: T,
    along_chance: T,
}

impl<T: Real> LogitGrad<T> {
    /// From the features' logits to their gradients.
    #[inline(always)]
    fn write<V: Pack<Real = T>>(&self, set: V::Set, z: &mut [T], chance: &[T], spent: V, of: [&[T]; 3]) {
        let splat = |value| V::splat(set, value);
        for part in parts::<V>(z.len()) {
            let raw = V::load(set, &z[part.clone()], T::BLOCKED);
            let log_p = raw * splat(self.cool_hard) - splat(self.top) - splat(self.log_mass);
            // Where p is zero, ln p may be anything.
            let along_p = splat(self.bonus) * (log_p + splat(self.entropy)) - splat(self.by_share);
            let mut dz = log_p.exp_down() * along_p;
            if self.along_chance != T::ZERO || self.relaxed > T::ZERO {
                let dr = chance_grad::<V>(set, spent, of, &part);
                let r = part_of::<V>(set, chance, &part);
                dz = dz + r * (splat(self.relaxed) * (dr - splat(self.pull)) - splat(self.along_chance));
            }
            let open = raw.above(splat(T::BLOCKED * T::of(0.1)));
            (dz * splat(self.cool_hard)).flush().where_or(open, splat(T::ZERO)).store(&mut z[part]);
        }
    }
}

/// REINFORCE's part of a row: its share of the gradient times what the row pays beyond its instance's other rollouts; 0
/// if there are none.
#[inline(always)]
fn advantage_of<T: Real>(row: usize, rollouts: Range<usize>, share: T, ahead: impl Fn(usize) -> T) -> T {
    if rollouts.len() < 2 {
        return T::ZERO;
    }
    let count = T::count(rollouts.len() as u32 - 1);
    let others = rollouts.filter(|&other| other != row);
    let mean = others.map(&ahead).sum::<T>() / count;
    share * (ahead(row) - mean)
}

#[inline(always)]
fn select_grad<V: Pack>(set: V::Set, p: &SelectGrad, mut args: Args<V::Real>) {
    let (logits, masks, mask_grad) = (args.reals_mut(), args.reals(), args.reals());
    let (tape, losses, costs, settings) = (args.reals_mut(), args.reals(), args.reals(), args.reals());
    let path = args.words();
    let (zero, one) = (V::Real::ZERO, V::Real::ONE);
    let (cool_hard, cool_soft) = (one / settings[hyper::TAU_HARD], one / settings[hyper::TAU_SOFT]);
    let (hazard, reinforce) = (settings[hyper::HAZARD], settings[hyper::REINFORCE]);
    let exact = settings[hyper::EXACT_STOP] > zero;
    let relaxed = if p.relaxed != 0 { (one - reinforce) * cool_soft } else { zero };
    let (rows, features) = (p.rows as usize, p.features as usize);
    let (pitch, mask_pitch) = (p.logit_pitch as usize, p.mask_pitch as usize);
    let costs = &costs[..features];
    for row in 0..rows {
        let factor = tape[row * scalars::LEN + scalars::FACTOR];
        let (alpha, lambda) = (settings[hyper::ALPHA] * factor, settings[hyper::LAMBDA] * factor);
        let guard = settings[hyper::GUARD] * factor;
        let loss_at = |tape_row: usize| losses[tape_row * losses::LEN + losses::LOSS];
        let tape_row = p.step as usize * rows + row;
        let z = &mut logits[tape_row * pitch..][..=features];
        let mask = &masks[tape_row * 2 * mask_pitch..][..features];
        let chance = &masks[tape_row * 2 * mask_pitch + mask_pitch..][..features];
        let from_mask = &mask_grad[row * mask_pitch..][..features];
        // What an instance's rollout pays from this step on, if it goes on here.
        let ahead = |tape: &[V::Real], row: usize| {
            let (at, next) = (p.step as usize * rows + row, (p.step as usize + 1) * rows + row);
            let last = p.step + 1 == p.steps;
            let value = if last { loss_at(next) } else { tape[next * scalars::LEN + scalars::VALUE] };
            (alpha * tape[at * scalars::LEN + scalars::PRICE] + value, value)
        };
        let (_, value_next) = ahead(tape, row);
        let now = &tape[tape_row * scalars::LEN..][..scalars::LEN];
        let (survival, halt, go) = (now[scalars::SURVIVAL], now[scalars::HALT], now[scalars::GO]);
        let (entropy, price, loss) = (now[scalars::ENTROPY], now[scalars::PRICE], loss_at(tape_row));
        let (top, log_mass) = (now[scalars::TOP], now[scalars::LOG_MASS]);
        let dq = survival * (loss - alpha * price - value_next);
        let advantage = if reinforce > zero {
            let rollouts = rollouts_of(row, rows, settings[hyper::ROLLOUTS]);
            advantage_of(row, rollouts, reinforce * survival * go, |row| ahead(tape, row).0)
        } else {
            zero
        };
        let chosen = path[tape_row] as usize;

        let spent = V::splat(set, survival * alpha * go);
        let pull = match relaxed > zero {
            true => pull_of::<V>(set, spent, chance, [costs, mask, from_mask]),
            false => zero,
        };
        let log_p_stop = z[features] * cool_hard - top - log_mass;
        let stopping = log_p_stop.exp_down();
        // Where nothing can be had, there is no decision to guard.
        let guard = if chosen < features { guard } else { zero };
        let push = guard * survival * (stopping - V::Real::of(0.5));
        let keep = one - hazard;
        let (turn, going) = if exact {
            (stopping * go * dq, go / keep)
        } else {
            ((halt - hazard) * go / keep * cool_soft * dq, one - stopping)
        };
        let per_going = one / going.larger(V::Real::of(1e-6));
        let (along_share, along_chance) = if exact { (turn, zero) } else { (zero, turn) };
        let (bonus, by_share) = (lambda * survival, (along_share + advantage + push) * per_going);
        let of =
            LogitGrad { cool_hard, top, log_mass, entropy, bonus, by_share, relaxed, pull, along_chance };
        of.write::<V>(set, &mut z[..features], chance, spent, [costs, mask, from_mask]);
        z[chosen] = (z[chosen] + advantage * cool_hard).flush();
        let dz = bonus * stopping * (log_p_stop + entropy) + turn + push;
        z[features] = (dz * cool_hard).flush();
        tape[tape_row * scalars::LEN + scalars::VALUE] =
            alpha * go * price + halt * loss - settings[hyper::LURE] * lambda * entropy + go * value_next;
    }
}
