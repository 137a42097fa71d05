//! One acquisition of the rollout. The maths is beside the shader.

use super::{hyper, masks, scalars};
use crate::engine::cpu::pack::{Pack, part_of, parts};
use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::{MARKS, NEVER, losses};
use crate::engine::kernels::{BEST, MATH, Part, Work, each, kernel, product};

/// Words of a row that a step leaves behind.
pub(super) const ROW: u32 = (scalars::LEN + losses::LEN) as u32;

kernel! {
    /// One acquisition of the rollout: block, temper, perturb, choose; masks, survival, entropy.
    pub Select "nmppg/select"
    [MATH, BEST, Part::Team, Part::Words(&hyper::WORDS), Part::Words(&scalars::WORDS), Part::Words(&MARKS), masks::PART]
    { rows, step, steps, features, logit_pitch, mask_pitch, soft, relaxed }
    (logits: F32 Write, gumbel: F32 Read, acquired_at: U32 Write, masks: F32 Write, path: U32 Write,
     scalars: F32 Write, costs: F32 Read, settings: F32 Read)
    grid |p| each(p.rows);
    // Logits twice, noise, acquired_at, m̃ twice and r̃.
    work |p| Work::of_numbers(
        each(p.rows),
        product(&[p.rows, 4 * p.features + p.relaxed * 3 * p.features + ROW]),
    );
    twin rows select;
}

/// A softmax over what can be done.
struct Softmax<T> {
    /// Σ exp(z/τh − top) over the features, top the largest of all; the stop's share of it; and ln of both.
    features: T,
    stop: T,
    log_mass: T,
    entropy: T,
}

impl<T: Real> Softmax<T> {
    /// H = −Σ p ln p with ln p = z − top − ln M is ln M − Σ e (z − top)/M: two terms that are not negative.
    /// Temperatures are given as their reciprocals here: a product is several times as fast as a quotient.
    #[inline(always)]
    fn new<V: Pack<Real = T>>(set: V::Set, z: &[T], cool_hard: T, top: T) -> Self {
        let (features, splat) = (z.len() - 1, |value| V::splat(set, value));
        let (mut mass, mut lean) = (splat(T::ZERO), splat(T::ZERO));
        for part in parts::<V>(features) {
            let below = V::load(set, &z[part], T::BLOCKED) * splat(cool_hard) - splat(top);
            let e = below.exp_down();
            mass = mass + e;
            lean = lean + e * below;
        }
        let below = z[features] * cool_hard - top;
        let (stop, features) = (below.exp_down(), mass.total());
        let whole = features + stop;
        let log_mass = whole.ln();
        let entropy = log_mass - (lean.total() + stop * below) / whole;
        Self { features, stop, log_mass, entropy }
    }
}

/// From u to exp(u − top), and their sum.
#[inline(always)]
fn exp_below<V: Pack>(set: V::Set, u: &mut [V::Real], top: V::Real) -> V::Real {
    let mut mass = V::splat(set, V::Real::ZERO);
    for part in parts::<V>(u.len()) {
        let e = (V::load(set, &u[part.clone()], V::Real::BLOCKED) - V::splat(set, top)).exp_down();
        mass = mass + e;
        e.store(&mut u[part]);
    }
    mass.total()
}

/// From exp(u − top) to r̃, and m̃ one step on; gives Σ r̃ c.
#[inline(always)]
fn relax_mask<V: Pack>(
    set: V::Set,
    chance: &mut [V::Real],
    mass: V::Real,
    [mask, costs]: [&[V::Real]; 2],
    mask_next: &mut [V::Real],
) -> V::Real {
    let splat = |value| V::splat(set, value);
    let (mut price, one, share) = (splat(V::Real::ZERO), splat(V::Real::ONE), splat(V::Real::ONE / mass));
    for part in parts::<V>(chance.len()) {
        let r = (part_of::<V>(set, chance, &part) * share).flush();
        let soft = part_of::<V>(set, mask, &part);
        price = price + r * part_of(set, costs, &part);
        r.store(&mut chance[part.clone()]);
        (soft + (one - soft) * r).store(&mut mask_next[part]);
    }
    price.total()
}

/// The largest z/τh and the largest u of the features, and whose it is: that of the stop if no feature is open.
struct Tops<T> {
    z: T,
    u: T,
    chosen: usize,
}

