//! What the networks are told about an instance besides its row.

use super::noise::source;
use super::words::{STREAMS, clock, settings};
use super::{Part, RANDOM, Work, kernel, line, product};
use crate::engine::cpu::{Args, Real};
use crate::random::{stream, unit};

kernel! {
    /// Draws a condition for each instance of a batch, or takes that of a pass over a split; writes the columns that
    /// tell it to the networks, and for training the row's factor.
    pub Condition "condition"
    [Part::Words(&clock::WORDS), Part::Words(&STREAMS), Part::Words(&settings::WORDS), RANDOM]
    { rows, columns, extra, pitch, first, batch, passes, chunks, stride, word }
    (clock: U32 Read, settings: F32 Read, x: F32 Write, factors: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, p.extra + 1]));
    twin condition;
}

#[inline(always)]
fn condition<T: Real>(p: &Condition, mut args: Args<T>) {
    let (clock, settings) = (args.words(), args.reals());
    let (x, factors) = (args.reals_mut(), args.reals_mut());
    let source = source(clock, stream::CONDITION);
    let copies = clock[clock::COPIES].max(1);
    let (from, to) = (settings[settings::CONDITION_FROM], settings[settings::CONDITION_TO]);
    let margin = settings[settings::CONDITION_MARGIN];
    let drawn = to - from + (margin + margin);
    let span = settings[settings::CONDITION_SPAN];
    let pass = clock[clock::CHUNK] / p.chunks.max(1);
    let steps = T::count(p.extra.max(1) - 1);
    for row in 0..p.rows {
        let at = if p.passes == 0 {
            let instance = (p.first + row) / copies;
            let random = T::of(unit(source.bits(instance, 0, 0)[0]));
            from - margin + (T::count(instance) + random) / T::count(p.batch.div_ceil(copies)) * drawn
        } else {
            from + T::count(pass) / T::count(p.passes.max(2) - 1) * (to - from)
        };
        let columns = &mut x[(row * p.pitch + p.columns) as usize..][..p.extra as usize];
        for (column, knot) in columns.iter_mut().zip(0..) {
            let beside = at * steps - T::count(knot);
            *column = (T::ONE - beside.larger(-beside)).larger(T::ZERO);
        }
        if p.passes == 0 {
            let lifted = (at - settings[settings::CONDITION_UNIT]) * span;
            let factor = if span == T::ZERO { T::ONE } else { lifted.exp() };
            factors[(row * p.stride + p.word) as usize] = factor;
        }
    }
}
