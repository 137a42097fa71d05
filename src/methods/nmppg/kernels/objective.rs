//! What the host reads back of a training step.

use super::{hyper, scalars};
use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::losses;
use crate::engine::kernels::{Part, REDUCE, Work, kernel, product, workgroups};

kernel! {
    /// Adds a micro-batch's objective, its parts and the predictor's loss to the metrics.
    pub Objective "nmppg/objective"
    [REDUCE, Part::Words(&hyper::WORDS), Part::Words(&scalars::WORDS), Part::Words(&losses::WORDS)]
    { rows, steps, mark0, mark1, mark2 }
    (scalars: F32 Read, losses: F32 Read, settings: F32 Read, metrics: F32 Write)
    grid |_p| workgroups(1);
    work |p| Work::of_numbers(
        workgroups(1),
        product(&[p.rows, p.steps + 1, (scalars::LEN + losses::LEN) as u32]),
    );
    twin objective;
}

#[inline(always)]
fn objective<T: Real>(p: &Objective, mut args: Args<T>) {
    let (tape, losses, settings, metrics) = (args.reals(), args.reals(), args.reals(), args.reals_mut());
    let (rows, steps) = (p.rows as usize, p.steps as usize);
    let (mut g, mut h, mut lifted, mut l) = (T::ZERO, T::ZERO, T::ZERO, T::ZERO);
    let marks = [p.mark0, p.mark1, p.mark2];
    let mut still = [T::ZERO; 3];
    for row in 0..rows {
        let mut total = T::ZERO;
        let factor = tape[row * scalars::LEN + scalars::FACTOR];
        let alpha = settings[hyper::ALPHA] * factor;
        for t in 0..steps {
            let tape_row = t * rows + row;
            let now = &tape[tape_row * scalars::LEN..][..scalars::LEN];
            let loss = losses[tape_row * losses::LEN + losses::LOSS];
            let spent = alpha * now[scalars::GO] * now[scalars::PRICE];
            g += now[scalars::SURVIVAL] * (spent + now[scalars::HALT] * loss);
            let entropy = now[scalars::SURVIVAL] * now[scalars::ENTROPY];
            h += entropy;
            lifted += (factor - T::ONE) * entropy;
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
    let sums =
        [g - settings[hyper::LAMBDA] * (h + lifted), g, h, l, T::count(p.rows), still[0], still[1], still[2]];
    for (metric, value) in metrics.iter_mut().zip(sums) {
        *metric += value;
    }
}