impl<T: Real> Tops<T> {
    /// Blocks what has been acquired in z, and writes u if there is room for it.
    #[inline(always)]
    fn find<V: Pack<Real = T>>(
        set: V::Set,
        z: &mut [T],
        (noise, when): (&[T], &[u32]),
        [cool_hard, cool_soft]: [T; 2],
        mut u_to: Option<&mut [T]>,
    ) -> Self {
        let (splat, blocked) = (|value| V::splat(set, value), V::splat(set, T::BLOCKED));
        let (mut top_z, mut top_u, mut whose) = (blocked, blocked, splat(T::of(f64::INFINITY)));
        let mut index = V::indices(set);
        for part in parts::<V>(when.len()) {
            let open = V::open(set, &when[part.clone()]);
            let raw = part_of::<V>(set, z, &part);
            raw.where_or(open, blocked).store(&mut z[part.clone()]);
            let scaled = raw * splat(cool_hard);
            top_z = scaled.where_or(open, blocked).larger(top_z);
            let noise = part_of::<V>(set, noise, &part);
            let u = ((scaled + noise) * splat(cool_soft)).where_or(open, blocked);
            let better = u.above(top_u);
            top_u = u.where_or(better, top_u);
            whose = index.where_or(better, whose);
            index = index + splat(T::count(V::WIDTH as u32));
            if let Some(to) = &mut u_to {
                u.store(&mut to[part]);
            }
        }
        let u = top_u.largest();
        // Of equal ones the first, as on the GPU.
        let first = splat(T::of(f64::INFINITY)).where_or(splat(u).above(top_u), whose).smallest();
        // Logits that are no numbers leave nothing to choose by: the first that is open, then; nobody's, if none is.
        let first_open = || when.iter().position(|&at| at == NEVER).unwrap_or(when.len());
        let chosen = if first.is_finite() { first.index() } else { first_open() };
        Self { z: top_z.largest(), u, chosen }
    }
}

#[inline(always)]
fn select<V: Pack>(set: V::Set, p: &Select, mut args: Args<V::Real>) {
    let (logits, gumbel, acquired_at) = (args.reals_mut(), args.reals(), args.words_mut());
    let (masks, path, tape) = (args.reals_mut(), args.words_mut(), args.reals_mut());
    let (costs, settings) = (args.reals(), args.reals());
    let (zero, one) = (V::Real::ZERO, V::Real::ONE);
    let (cool_hard, cool_soft) = (one / settings[hyper::TAU_HARD], one / settings[hyper::TAU_SOFT]);
    let (rows, features, step) = (p.rows as usize, p.features as usize, p.step as usize);
    let (pitch, mask_pitch) = (p.logit_pitch as usize, p.mask_pitch as usize);
    let costs = &costs[..features];
    // How much the predictor cares for a row where so much mass stops.
    let whole = one - settings[hyper::SUBMASKS];
    let even = whole * (one - settings[hyper::FOCUS]);
    let focus = whole * settings[hyper::FOCUS] * V::Real::count(p.steps + 1);
    let weight_of = |mass: V::Real| even + focus * mass;
    for row in 0..rows {
        let tape_row = step * rows + row;
        let z = &mut logits[tape_row * pitch..][..=features];
        let noise = &gumbel[tape_row * pitch..][..=features];
        let seen = &mut acquired_at[row * features..][..features];
        // The tape rows of this step and the next: (m̃, r̃) now, m̃ then.
        let (now, then) = masks[tape_row * 2 * mask_pitch..].split_at_mut(rows * 2 * mask_pitch);
        let (mask, chance) = now.split_at_mut(mask_pitch);
        let (mask, chance, mask_next) =
            (&mut mask[..features], &mut chance[..features], &mut then[..features]);
        if step == 0 {
            mask.fill(zero);
        }

        // u for a while where r̃ will be.
        let u_to = (p.relaxed != 0).then_some(&mut *chance);
        let tops = Tops::find::<V>(set, z, (noise, seen), [cool_hard, cool_soft], u_to);
        let (chosen, stop) = (tops.chosen, z[features]);
        let top_z = tops.z.larger(stop * cool_hard);
        let softmax = Softmax::new::<V>(set, z, cool_hard, top_z);

        let (mut mass_r, mut price) = (one, zero);
        let acquires = chosen < features;
        if p.relaxed != 0 && !acquires {
            chance.fill(zero);
            mask_next.copy_from_slice(mask);
        } else if p.relaxed != 0 {
            mass_r = exp_below::<V>(set, chance, tops.u);
            price = relax_mask::<V>(set, chance, mass_r, [mask, costs], mask_next);
        }

        let (stop_mass, features_mass) = if settings[hyper::EXACT_STOP] > zero {
            (softmax.stop, softmax.features)
        } else {
            let u_stop = (stop * cool_hard + noise[features]) * cool_soft;
            let top = u_stop.larger(tops.u);
            ((u_stop - top).exp_down(), (tops.u - top).exp_down() * mass_r)
        };
        let (hazard, mass) = (settings[hyper::HAZARD], features_mass + stop_mass);
        let go = (one - hazard) * (features_mass / mass);
        let (now, then) = tape[tape_row * scalars::LEN..].split_at_mut(rows * scalars::LEN);
        let survival = if step == 0 { one } else { now[scalars::SURVIVAL] };
        now[scalars::SURVIVAL] = survival;
        now[scalars::HALT] = hazard + (one - hazard) * (stop_mass / mass);
        now[scalars::GO] = go;
        now[scalars::ENTROPY] = softmax.entropy;
        now[scalars::TOP] = top_z;
        now[scalars::LOG_MASS] = softmax.log_mass;
        now[scalars::PRICE] = match acquires {
            true if p.soft == 0 => costs[chosen],
            _ => price,
        };
        then[scalars::SURVIVAL] = (survival * go).flush();
        now[scalars::WEIGHT] = weight_of(survival * now[scalars::HALT]);
        then[scalars::WEIGHT] = weight_of(then[scalars::SURVIVAL]);
        path[tape_row] = chosen as u32;
        if acquires {
            seen[chosen] = p.step;
        }
    }
}
