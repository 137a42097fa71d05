//! The kernels that only OL has. The maths is beside the shaders.

use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::{
    MARKS, NEVER, STREAMS, clock, losses, metrics as counted, settings, words,
};
use crate::engine::kernels::{
    BEST, Kernel, MATH, Params, Part, RANDOM, Work, each, kernel, largest, line, product, returns, source,
    taken,
};
use crate::methods::usual::CHEAPEST;

/// All of them.
pub static KERNELS: &[&Kernel] = &[Choose::KERNEL, TdGrad::KERNEL, Believe::KERNEL, Confidence::KERNEL];

words! {
    /// Settings that change from epoch to epoch, behind the general ones.
    pub mod hyper: usize, first super::settings::LEN, prefix "", len "HYPER" {
        /// The learning rate.
        RATE,
        /// The share of choices that are made by chance, ε.
        EXPLORE,
        /// What a unit of cost is worth.
        ALPHA,
        /// What a reward of the next step is worth now.
        GAMMA,
    }
}

words! {
    /// OL's own uses of randomness.
    pub mod stream: u32, first 80, prefix "STREAM_", len "STREAMS_END" {
        /// Masks of uniform cardinality.
        CARDINALITY,
        /// Choices by chance.
        EXPLORE,
        /// Transitions out of the replay memory.
        REPLAY,
    }
}

words! {
    /// Words of what an evaluation adds to the general metrics.
    pub mod metrics: usize, first super::counted::LEN, prefix "", len "EVALUATED" {
        /// The loss over all steps, that before anything is known included.
        ALONG,
    }
}

kernel! {
    /// One step of OL: the action of the highest value, or one by chance.
    pub Choose "ol/choose"
    [
        Part::Words(&clock::WORDS),
        Part::Words(&STREAMS),
        Part::Words(&stream::WORDS),
        Part::Words(&hyper::WORDS),
        Part::Words(&MARKS),
        MATH,
        BEST,
        Part::Team,
        RANDOM,
    ]
    { rows, step, features, classes, pitch, first, explore, stop }
    (clock: U32 Read, outputs: F32 Read, settings: F32 Read, acquired_at: U32 Write, path: U32 Write)
    grid |p| each(p.rows);
    work |p| Work::of_numbers(each(p.rows), product(&[p.rows, p.pitch + p.features]));
    twin choose;
}

#[inline(always)]
fn choose<T: Real>(p: &Choose, mut args: Args<T>) {
    let (clock, outputs, settings) = (args.words(), args.reals(), args.reals());
    let (acquired_at, path) = (args.words_mut(), args.words_mut());
    let source = source(clock, stream::EXPLORE);
    let (rows, features) = (p.rows as usize, p.features as usize);
    for row in 0..rows {
        let values = &outputs[row * p.pitch as usize + p.classes as usize..][..features + p.stop as usize];
        let seen = &mut acquired_at[row * features..][..features];
        if p.step == 0 {
            seen.fill(NEVER);
        }
        let instance = p.first + row as u32;
        let drawn =
            |block: u32, word: usize| T::of(crate::random::unit(source.bits(instance, p.step, block)[word]));
        let explores = p.explore != 0 && drawn(0, 0) < settings[hyper::EXPLORE];
        let open = (0..values.len()).filter(|&i| seen.get(i).is_none_or(|&at| at == NEVER));
        let chosen = if explores {
            largest(open, |i| drawn(1 + i as u32 / 4, i % 4))
        } else {
            largest(open, |i| values[i])
        };
        let stopped = p.step > 0 && path[(p.step as usize - 1) * rows + row] == p.features;
        let action = chosen.filter(|_| !stopped).unwrap_or(features);
        path[p.step as usize * rows + row] = action as u32;
        if action < features {
            seen[action] = p.step;
        }
    }
}

kernel! {
    /// The error of the values of drawn transitions and its gradient, which they become.
    pub TdGrad "ol/td_grad"
    [
        MATH,
        BEST,
        Part::Words(&hyper::WORDS),
        Part::Words(&taken::WORDS),
        Part::Words(&returns::WORDS),
        Part::Words(&losses::WORDS),
    ]
    { rows, steps, features, classes, pitch, mask_pitch, stop }
    (outputs: F32 Write, values: F32 Read, taken: U32 Read, masks: F32 Read, costs: F32 Read, settings: F32 Read,
     losses: F32 Read, returns: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, 2 * p.pitch + p.mask_pitch]));
    twin td_grad;
}

