//! The kernels that only GSMRL has. The maths is beside the shaders.

use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::{MARKS, NEVER, NO_LABEL, losses, metrics as counted, settings, words};
use crate::engine::kernels::{Kernel, MATH, Params, Part, Work, area, kept, kernel, line, product};

/// All of them.
pub static KERNELS: &[&Kernel] =
    &[SurrogateLoss::KERNEL, Belief::KERNEL, Moments::KERNEL, Act::KERNEL, Reward::KERNEL];

words! {
    /// Settings that change from epoch to epoch, behind the general ones.
    pub mod hyper: usize, first super::settings::LEN, prefix "", len "HYPER" {
        /// The learning rate of policy, critic and, once it has been pretrained, predictor.
        RATE,
        /// That of the surrogate, and of the predictor in its pretraining.
        SURROGATE_RATE,
        /// What a unit of cost is worth, α.
        ALPHA,
        /// The weight of the surrogate's likelihood.
        LIKELIHOOD,
        /// The weight of information in the reward.
        INFORMATION,
        /// The discount of later rewards, γ.
        DISCOUNT,
        /// The decay of later errors in the advantages.
        TRACE,
        /// How far a choice's probability may move.
        CLIP,
        /// The weight of the choices' entropy.
        BONUS,
        /// What gradients are clipped to.
        NORM,
    }
}

words! {
    /// GSMRL's own uses of randomness.
    pub mod stream: u32, first 64, prefix "STREAM_", len "STREAMS_END" {
        /// Masks of uniform cardinality.
        CARDINALITY,
    }
}

words! {
    /// Words of the training metrics behind the general ones.
    pub mod metrics: usize, first super::counted::LEN, prefix "", len "TRAINED" {
        /// The critic's squared error.
        VALUE_ERROR,
        /// The predictor's loss in all states of a rollout.
        ALONG,
    }
}

/// What lies further out than this counts as this: same as in moments.wgsl.
pub(super) const LIMIT: f64 = 10.0;

kernel! {
    /// The surrogate's loss: log-densities and priors of the classes become its gradient.
    pub SurrogateLoss "gsmrl/surrogate_loss"
    [MATH, Part::Words(&losses::WORDS), Part::Words(&MARKS), Part::Words(&hyper::WORDS)]
    { rows, classes, columns, prior_pitch, weights }
    (logs: F32 Write, prior: F32 Write, y: U32 Read, costs: F32 Read, settings: F32 Read, losses: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows * p.classes), 6 * product(&[p.rows, p.classes]));
    twin surrogate_loss;
}

#[inline(always)]
fn surrogate_loss<T: Real>(p: &SurrogateLoss, mut args: Args<T>) {
    let (logs, prior, y) = (args.reals_mut(), args.reals_mut(), args.words());
    let (costs, settings, out) = (args.reals(), args.reals(), args.reals_mut());
    let (rows, classes) = (p.rows as usize, p.classes as usize);
    let unlikely = settings[hyper::LIKELIHOOD] / T::count(p.columns);
    for row in 0..rows {
        let prior = &mut prior[row * p.prior_pitch as usize..][..classes];
        let (of_seen, of_rest) = logs.split_at_mut(rows * classes);
        let at = |class: usize| class * rows + row;
        let (mut top, mut guess) = ([T::BLOCKED; 2], 0);
        for class in 0..classes {
            let b = of_seen[at(class)] + prior[class];
            if b > top[1] {
                guess = class as u32;
            }
            top = [(b + of_rest[at(class)]).larger(top[0]), b.larger(top[1])];
        }
        // What was compared becomes masses, in the same places.
        let (mut mass, mut of_label) = ([T::ZERO; 2], None);
        let label = y[row];
        for class in 0..classes {
            let b = of_seen[at(class)] + prior[class];
            let a = b + of_rest[at(class)];
            if class as u32 == label {
                of_label = Some([a, b]);
            }
            (of_rest[at(class)], of_seen[at(class)]) = ((a - top[0]).exp_down(), (b - top[1]).exp_down());
            mass = [mass[0] + of_rest[at(class)], mass[1] + of_seen[at(class)]];
        }
        let (mut weight, mut loss, mut likely) = (T::ZERO, T::ZERO, T::ZERO);
        if let Some([a, b]) = of_label.filter(|_| label != NO_LABEL) {
            let log_mass = [mass[0].ln() + top[0], mass[1].ln() + top[1]];
            weight = costs[(p.weights + label) as usize];
            likely = unlikely;
            loss = weight * (log_mass[0] - a + log_mass[1] - b) - unlikely * (log_mass[0] - log_mass[1]);
        }
        out[row * losses::LEN + losses::LOSS] = loss;
        out[row * losses::LEN + losses::GUESS] = T::count(guess);
        for class in 0..classes {
            let (a, b) = (of_rest[at(class)] / mass[0], of_seen[at(class)] / mass[1]);
            let hit = if class as u32 == label { T::ONE } else { T::ZERO };
            let (da, db) = (weight * (a - hit) - likely * a, weight * (b - hit) + likely * b);
            (of_rest[at(class)], of_seen[at(class)], prior[class]) = (da, da + db, da + db);
        }
    }
}

