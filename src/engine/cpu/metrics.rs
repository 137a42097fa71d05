//! Twins of `outcome.wgsl`, `score.wgsl` and `asked.wgsl`: what the host reads back.

use super::args::Args;
use super::real::Real;
use crate::engine::kernels::{Asked, Outcome, Score};
use crate::engine::state::{NO_LABEL, hyper, losses, scalars};

#[inline(always)]
pub fn outcome<T: Real>(p: &Outcome, mut args: Args<T>) {
    let (tape, losses, hyper, metrics) = (args.reals(), args.reals(), args.reals(), args.reals_mut());
    let (rows, steps) = (p.rows as usize, p.steps as usize);
    let (mut g, mut h, mut l) = (T::ZERO, T::ZERO, T::ZERO);
    let marks = [p.mark0, p.mark1, p.mark2];
    let mut still = [T::ZERO; 3];
    for row in 0..rows {
        let mut total = T::ZERO;
        for t in 0..steps {
            let tape_row = t * rows + row;
            let now = &tape[tape_row * scalars::LEN..][..scalars::LEN];
            let loss = losses[tape_row * losses::LEN + losses::LOSS];
            let spent = hyper[hyper::ALPHA] * now[scalars::GO] * now[scalars::PRICE];
            g += now[scalars::SURVIVAL] * (spent + now[scalars::HALT] * loss);
            h += now[scalars::SURVIVAL] * now[scalars::ENTROPY];
            total += loss;
        }
        let last = steps * rows + row;
        let loss = losses[last * losses::LEN + losses::LOSS];
        let survival = if steps == 0 { T::ONE } else { tape[last * scalars::LEN + scalars::SURVIVAL] };
        g += survival * loss;
        l += (total + loss) / T::count(p.steps + 1);
        for (still, &mark) in still.iter_mut().zip(&marks).filter(|(_, mark)| (1..=p.steps).contains(*mark)) {
            *still += tape[(mark as usize * rows + row) * scalars::LEN + scalars::SURVIVAL];
        }
    }
    let sums = [g - hyper[hyper::LAMBDA] * h, g, h, l, T::count(p.rows), still[0], still[1], still[2]];
    for (metric, value) in metrics.iter_mut().zip(sums) {
        *metric += value;
    }
}

#[inline(always)]
pub fn score<T: Real>(p: &Score, mut args: Args<T>) {
    let (losses, path, y) = (args.reals(), args.words(), args.words());
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
    for (metric, value) in metrics.iter_mut().zip([loss, correct, cost, T::count(acquired), T::count(count)])
    {
        *metric += value;
    }
}

#[inline(always)]
pub fn asked<T: Real>(p: &Asked, mut args: Args<T>) {
    let (path, y, counts) = (args.words(), args.words(), args.words_mut());
    let (rows, actions) = (p.rows as usize, p.features as usize + 1);
    for (at, counts) in path.chunks_exact(rows).zip(counts.chunks_exact_mut(actions)).take(p.steps as usize) {
        for (&action, _) in at.iter().zip(y).filter(|(_, y)| **y != NO_LABEL) {
            counts[action as usize] += 1;
        }
    }
}
