//! The one kernel that only AACO has. The maths is beside the shader.

use crate::engine::cpu::{Args, Real};
use crate::engine::kernels::words::{Words, clock, settings, words};
use crate::engine::kernels::{
    Gather, Kernel, PLACE, Params, Part, RANDOM, Work, kernel, line, places, product, source,
};
use crate::random::Source;

/// All of them.
pub static KERNELS: &[&Kernel] = &[Recall::KERNEL];

words! {
    /// Settings that change from epoch to epoch, behind the general ones.
    pub mod hyper: usize, first super::settings::LEN, prefix "", len "HYPER" {
        /// The learning rate.
        RATE,
        /// Share of the training rows with a rollout that see a mask of it.
        VISITED,
    }
}

words! {
    /// Its own uses of randomness.
    pub mod stream: u32, first 64, prefix "STREAM_", len "STREAMS_END" {
        /// The training's masks.
        VISITED,
        /// The validation's: the next number, as the kernel knows.
        JUDGED,
        /// Candidate sets (on the host).
        SETS,
        /// Which α a rollout has, and which path a row borrows (on the host).
        ROLLOUTS,
    }
}

kernel! {
    /// What the search asked of a row when it was rolled out, and the mask that the predictor is to learn on.
    pub Recall "aaco/recall"
    [
        Part::Words(&clock::WORDS),
        Part::Words(&crate::engine::kernels::words::STREAMS),
        Part::Words(&stream::WORDS),
        Part::Words(&hyper::WORDS),
        RANDOM,
        PLACE,
    ]
    { rows, features, pitch, steps, first, batch, split_start, split_len, shuffled, chunks, whole, judged }
    (clock: U32 Read, settings: F32 Read, slots: U32 Read, visited: U32 Read, path: U32 Write, masks: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, p.features + 2 * p.steps]));
    twin recall;
}

impl Recall {
    /// The same rows, gathered.
    fn gather(&self) -> Gather {
        let &Self { rows, first, batch, split_start, split_len, shuffled, chunks, .. } = self;
        Gather { rows, columns: 0, pitch: 0, first, batch, split_start, split_len, shuffled, chunks }
    }
}

#[inline(always)]
fn recall<T: Real>(p: &Recall, mut args: Args<T>) {
    let (clock, settings, slots, visited) = (args.words(), args.reals(), args.words(), args.words());
    let (path, masks) = (args.words_mut(), args.reals_mut());
    let judged = p.judged != 0;
    let source = if judged {
        Source::new(Words::seed(clock), stream::JUDGED, 0)
    } else {
        source(clock, stream::VISITED)
    };
    let (rows, steps) = (p.rows as usize, p.steps as usize);
    for (row, place) in places(&p.gather(), clock).enumerate() {
        let rollout = place.and_then(|place| slots[place].checked_sub(1));
        let kept = rollout.map_or(&[][..], |rollout| &visited[rollout as usize * steps..][..steps]);
        let length = kept.iter().filter(|&&asked| asked > 0).count() as u32;
        for t in 0..steps {
            let asked = kept.get(t).copied().unwrap_or(0);
            path[t * rows + row] = asked.checked_sub(1).unwrap_or(p.features);
        }
        let who =
            if judged { place.map_or(p.split_start, |place| place as u32) } else { p.first + row as u32 };
        let [threshold, kind, begins, _] = source.bits(who, 1, 0);
        let share = if rollout.is_some() && !judged { settings[hyper::VISITED] } else { T::ZERO };
        let follows = T::count(kind >> 8) / T::count(1 << 24) < share + T::count(p.whole);
        let mask = &mut masks[row * p.pitch as usize..][..p.features as usize];
        if follows {
            mask.fill(T::ZERO);
            let seen = (begins % (length + 1)).max(p.whole * length);
            // What is no feature is nothing here: the rollouts may come from a spoilt file.
            for t in 0..seen as usize {
                if let Some(value) = mask.get_mut(path[t * rows + row] as usize) {
                    *value = T::ONE;
                }
            }
            continue;
        }
        for (block, values) in mask.chunks_mut(4).enumerate() {
            let bits = source.bits(who, 0, block as u32);
            for (value, &bits) in values.iter_mut().zip(&bits) {
                *value = if bits > threshold { T::ONE } else { T::ZERO };
            }
        }
    }
}
