//! Twins of `gather.wgsl` and `gather_bytes.wgsl`.

use super::args::Args;
use super::real::Real;
use crate::engine::kernels::{Gather, GatherBytes};
use crate::engine::random::Shuffle;
use crate::engine::state::{NO_LABEL, clock};

/// Where each row lies in the data set; `None` past a split's end. The twin of `lib/place.wgsl`.
#[inline(always)]
fn places<'a>(p: &'a Gather, clock: &'a [u32]) -> impl Iterator<Item = Option<usize>> + 'a {
    let shuffle = Shuffle::new(clock::seed(clock), clock[clock::EPOCH], p.split_len);
    (0..p.rows).map(move |row| {
        let position = p.first + row;
        let position = if p.shuffled != 0 {
            let twins = clock[clock::TWINS].max(1);
            Some(shuffle.index(clock[clock::BATCH] * p.batch.div_ceil(twins) + position / twins))
        } else {
            Some(position + clock[clock::CHUNK] * p.batch).filter(|&position| position < p.split_len)
        };
        position.map(|position| (p.split_start + position) as usize)
    })
}

#[inline(always)]
pub fn gather<T: Real>(p: &Gather, mut args: Args<T>) {
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
pub fn gather_bytes<T: Real>(p: &GatherBytes, mut args: Args<T>) {
    let (clock, data_x, data_y) = (args.words(), args.words(), args.words());
    let (x, y) = (args.reals_mut(), args.words_mut());
    let (columns, pitch) = (p.columns as usize, p.pitch as usize);
    let &GatherBytes { rows, columns: _, pitch: _, first, batch, split_start, split_len, shuffled, divisor } =
        p;
    let rows =
        Gather { rows, columns: p.columns, pitch: p.pitch, first, batch, split_start, split_len, shuffled };
    for ((place, to), y) in places(&rows, clock).zip(x.chunks_exact_mut(pitch)).zip(y) {
        to.fill(T::ZERO);
        *y = NO_LABEL;
        if let Some(source) = place {
            for (index, to) in (source * columns..).zip(&mut to[..columns]) {
                let byte = data_x[index / 4] >> (8 * (index % 4)) & 0xff;
                *to = T::count(byte) / T::count(divisor);
            }
            *y = data_y[source];
        }
    }
}
