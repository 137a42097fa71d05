//! Sub-masks of what was asked, for the predictor to learn on.

use super::{hyper, masks, scalars, stream};
use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::{MARKS, NEVER, STREAMS, clock};
use crate::engine::kernels::{Part, RANDOM, Work, kernel, line, source};

kernel! {
    /// Draws masks for the predictor from what the rollout asked.
    pub Submask "nmppg/submask"
    [Part::Words(&clock::WORDS), Part::Words(&stream::WORDS), Part::Words(&STREAMS), Part::Words(&hyper::WORDS),
     Part::Words(&scalars::WORDS), Part::Words(&MARKS), RANDOM, masks::PART]
    { rows, steps, features, pitch, first }
    (clock: U32 Read, acquired_at: U32 Read, settings: F32 Read, scalars: F32 Write, masks: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_threads(line(p.rows));
    twin submask;
}

#[inline(always)]
fn submask<T: Real>(p: &Submask, mut args: Args<T>) {
    let (clock, acquired_at, settings) = (args.words(), args.words(), args.reals());
    let (tape, masks) = (args.reals_mut(), args.reals_mut());
    let source = source(clock, stream::SUBMASK);
    let (rows, features, pitch) = (p.rows as usize, p.features as usize, p.pitch as usize);
    for row in 0..rows {
        let mut asked = T::ZERO;
        for t in 1..=p.steps as usize {
            asked += tape[(t * rows + row) * scalars::LEN + scalars::SURVIVAL];
        }
        // One in sixteen is empty: nothing is before 0.
        let is_empty = source.bits(p.first + row as u32, 1, 0)[0] < 1 << 28;
        let reach = if is_empty { T::ZERO } else { T::of(2.0) * asked };
        let mask = &mut masks[row * 2 * pitch..][..features];
        let acquired_at = &acquired_at[row * features..][..features];
        for (block, (values, acquired_at)) in mask.chunks_mut(128).zip(acquired_at.chunks(128)).enumerate() {
            let bits = source.bits(p.first + row as u32, 0, block as u32);
            for (i, (value, &when)) in values.iter_mut().zip(acquired_at).enumerate() {
                let kept = bits[i / 32] >> (i % 32) & 1 == 1;
                let seen = when != NEVER && T::count(when) < reach && kept;
                *value = if seen { T::ONE } else { T::ZERO };
            }
        }
        tape[row * scalars::LEN + scalars::WEIGHT] = settings[hyper::SUBMASKS];
    }
}
