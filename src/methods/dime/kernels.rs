//! The kernels that only DIME has. The maths is beside the shaders.

use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::{
    MARKS, NEVER, STREAMS, clock, losses, metrics as counted, settings, words,
};
use crate::engine::kernels::{
    BEST, Kernel, MATH, Params, Part, RANDOM, Work, area, each, kernel, largest, product, source,
};
use crate::methods::usual::CHEAPEST;
use crate::random::Source;

/// All of them.
pub static KERNELS: &[&Kernel] = &[Choose::KERNEL, ValueGrad::KERNEL];

words! {
    /// Settings that change from epoch to epoch, behind the general ones.
    pub mod hyper: usize, first super::settings::LEN, prefix "", len "HYPER" {
        /// The learning rate.
        RATE,
        /// The share of choices that are made by chance, ε.
        EXPLORE,
        /// Whether what a feature is worth is divided by its cost.
        RATIO,
        /// What is taken off for each unit of cost otherwise.
        PRICE,
    }
}

words! {
    /// DIME's own uses of randomness.
    pub mod stream: u32, first 48, prefix "STREAM_", len "STREAMS_END" {
        /// Masks of uniform cardinality.
        CARDINALITY,
        /// Choices by chance.
        EXPLORE,
    }
}

words! {
    /// Words of a tape row's values.
    pub mod bounds: usize, first 0, prefix "", len "VALUES" {
        /// The squared error of the value of what was acquired.
        ERROR,
        /// What no value can be above.
        BOUND,
    }
}

words! {
    /// Words of what an evaluation adds to the general metrics.
    pub mod metrics: usize, first super::counted::LEN, prefix "", len "EVALUATED" {
        /// The loss over all steps, that before anything is known included.
        ALONG,
    }
}

