//! The greedy policy and what is counted of it.

use super::words::{MARKS, METRICS, METRICS_LEN, NEVER, NO_LABEL, clock, losses};
use super::{BEST, Part, REDUCE, Work, area, each, kernel, product, workgroups};
use crate::engine::cpu::pack::{Pack, part_of, parts};
use crate::engine::cpu::{Args, Real};

kernel! {
    /// One step of the greedy policy: acquire the best feature, or stop for good.
    pub Greedy "greedy" [BEST, Part::Team, Part::Words(&MARKS)]
    { rows, step, features, logit_pitch, stop }
    (logits: F32 Read, acquired_at: U32 Write, path: U32 Write)
    grid |p| each(p.rows);
    work |p| Work::of_numbers(each(p.rows), product(&[p.rows, 2 * p.features]));
    twin rows greedy;
}

#[inline(always)]
fn greedy<V: Pack>(set: V::Set, p: &Greedy, mut args: Args<V::Real>) {
    let (logits, acquired_at, path) = (args.reals(), args.words_mut(), args.words_mut());
    let (rows, features, step) = (p.rows as usize, p.features as usize, p.step as usize);
    for row in 0..rows {
        let seen = &mut acquired_at[row * features..][..features];
        if step == 0 {
            seen.fill(NEVER);
        }
        let stopped = step > 0 && path[(step - 1) * rows + row] == p.features;
        let mut action = p.features;
        if !stopped {
            let z = &logits[row * p.logit_pitch as usize..];
            let stop = if p.stop != 0 { z[features] } else { V::Real::of(f64::NEG_INFINITY) };
            action = largest_open::<V>(set, &z[..features], stop, seen);
        }
        path[step * rows + row] = action;
        if action < p.features {
            seen[action as usize] = p.step;
        }
    }
}

/// The action with the largest logit: of equal ones the first; where no logit is finite, the first that is open.
#[inline(always)]
fn largest_open<V: Pack>(set: V::Set, z: &[V::Real], stop: V::Real, acquired_at: &[u32]) -> u32 {
    let nobody = V::splat(set, V::Real::of(f64::INFINITY));
    let (mut top, mut whose) = (V::splat(set, V::Real::of(f64::NEG_INFINITY)), nobody);
    let mut index = V::indices(set);
    for part in parts::<V>(acquired_at.len()) {
        let open = V::open(set, &acquired_at[part.clone()]);
        let better = part_of::<V>(set, z, &part).where_or(open, top);
        whose = index.where_or(better.above(top), whose);
        top = better.larger(top);
        index = index + V::splat(set, V::Real::count(V::WIDTH as u32));
    }
    let largest = top.largest();
    let first = nobody.where_or(V::splat(set, largest).above(top), whose).smallest();
    if first.is_finite() {
        return if stop > largest { acquired_at.len() as u32 } else { first.index() as u32 };
    }
    acquired_at.iter().position(|&at| at == NEVER).unwrap_or(acquired_at.len()) as u32
}

kernel! {
    /// Adds a chunk of greedily evaluated rows to the metrics of its pass over the split.
    pub Tally "tally"
    [REDUCE, Part::Words(&losses::WORDS), Part::Words(&MARKS), Part::Words(&clock::WORDS), Part::Words(&METRICS_LEN)]
    { rows, steps, features, chunks, slot }
    (clock: U32 Read, losses: F32 Read, path: U32 Read, y: U32 Read, costs: F32 Read, metrics: F32 Write)
    grid |_p| workgroups(1);
    work |_p| Work::of_threads(workgroups(1));
    twin tally;
}

kernel! {
    /// Adds to the counts of what was asked at each step of the greedy policy.
    pub Asked "asked" [Part::Words(&MARKS)]
    { rows, steps, features }
    (path: U32 Read, y: U32 Read, counts: U32 Write)
    grid |p| area(p.features + 1, p.steps);
    work |p| Work::of_threads(area(p.features + 1, p.steps));
    twin asked;
}

#[inline(always)]
fn tally<T: Real>(p: &Tally, mut args: Args<T>) {
    let (clock, losses, path, y) = (args.words(), args.reals(), args.words(), args.words());
    let (costs, metrics) = (args.reals(), args.reals_mut());
    let (rows, steps) = (p.rows as usize, p.steps as usize);
    let (mut loss, mut correct, mut cost) = (T::ZERO, T::ZERO, T::ZERO);
    let (mut acquired, mut count) = (0, 0);
    for row in (0..rows).filter(|&row| y[row] != NO_LABEL) {
        loss += losses[row * losses::LEN + losses::LOSS];
        let guess = losses[row * losses::LEN + losses::GUESS];
        correct += if guess == T::count(y[row]) { T::ONE } else { T::ZERO };
        count += 1;
        for feature in (0..steps).map(|t| path[t * rows + row]).filter(|&feature| feature < p.features) {
            cost += costs[feature as usize];
            acquired += 1;
        }
    }
    let pass = clock[clock::CHUNK] / p.chunks.max(1) + p.slot;
    let metrics = &mut metrics[pass as usize * METRICS..][..METRICS];
    for (metric, value) in metrics.iter_mut().zip([loss, correct, cost, T::count(acquired), T::count(count)])
    {
        *metric += value;
    }
}

#[inline(always)]
fn asked<T: Real>(p: &Asked, mut args: Args<T>) {
    let (path, y, counts) = (args.words(), args.words(), args.words_mut());
    let (rows, actions) = (p.rows as usize, p.features as usize + 1);
    for (at, counts) in path.chunks_exact(rows).zip(counts.chunks_exact_mut(actions)).take(p.steps as usize) {
        for (&action, _) in at.iter().zip(y).filter(|(_, y)| **y != NO_LABEL) {
            counts[action as usize] += 1;
        }
    }
}
