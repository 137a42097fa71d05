//! What can be had of an instance.

use super::noise::source;
use super::words::{MARKS, NEVER, STREAMS, UNAVAILABLE, clock, settings};
use super::{Part, RANDOM, Work, kernel, line, product};
use crate::engine::cpu::{Args, Real};
use crate::random::{stream, unit};

kernel! {
    /// Opens the features of each instance of a batch: all of them, or a random part; writes the columns that tell which
    /// cannot be had.
    pub Available "available"
    [Part::Words(&clock::WORDS), Part::Words(&STREAMS), Part::Words(&settings::WORDS), Part::Words(&MARKS), RANDOM]
    { rows, features, first, told, column, pitch }
    (clock: U32 Read, settings: F32 Read, acquired_at: U32 Write, x: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, 1 + p.told, p.features]));
    twin available;
}

#[inline(always)]
fn available<T: Real>(p: &Available, mut args: Args<T>) {
    let (clock, settings) = (args.words(), args.reals());
    let (acquired_at, x) = (args.words_mut(), args.reals_mut());
    let source = source(clock, stream::AVAILABLE);
    let copies = clock[clock::COPIES].max(1);
    let features = p.features as usize;
    for row in 0..p.rows {
        let instance = (p.first + row) / copies;
        let drawn = source.bits(instance, 1, 0);
        let marks = &mut acquired_at[row as usize * features..][..features];
        marks.fill(NEVER);
        if T::of(unit(drawn[0])) < settings[settings::RESTRICTED] {
            for (block, marks) in marks.chunks_mut(4).enumerate() {
                let bits = source.bits(instance, 0, block as u32);
                for (mark, _) in marks.iter_mut().zip(bits).filter(|(_, bits)| *bits < drawn[1]) {
                    *mark = UNAVAILABLE;
                }
            }
        }
        if p.told != 0 {
            let columns = &mut x[(row * p.pitch + p.column) as usize..][..features];
            for (column, &mark) in columns.iter_mut().zip(&*marks) {
                *column = if mark == UNAVAILABLE { T::ONE } else { T::ZERO };
            }
        }
    }
}