kernel! {
    /// The probability of each class from the log-densities, into the policy's input; and its entropy.
    pub Belief "gsmrl/belief" [MATH]
    { rows, step, classes, prior_pitch, input_pitch, at }
    (logs: F32 Read, prior: F32 Read, input: F32 Write, doubts: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows * p.classes), 3 * product(&[p.rows, p.classes]));
    twin belief;
}

#[inline(always)]
fn belief<T: Real>(p: &Belief, mut args: Args<T>) {
    let (logs, prior, input, doubts) = (args.reals(), args.reals(), args.reals_mut(), args.reals_mut());
    let (rows, classes) = (p.rows as usize, p.classes as usize);
    for row in 0..rows {
        let tape_row = p.step as usize * rows + row;
        let prior = &prior[row * p.prior_pitch as usize..][..classes];
        let belief = &mut input[tape_row * p.input_pitch as usize + p.at as usize..][..classes];
        let mut top = T::BLOCKED;
        for (class, belief) in belief.iter_mut().enumerate() {
            *belief = logs[class * rows + row] + prior[class];
            top = belief.larger(top);
        }
        let (mut mass, mut spread) = (T::ZERO, T::ZERO);
        for belief in belief.iter_mut() {
            let z = *belief - top;
            *belief = z.exp_down();
            mass += *belief;
            spread -= *belief * z;
        }
        belief.iter_mut().for_each(|belief| *belief /= mass);
        doubts[tape_row] = mass.ln() + spread / mass;
    }
}

kernel! {
    /// Mean and standard deviation of what is not known, into the policy's input.
    pub Moments "gsmrl/moments" []
    { rows, step, classes, columns, z_pitch, input_pitch, at }
    (z: F32 Read, input: F32 Write)
    grid |p| area(p.columns, p.rows);
    work |p| Work::of_numbers(area(p.columns, p.rows), product(&[p.rows, p.columns, 2 * p.classes]));
    twin moments;
}

#[inline(always)]
fn moments<T: Real>(p: &Moments, mut args: Args<T>) {
    let (z, input) = (args.reals(), args.reals_mut());
    let (rows, classes, columns) = (p.rows as usize, p.classes as usize, p.columns as usize);
    let limit = T::of(LIMIT);
    let limited = |z: T| if z > limit { limit } else { z.larger(-limit) };
    for row in 0..rows {
        let from = (p.step as usize * rows + row) * p.input_pitch as usize + p.at as usize;
        let (belief, to) = input[from..][..classes + 2 * columns].split_at_mut(classes);
        let (means, spreads) = to.split_at_mut(columns);
        for (column, (mean, spread)) in means.iter_mut().zip(spreads).enumerate() {
            let points = |class: usize| {
                [0, 1].map(|part| {
                    limited(z[((part * classes + class) * rows + row) * p.z_pitch as usize + column])
                })
            };
            *mean = T::ZERO;
            for (class, &share) in belief.iter().enumerate() {
                let [first, second] = points(class);
                *mean += share * T::of(0.5) * (first + second);
            }
            let mut variance = T::ZERO;
            for (class, &share) in belief.iter().enumerate() {
                let [first, second] = points(class).map(|point| point - *mean);
                variance += share * T::of(0.5) * (first * first + second * second);
            }
            *spread = variance.sqrt();
        }
    }
}