#[inline(always)]
fn td_grad<T: Real>(p: &TdGrad, mut args: Args<T>) {
    let (outputs, values, taken) = (args.reals_mut(), args.reals(), args.words());
    let (masks, costs, settings) = (args.reals(), args.reals(), args.reals());
    let (losses, returns) = (args.reals(), args.reals_mut());
    let (rows, features) = (p.rows as usize, p.features as usize);
    let (pitch, classes, mask_pitch) = (p.pitch as usize, p.classes as usize, p.mask_pitch as usize);
    let (states, next) = outputs.split_at_mut(rows * pitch);
    for row in 0..rows {
        let of_action = &taken[row * taken::LEN..][..taken::LEN];
        let action = of_action[taken::ACTION] as usize;
        let now = &mut states[row * pitch + classes..][..features + 1];
        let next = &next[row * pitch + classes..][..features + 1];
        let slow = &values[row * pitch + classes..][..features + 1];
        let mask = &masks[(rows + row) * mask_pitch..][..features];
        let may_go_on = of_action[taken::HELD] < p.steps;
        let is_open = |i: usize| match mask.get(i) {
            Some(&held) => may_go_on && held < T::of(0.5),
            None => true,
        };
        let best = largest((0..features + p.stop as usize).filter(|&i| is_open(i)), |i| next[i]);
        let later = best.map_or(T::ZERO, |best| settings[hyper::GAMMA] * slow[best]);
        let of_row = &mut returns[row * returns::LEN..][..returns::LEN];
        let value = if action == features {
            -losses[row * losses::LEN + losses::LOSS]
        } else if p.stop != 0 {
            later - settings[hyper::ALPHA] * costs[action]
        } else {
            later + of_row[returns::REWARD]
        };
        let error = now[action] - value;
        now.fill(T::ZERO);
        now[action] = (T::of(2.0) * error).flush();
        of_row[returns::ERROR] = error * error;
    }
}

kernel! {
    /// Adds a sample of dropout to the mean belief.
    pub Believe "ol/believe" [MATH]
    { rows, classes, pitch, samples, anew }
    (outputs: F32 Read, beliefs: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, 3 * p.classes]));
    twin believe;
}

#[inline(always)]
fn believe<T: Real>(p: &Believe, mut args: Args<T>) {
    let (outputs, beliefs) = (args.reals(), args.reals_mut());
    let classes = p.classes as usize;
    let rows = outputs.chunks_exact(p.pitch as usize).zip(beliefs.chunks_exact_mut(classes));
    for (logits, belief) in rows.take(p.rows as usize) {
        let logits = &logits[..classes];
        let top = logits.iter().fold(logits[0], |top, &logit| logit.larger(top));
        let mass: T = logits.iter().map(|&logit| (logit - top).exp_down()).sum();
        let share = T::ONE / (mass * T::count(p.samples));
        if p.anew != 0 {
            belief.fill(T::ZERO);
        }
        for (belief, &logit) in belief.iter_mut().zip(logits) {
            *belief += (logit - top).exp_down() * share;
        }
    }
}

kernel! {
    /// What each answer changed in the mean belief, for its cost.
    pub Confidence "ol/confidence" []
    { rows, steps, classes, features }
    (beliefs: F32 Read, path: U32 Read, costs: F32 Read, rewards: F32 Write)
    grid |p| line(p.rows * p.steps);
    work |p| Work::of_numbers(line(p.rows * p.steps), product(&[p.rows, p.steps, 2 * p.classes]));
    twin confidence;
}

#[inline(always)]
fn confidence<T: Real>(p: &Confidence, mut args: Args<T>) {
    let (beliefs, path, costs, rewards) = (args.reals(), args.words(), args.reals(), args.reals_mut());
    let (rows, classes) = (p.rows as usize, p.classes as usize);
    for tape_row in 0..rows * p.steps as usize {
        let belief = |tape_row: usize| &beliefs[tape_row * classes..][..classes];
        let (before, after) = (belief(tape_row), belief(tape_row + rows));
        let change = before.iter().zip(after).map(|(&p, &q)| (q - p).larger(p - q)).sum::<T>();
        rewards[tape_row] = match costs[..p.features as usize].get(path[tape_row] as usize) {
            Some(cost) => change / cost.larger(T::of(CHEAPEST)),
            None => T::ZERO,
        };
    }
}
