//! Twin of `gather.wgsl`.

use super::args::Args;
use super::real::Real;
use crate::engine::kernels::Gather;
use crate::engine::random::Shuffle;
use crate::engine::state::{NO_LABEL, clock};

#[inline(always)]
pub fn gather<T: Real>(p: &Gather, mut args: Args<T>) {
    let (clock, data_x, data_y) = (args.words(), args.reals(), args.words());
    let (x, y) = (args.reals_mut(), args.words_mut());
    let (columns, pitch) = (p.columns as usize, p.pitch as usize);
    let shuffle = Shuffle::new(clock::seed(clock), clock[clock::EPOCH], p.split_len);
    for row in 0..p.rows as usize {
        let position = p.first + row as u32;
        let position = if p.shuffled != 0 {
            let twins = clock[clock::TWINS].max(1);
            Some(shuffle.index(clock[clock::BATCH] * p.batch.div_ceil(twins) + position / twins))
        } else {
            Some(position + clock[clock::CHUNK] * p.batch).filter(|&position| position < p.split_len)
        };
        let to = &mut x[row * pitch..][..pitch];
        match position {
            Some(position) => {
                let source = (p.split_start + position) as usize;
                to[..columns].copy_from_slice(&data_x[source * columns..][..columns]);
                to[columns..].fill(T::ZERO);
                y[row] = data_y[source];
            }
            None => {
                to.fill(T::ZERO);
                y[row] = NO_LABEL;
            }
        }
    }
}
