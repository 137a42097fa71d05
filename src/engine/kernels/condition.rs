//! What the networks are told about an instance besides its row.

use super::noise::source;
use super::words::{STREAMS, clock, settings};
use super::{Part, RANDOM, Work, kernel, line, product};
use crate::engine::cpu::{Args, Real};
use crate::random::{stream, unit};

kernel! {
    /// Draws a condition for each instance of a batch, or takes that of a pass over a split; writes the columns that
    /// tell it to the networks, and for training the row's factor and its weight.
    pub Condition "condition"
    [Part::Words(&clock::WORDS), Part::Words(&STREAMS), Part::Words(&settings::WORDS), RANDOM]
    { rows, columns, extra, pitch, first, batch, passes, chunks, stride, word }
    (clock: U32 Read, settings: F32 Read, x: F32 Write, factors: F32 Write)
    grid |p| line(p.rows, 64);
    work |p| Work::of_numbers(line(p.rows, 64), product(&[p.rows, p.extra + 2]));
    twin condition;
}

#[inline(always)]
fn condition<T: Real>(p: &Condition, mut args: Args<T>) {
    let (clock, settings) = (args.words(), args.reals());
    let (x, factors) = (args.reals_mut(), args.reals_mut());
    let source = source(clock, stream::CONDITION);
    let copies = clock[clock::COPIES].max(1);
    let (from, to) = (settings[settings::CONDITION_FROM], settings[settings::CONDITION_TO]);
    let (span, balance) = (settings[settings::CONDITION_SPAN], settings[settings::CONDITION_BALANCE]);
    let pass = clock[clock::CHUNK] / p.chunks.max(1);
    let steps = T::count(p.extra.max(1) - 1);
    for row in 0..p.rows {
        let share = if p.passes == 0 {
            let instance = (p.first + row) / copies;
            let random = T::of(unit(source.bits(instance, 0, 0)[0]));
            (T::count(instance) + random) / T::count(p.batch.div_ceil(copies))
        } else {
            T::count(pass) / T::count(p.passes.max(2) - 1)
        };
        let at = from + share * (to - from);
        let columns = &mut x[(row * p.pitch + p.columns) as usize..][..p.extra as usize];
        for (column, knot) in columns.iter_mut().zip(0..) {
            let beside = at * steps - T::count(knot);
            *column = (T::ONE - beside.larger(-beside)).larger(T::ZERO);
        }
        if p.passes == 0 {
            let lifted = (at - settings[settings::CONDITION_UNIT]) * span;
            let to = (row * p.stride + p.word) as usize;
            let is_one = span == T::ZERO;
            factors[to] = if is_one { T::ONE } else { lifted.exp() };
            factors[to + 1] = if is_one { T::ONE } else { (-balance * lifted).exp() };
        }
    }
}
