//! Cross-entropy and its gradient, and the means of it that are shown.

use super::words::{MARKS, NO_LABEL, losses, metrics};
use super::{MATH, Part, REDUCE, Work, kernel, line, product, workgroups};
use crate::engine::cpu::{Args, Real};

kernel! {
    /// Weighted cross-entropy of each row; the logits become the loss's unit gradient.
    pub Loss "loss" [MATH, Part::Words(&losses::WORDS), Part::Words(&MARKS)]
    { rows, batch, classes, pitch, weights, weight_stride, weight_word, from_row }
    (logits: F32 Write, y: U32 Read, costs: F32 Read, losses: F32 Write, row_weights: F32 Read)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(
        line(p.rows),
        product(&[p.rows, 2 * p.pitch + p.weight_stride + losses::LEN as u32]),
    );
    twin loss;
}

#[inline(always)]
fn loss<T: Real>(p: &Loss, mut args: Args<T>) {
    let (logits, y, costs, out) = (args.reals_mut(), args.words(), args.reals(), args.reals_mut());
    let row_weights = args.reals();
    let (classes, pitch) = (p.classes as usize, p.pitch as usize);
    for row in 0..p.rows as usize {
        let label = y[row % p.batch as usize];
        let logits = &mut logits[row * pitch..][..classes];
        let (mut top, mut guess) = (logits[0], 0);
        for (class, &logit) in logits.iter().enumerate() {
            if logit > top {
                (top, guess) = (logit, class as u32);
            }
        }
        let (mut weight, mut loss) = (T::ZERO, T::ZERO);
        let label_logit = logits.get(label as usize).copied();
        let mut mass = T::ZERO;
        for logit in logits.iter_mut() {
            *logit = (*logit - top).exp_down();
            mass += *logit;
        }
        if label != NO_LABEL
            && row >= p.from_row as usize
            && let Some(logit) = label_logit
        {
            weight = costs[(p.weights + label) as usize];
            loss = weight * (mass.ln() + top - logit);
        }
        if p.weight_stride != 0 {
            weight *= row_weights[(row as u32 * p.weight_stride + p.weight_word) as usize];
        }
        for (class, logit) in logits.iter_mut().enumerate() {
            let hit = if class as u32 == label { T::ONE } else { T::ZERO };
            *logit = weight * (*logit / mass - hit);
        }
        out[row * losses::LEN + losses::LOSS] = loss;
        out[row * losses::LEN + losses::GUESS] = T::count(guess);
    }
}

kernel! {
    /// Weighted cross-entropy of a belief that is the mean over samples; the logits may become its unit gradient.
    pub MixtureLoss "mixture_loss" [MATH, Part::Words(&losses::WORDS)]
    { rows, samples, classes, pitch, weights, learn }
    (logits: F32 Write, y: U32 Read, costs: F32 Read, losses: F32 Write, belief: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), 3 * product(&[p.rows, p.samples, p.pitch]));
    twin mixture_loss;
}

/// The largest of some logits, and the sum of the exponentials of what they are above it.
#[inline(always)]
fn top_and_mass<T: Real>(logits: &[T]) -> (T, T) {
    let top = logits.iter().fold(logits[0], |top, &logit| logit.larger(top));
    (top, logits.iter().map(|&logit| (logit - top).exp_down()).sum())
}

#[inline(always)]
fn mixture_loss<T: Real>(p: &MixtureLoss, mut args: Args<T>) {
    let (logits, y, costs) = (args.reals_mut(), args.words(), args.reals());
    let (out, belief) = (args.reals_mut(), args.reals_mut());
    let (rows, classes, pitch) = (p.rows as usize, p.classes as usize, p.pitch as usize);
    for row in 0..rows {
        let label = y[row];
        let (labelled, hit) = (label < p.classes, if label < p.classes { label as usize } else { 0 });
        let belief = &mut belief[row * pitch..][..classes];
        belief.fill(T::ZERO);
        let (mut best, mut sum) = (T::BLOCKED, T::ZERO);
        for sample in 0..p.samples as usize {
            let logits = &logits[(sample * rows + row) * pitch..][..classes];
            let (top, mass) = top_and_mass(logits);
            for (f, &logit) in belief.iter_mut().zip(logits) {
                *f += (logit - top).exp_down() / mass;
            }
            let of_label = logits[hit] - top - mass.ln();
            if of_label > best {
                sum = sum * (best - of_label).exp_down() + T::ONE;
                best = of_label;
            } else {
                sum += (of_label - best).exp_down();
            }
        }
        let mut guess = 0;
        for class in 0..classes {
            belief[class] /= T::count(p.samples);
            if belief[class] > belief[guess] {
                guess = class;
            }
        }
        let weight = if labelled { costs[p.weights as usize + hit] } else { T::ZERO };
        out[row * losses::LEN + losses::LOSS] = weight * (T::count(p.samples).ln() - best - sum.ln());
        out[row * losses::LEN + losses::GUESS] = T::count(guess as u32);
        if p.learn == 0 {
            continue;
        }
        for sample in 0..p.samples as usize {
            let logits = &mut logits[(sample * rows + row) * pitch..][..classes];
            let (top, mass) = top_and_mass(logits);
            let share = weight * (logits[hit] - top - mass.ln() - best).exp_down() / sum;
            for (class, logit) in logits.iter_mut().enumerate() {
                let is_hit = if class == hit { T::ONE } else { T::ZERO };
                *logit = share * ((*logit - top).exp_down() / mass - is_hit);
            }
        }
    }
}

kernel! {
    /// Adds a word of some rows of a tape, such as their losses, to a word of the metrics.
    pub MeanLoss "mean_loss" [REDUCE, Part::Words(&metrics::WORDS), Part::Words(&MARKS)]
    { rows, batch, divisor, stride, at, word, training }
    (losses: F32 Read, y: U32 Read, metrics: F32 Write)
    grid |_p| workgroups(1);
    work |p| Work::of_numbers(workgroups(1), product(&[p.rows, p.stride]));
    twin mean_loss;
}

#[inline(always)]
fn mean_loss<T: Real>(p: &MeanLoss, mut args: Args<T>) {
    let (losses, y, metrics) = (args.reals(), args.words(), args.reals_mut());
    let mut total = T::ZERO;
    for (row, loss) in losses.chunks_exact(p.stride as usize).take(p.rows as usize).enumerate() {
        if y[row % p.batch as usize] != NO_LABEL {
            total += loss[p.at as usize];
        }
    }
    let mean = total / T::count(p.divisor);
    metrics[p.word as usize] += mean;
    if p.training != 0 {
        metrics[metrics::LOST] += mean;
        metrics[metrics::INSTANCES] += T::count(p.batch);
    }
}
