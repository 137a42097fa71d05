//! Rows out of the data set.

use super::words::{MARKS, NO_LABEL, STREAMS, Words, clock};
use super::{PLACE, Part, RANDOM, Work, area, kernel, product};
use crate::engine::cpu::{Args, Real};
use crate::random::Shuffle;

kernel! {
    /// Copies the batch's rows out of the data set, shuffled or in order.
    pub Gather "gather"
    [Part::Words(&clock::WORDS), Part::Words(&STREAMS), Part::Words(&MARKS), RANDOM, PLACE]
    { rows, columns, pitch, first, batch, split_start, split_len, shuffled, chunks }
    (clock: U32 Read, data_x: F32 Read, data_y: U32 Read, x: F32 Write, y: U32 Write)
    grid |p| area(p.pitch, p.rows);
    work |p| Work::of_numbers(area(p.pitch, p.rows), 2 * product(&[p.rows, p.columns]));
    twin gather;
}

kernel! {
    /// The same out of a data set of bytes, four to a word: x = byte / divisor.
    pub GatherBytes "gather_bytes"
    [Part::Words(&clock::WORDS), Part::Words(&STREAMS), Part::Words(&MARKS), RANDOM, PLACE]
    { rows, columns, pitch, first, batch, split_start, split_len, shuffled, chunks, divisor }
    (clock: U32 Read, data_x: U32 Read, data_y: U32 Read, x: F32 Write, y: U32 Write)
    grid |p| area(p.pitch, p.rows);
    work |p| Work::of_numbers(area(p.pitch, p.rows), 2 * product(&[p.rows, p.columns]));
    twin gather_bytes;
}

impl Gather {
    /// The same rows of a data set of bytes.
    pub fn of_bytes(self, divisor: u32) -> GatherBytes {
        let Self { rows, columns, pitch, first, batch, split_start, split_len, shuffled, chunks } = self;
        GatherBytes { rows, columns, pitch, first, batch, split_start, split_len, shuffled, chunks, divisor }
    }
}

impl GatherBytes {
    fn rows_of(&self) -> Gather {
        let &Self { rows, columns, pitch, first, batch, split_start, split_len, shuffled, chunks, .. } = self;
        Gather { rows, columns, pitch, first, batch, split_start, split_len, shuffled, chunks }
    }
}

/// Where each row lies in the data set; `None` past a split's end. The twin of `lib/place.wgsl`.
#[inline(always)]
pub(crate) fn places<'a>(p: &'a Gather, clock: &'a [u32]) -> impl Iterator<Item = Option<usize>> + 'a {
    let shuffle = Shuffle::new(Words::seed(clock), clock[clock::EPOCH], p.split_len);
    (0..p.rows).map(move |row| {
        let position = p.first + row;
        let position = if p.shuffled != 0 {
            let copies = clock[clock::COPIES].max(1);
            Some(shuffle.index(clock[clock::BATCH] * p.batch.div_ceil(copies) + position / copies))
        } else {
            Some(position + clock[clock::CHUNK] % p.chunks.max(1) * p.batch)
                .filter(|&position| position < p.split_len)
        };
        position.map(|position| (p.split_start + position) as usize)
    })
}

#[inline(always)]
fn gather<T: Real>(p: &Gather, mut args: Args<T>) {
    let (clock, data_x, data_y) = (args.words(), args.reals(), args.words());
    let (x, y) = (args.reals_mut(), args.words_mut());
    let (columns, pitch) = (p.columns as usize, p.pitch as usize);
    for ((place, to), y) in places(p, clock).zip(x.chunks_exact_mut(pitch)).zip(y) {
        to.fill(T::ZERO);
        *y = NO_LABEL;
        if let Some(source) = place {
            to[..columns].copy_from_slice(&data_x[source * columns..][..columns]);
            *y = data_y[source];
        }
    }
}

#[inline(always)]
fn gather_bytes<T: Real>(p: &GatherBytes, mut args: Args<T>) {
    let (clock, data_x, data_y) = (args.words(), args.words(), args.words());
    let (x, y) = (args.reals_mut(), args.words_mut());
    let (columns, pitch) = (p.columns as usize, p.pitch as usize);
    for ((place, to), y) in places(&p.rows_of(), clock).zip(x.chunks_exact_mut(pitch)).zip(y) {
        to.fill(T::ZERO);
        *y = NO_LABEL;
        if let Some(source) = place {
            for (index, to) in (source * columns..).zip(&mut to[..columns]) {
                let byte = data_x[index / 4] >> (8 * (index % 4)) & 0xff;
                *to = T::count(byte) / T::count(p.divisor);
            }
            *y = data_y[source];
        }
    }
}