kernel! {
    /// One step of a rollout: what is done is drawn from what the policy says.
    pub Act "gsmrl/act" [MATH, Part::Words(&MARKS), Part::Words(&kept::WORDS)]
    { rows, step, features, pitch }
    (logits: F32 Read, gumbel: F32 Read, acquired_at: U32 Write, path: U32 Write, kept: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows * p.features), 3 * product(&[p.rows, p.features]));
    twin act;
}

#[inline(always)]
fn act<T: Real>(p: &Act, mut args: Args<T>) {
    let (logits, gumbel) = (args.reals(), args.reals());
    let (acquired_at, path, kept) = (args.words_mut(), args.words_mut(), args.reals_mut());
    let (rows, features) = (p.rows as usize, p.features as usize);
    for row in 0..rows {
        let tape_row = p.step as usize * rows + row;
        let z = &logits[tape_row * p.pitch as usize..][..features + 1];
        let noise = &gumbel[tape_row * p.pitch as usize..][..features + 1];
        let seen = &mut acquired_at[row * features..][..features];
        if p.step == 0 {
            seen.fill(NEVER);
        }
        let is_live = p.step == 0 || kept[tape_row * kept::LEN + kept::LIVE] > T::of(0.5);
        let (mut top, mut best, mut chosen) = (z[features], z[features] + noise[features], features);
        for i in (0..features).filter(|&i| seen[i] == NEVER) {
            top = z[i].larger(top);
            if z[i] + noise[i] > best {
                (best, chosen) = (z[i] + noise[i], i);
            }
        }
        let mut mass = (z[features] - top).exp_down();
        for i in (0..features).filter(|&i| seen[i] == NEVER) {
            mass += (z[i] - top).exp_down();
        }
        if !is_live {
            chosen = features;
        }
        path[tape_row] = chosen as u32;
        if let Some(at) = seen.get_mut(chosen) {
            *at = p.step;
        }
        let goes_on = if chosen < features { T::ONE } else { T::ZERO };
        kept[(tape_row + rows) * kept::LEN + kept::LIVE] = goes_on;
        let kept = &mut kept[tape_row * kept::LEN..][..kept::LEN];
        kept[kept::LIVE] = if is_live { T::ONE } else { T::ZERO };
        kept[kept::LOG_CHANCE] = z[chosen] - top - mass.ln();
    }
}

kernel! {
    /// What each step of a rollout costs: minus its reward.
    pub Reward "gsmrl/reward"
    [Part::Words(&losses::WORDS), Part::Words(&kept::WORDS), Part::Words(&hyper::WORDS)]
    { rows, steps, features }
    (path: U32 Read, doubts: F32 Read, losses: F32 Read, costs: F32 Read, settings: F32 Read, kept: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), 8 * product(&[p.rows, p.steps]));
    twin reward;
}

#[inline(always)]
fn reward<T: Real>(p: &Reward, mut args: Args<T>) {
    let (path, doubts, losses) = (args.words(), args.reals(), args.reals());
    let (costs, settings, kept) = (args.reals(), args.reals(), args.reals_mut());
    let (rows, steps) = (p.rows as usize, p.steps as usize);
    let loss = |tape_row: usize| losses[tape_row * losses::LEN + losses::LOSS];
    for row in 0..rows {
        for step in 0..steps {
            let (at, next) = (step * rows + row, (step + 1) * rows + row);
            let is_live = kept[at * kept::LEN + kept::LIVE] > T::of(0.5);
            let mut cost = T::ZERO;
            if is_live && path[at] == p.features {
                cost = loss(at);
            } else if is_live {
                let told = doubts[at] - doubts[next];
                cost =
                    settings[hyper::ALPHA] * costs[path[at] as usize] - settings[hyper::INFORMATION] * told;
                if step + 1 == steps {
                    cost += settings[hyper::DISCOUNT] * loss(next);
                }
            }
            kept[at * kept::LEN + kept::COST] = cost;
        }
    }
}