/// What both kernels need of values.
const VALUE: Part =
    Part::Text(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/dime/lib/value.wgsl")));

#[inline(always)]
fn sigmoid<T: Real>(v: T) -> T {
    let e = (if v < T::ZERO { v } else { -v }).exp_down();
    (if v < T::ZERO { e } else { T::ONE }) / (T::ONE + e)
}

kernel! {
    /// One step of DIME: the feature that is worth most for its cost, or one by chance.
    pub Choose "dime/choose"
    [
        Part::Words(&clock::WORDS),
        Part::Words(&STREAMS),
        Part::Words(&stream::WORDS),
        Part::Words(&hyper::WORDS),
        Part::Words(&bounds::WORDS),
        Part::Words(&MARKS),
        MATH,
        BEST,
        Part::Team,
        RANDOM,
        VALUE,
    ]
    { rows, step, features, classes, pitch, first_row, first, explore }
    (clock: U32 Read, outputs: F32 Read, costs: F32 Read, settings: F32 Read, acquired_at: U32 Write, path: U32 Write,
     bounds: F32 Write)
    grid |p| each(p.rows);
    work |p| Work::of_numbers(each(p.rows), product(&[p.rows, p.pitch + p.features]));
    twin choose;
}

#[inline(always)]
fn choose<T: Real>(p: &Choose, mut args: Args<T>) {
    let (clock, outputs, costs, settings) = (args.words(), args.reals(), args.reals(), args.reals());
    let (acquired_at, path, bounds) = (args.words_mut(), args.words_mut(), args.reals_mut());
    let source = source(clock, stream::EXPLORE);
    let (rows, features, classes) = (p.rows as usize, p.features as usize, p.classes as usize);
    let (costs, weights) = costs.split_at(features);
    for row in 0..rows {
        let tape_row = p.first_row as usize + row;
        let (logits, values) = outputs[tape_row * p.pitch as usize..][..classes + features].split_at(classes);
        let seen = &mut acquired_at[row * features..][..features];
        if p.step == 0 {
            seen.fill(NEVER);
        }
        let bound = bound(logits, weights);
        let at = [p.first + row as u32, p.step];
        let by_chance =
            p.explore != 0 && unit::<T>(source.bits(at[0], at[1], 0)[0]) < settings[hyper::EXPLORE];
        let open = (0..features).filter(|&i| seen[i] == NEVER);
        let chosen = if by_chance {
            largest(open, |i| drawn::<T>(&source, at, i))
        } else if settings[hyper::RATIO] > T::of(0.5) {
            largest(open, |i| sigmoid(values[i]) / costs[i].larger(T::of(CHEAPEST)))
        } else {
            largest(open, |i| sigmoid(values[i]) * bound - settings[hyper::PRICE] * costs[i])
        };
        bounds[tape_row * bounds::LEN + bounds::BOUND] = bound;
        path[p.step as usize * rows + row] = chosen.unwrap_or(features) as u32;
        if let Some(chosen) = chosen {
            seen[chosen] = p.step;
        }
    }
}

/// What an instance is expected to lose, from the logits of the classes and their weights.
#[inline(always)]
fn bound<T: Real>(logits: &[T], weights: &[T]) -> T {
    let top = logits.iter().fold(logits[0], |top, &logit| logit.larger(top));
    let (mut mass, mut spread, mut weighed) = (T::ZERO, T::ZERO, T::ZERO);
    for (&logit, &weight) in logits.iter().zip(weights) {
        let e = (logit - top).exp_down();
        mass += e;
        spread += e * (top - logit);
        weighed += e / if weight > T::ZERO { weight } else { T::ONE };
    }
    (mass.ln() * mass + spread) / weighed
}

/// A feature's random number at an instance's step.
#[inline(always)]
fn drawn<T: Real>(source: &Source, [instance, step]: [u32; 2], feature: usize) -> T {
    unit(source.bits(instance, step, 1 + feature as u32 / 4)[feature % 4])
}

/// [`unit`](crate::random::unit) in the engine's precision, in which it is exact.
#[inline(always)]
fn unit<T: Real>(bits: u32) -> T {
    T::of(crate::random::unit(bits))
}

kernel! {
    /// The error of the values of all steps and its gradient, which they become.
    pub ValueGrad "dime/value_grad" [MATH, VALUE, Part::Words(&bounds::WORDS), Part::Words(&losses::WORDS)]
    { rows, steps, features, classes, pitch }
    (outputs: F32 Write, path: U32 Read, losses: F32 Read, bounds: F32 Write)
    grid |p| area(p.features, p.rows * (p.steps + 1));
    work |p| Work::of_numbers(
        area(p.features, p.rows * (p.steps + 1)),
        product(&[p.rows, p.steps + 1, p.features]),
    );
    twin value_grad;
}

#[inline(always)]
fn value_grad<T: Real>(p: &ValueGrad, mut args: Args<T>) {
    let (outputs, path) = (args.reals_mut(), args.words());
    let (losses, bounds) = (args.reals(), args.reals_mut());
    let (rows, features) = (p.rows as usize, p.features as usize);
    let loss = |tape_row: usize| losses[tape_row * losses::LEN + losses::LOSS];
    for tape_row in 0..rows * (p.steps as usize + 1) {
        let values = &mut outputs[tape_row * p.pitch as usize + p.classes as usize..][..features];
        let of_row = &mut bounds[tape_row * bounds::LEN..][..bounds::LEN];
        let chosen = if tape_row < rows * p.steps as usize { path[tape_row] as usize } else { features };
        let share = values.get(chosen).map(|&v| sigmoid(v));
        values.fill(T::ZERO);
        of_row[bounds::ERROR] = T::ZERO;
        if let Some(share) = share {
            let bound = of_row[bounds::BOUND];
            let error = share * bound - (loss(tape_row) - loss(tape_row + rows));
            values[chosen] = (T::of(2.0) * error * bound * share * (T::ONE - share)).flush();
            of_row[bounds::ERROR] = error * error;
        }
    }
}
