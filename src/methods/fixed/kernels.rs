//! The kernels that only a fixed list has. The maths is beside the shaders.

use crate::engine::cpu::{Args, Real};
use crate::engine::groups::Groups;
use crate::engine::kernels::words::{clock, losses, settings, words};
use crate::engine::kernels::{
    GROUPS, Kernel, Params, Part, RANDOM, REDUCE, Work, area, kernel, largest, line, product, source,
    workgroups,
};
use crate::methods::usual::CHEAPEST;

/// All of them.
pub static KERNELS: &[&Kernel] =
    &[Trial::KERNEL, Total::KERNEL, Collect::KERNEL, Follow::KERNEL, Mask::KERNEL, Choose::KERNEL];

words! {
    /// Settings that change from epoch to epoch, behind the general ones.
    pub mod hyper: usize, first super::settings::LEN, prefix "", len "HYPER" {
        /// The learning rate.
        RATE,
        /// How many features are to be in the list by now.
        CHOSEN,
        /// Share of the training rows that see the beginning of the list.
        LISTED,
        /// Whether those rows see a feature by chance besides.
        MORE,
    }
}

words! {
    /// Its own uses of randomness.
    pub mod stream: u32, first 24, prefix "STREAM_", len "STREAMS_END" {
        /// The training's masks.
        LIST,
    }
}

kernel! {
    /// The first layer as if one more feature were known, for several features at once.
    pub Trial "fixed/trial" [GROUPS]
    { rows, first, count, columns, features, hidden_pitch, x_pitch, weight }
    (groups: U32 Read, x: F32 Read, candidates: U32 Read, weights: Vec4 Read, sum: Vec4 Read, hidden: Vec4 Write)
    grid |p| area(p.hidden_pitch / 4, p.rows * p.count);
    work |p| {
        // Each adds the rows of one feature: its columns and its mask.
        let width = u64::from(p.columns.div_ceil(p.features.max(1)));
        let numbers = product(&[p.rows, p.count, p.hidden_pitch]);
        Work { flops: 2 * (width + 1) * numbers, numbers: (width + 3) * numbers }
    };
    twin trial;
}

#[inline(always)]
fn trial<T: Real>(p: &Trial, mut args: Args<T>) {
    let (groups, x, candidates) = (args.words(), args.reals(), args.words());
    let (weights, sum, hidden) = (args.reals(), args.reals(), args.reals_mut());
    let groups = Groups::new(groups, p.features, p.columns);
    let (rows, pitch, x_pitch) = (p.rows as usize, p.hidden_pitch as usize, p.x_pitch as usize);
    let weight_row = |i: usize| &weights[p.weight as usize + i * pitch..][..pitch];
    for (tape_row, h) in hidden.chunks_exact_mut(pitch).take(rows * p.count as usize).enumerate() {
        let row = tape_row % rows;
        h.copy_from_slice(&sum[row * pitch..][..pitch]);
        let feature = candidates[p.first as usize + tape_row / rows];
        if feature < p.features {
            for &column in groups.columns_of(feature as usize) {
                let value = x[row * x_pitch + column as usize];
                h.iter_mut().zip(weight_row(column as usize)).for_each(|(h, &weight)| *h += value * weight);
            }
            let mask = weight_row((p.columns + feature) as usize);
            h.iter_mut().zip(mask).for_each(|(h, &weight)| *h += weight);
        }
        h.iter_mut().for_each(|h| *h = h.larger(T::ZERO));
    }
}

kernel! {
    /// Adds up the losses of one block of rows after the other.
    pub Total "fixed/total" [REDUCE, Part::Words(&losses::WORDS)]
    { rows, blocks, first, divisor, fresh }
    (losses: F32 Read, totals: F32 Write)
    grid |p| workgroups(p.blocks);
    work |p| Work::of_numbers(workgroups(p.blocks), product(&[p.rows, p.blocks, losses::LEN as u32]));
    twin total;
}

#[inline(always)]
fn total<T: Real>(p: &Total, mut args: Args<T>) {
    let (losses, totals) = (args.reals(), args.reals_mut());
    let rows = p.rows as usize;
    for (block, to) in totals[p.first as usize..][..p.blocks as usize].iter_mut().enumerate() {
        let mut sum = T::ZERO;
        for loss in losses[block * rows * losses::LEN..].chunks_exact(losses::LEN).take(rows) {
            sum += loss[losses::LOSS];
        }
        let before = if p.fresh != 0 { T::ZERO } else { *to };
        *to = before + sum / T::count(p.divisor);
    }
}

kernel! {
    /// Adds what the lanes have found in a chunk to the candidates' scores.
    pub Collect "fixed/collect" [Part::Words(&clock::WORDS)]
    { len, lanes }
    (totals: F32 Read, clock: U32 Read, scores: F32 Write)
    grid |p| line(p.len);
    work |p| Work::of_numbers(line(p.len), product(&[p.len, p.lanes + 2]));
    twin collect;
}

#[inline(always)]
fn collect<T: Real>(p: &Collect, mut args: Args<T>) {
    let (totals, clock, scores) = (args.reals(), args.words(), args.reals_mut());
    let len = p.len as usize;
    let scores = &mut scores[..len];
    if clock[clock::CHUNK] <= 1 {
        scores.fill(T::ZERO);
    }
    for lane in totals.chunks_exact(len).take(p.lanes as usize) {
        scores.iter_mut().zip(lane).for_each(|(score, &total)| *score += total);
    }
}

kernel! {
    /// Everybody is asked the list.
    pub Follow "fixed/follow" []
    { rows, steps }
    (list: F32 Read, path: U32 Write)
    grid |p| line(p.rows * p.steps);
    work |p| Work::of_numbers(line(p.rows * p.steps), product(&[p.rows, p.steps]));
    twin follow;
}

#[inline(always)]
fn follow<T: Real>(p: &Follow, mut args: Args<T>) {
    let (list, path) = (args.reals(), args.words_mut());
    let steps = path.chunks_exact_mut(p.rows as usize).zip(list).take(p.steps as usize);
    steps.for_each(|(path, feature)| path.fill(feature.index() as u32));
}

kernel! {
    /// Draws the training's masks: of uniform cardinality, or the beginning of the list.
    pub Mask "fixed/mask"
    [
        Part::Words(&clock::WORDS),
        Part::Words(&crate::engine::kernels::words::STREAMS),
        Part::Words(&stream::WORDS),
        Part::Words(&hyper::WORDS),
        RANDOM,
    ]
    { rows, features, pitch, steps, first }
    (clock: U32 Read, settings: F32 Read, list: F32 Read, masks: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, p.features]));
    twin mask;
}

/// How many features a list has so far.
#[inline(always)]
fn count<T: Real>(list: &[T], features: u32) -> usize {
    list.iter().take_while(|feature| feature.index() < features as usize).count()
}

#[inline(always)]
fn mask<T: Real>(p: &Mask, mut args: Args<T>) {
    let (clock, settings) = (args.words(), args.reals());
    let (list, masks) = (&args.reals()[..p.steps as usize], args.reals_mut());
    let source = source(clock, stream::LIST);
    let count = count(list, p.features) as u32;
    for row in 0..p.rows {
        let [threshold, kind, length, more] = source.bits(p.first + row, 1, 0);
        let listed = T::count(kind >> 8) / T::count(1 << 24) < settings[hyper::LISTED];
        let mask = &mut masks[(row * p.pitch) as usize..][..p.features as usize];
        if listed {
            mask.fill(T::ZERO);
            let seen = &list[..(length % (count + 1)) as usize];
            seen.iter().for_each(|feature| mask[feature.index()] = T::ONE);
            if settings[hyper::MORE] > T::ZERO {
                mask[(more % p.features) as usize] = T::ONE;
            }
            continue;
        }
        for (block, values) in mask.chunks_mut(4).enumerate() {
            let bits = source.bits(p.first + row, 0, block as u32);
            for (value, &bits) in values.iter_mut().zip(&bits) {
                *value = if bits > threshold { T::ONE } else { T::ZERO };
            }
        }
    }
}

kernel! {
    /// Puts the next feature into the list, if one is due, and says what is left.
    pub Choose "fixed/choose" [Part::Words(&hyper::WORDS)]
    { features, steps }
    (scores: F32 Read, costs: F32 Read, settings: F32 Read, candidates: U32 Write, list: F32 Write, average: F32 Write)
    grid |_p| workgroups(1);
    work |p| Work::of_numbers(workgroups(1), product(&[p.features + p.steps, 1]));
    twin choose;
}

#[inline(always)]
fn choose<T: Real>(p: &Choose, mut args: Args<T>) {
    let (scores, costs, settings) = (args.reals(), args.reals(), args.reals());
    let (candidates, list, average) = (args.words_mut(), args.reals_mut(), args.reals_mut());
    let (nothing, steps) = (p.features as usize, p.steps as usize);
    let list = &mut list[..steps];
    let count = count(list, p.features);
    let known = candidates[nothing] == p.features;
    let due = known && count < steps && T::count(count as u32) < settings[hyper::CHOSEN];
    if known && !due {
        return;
    }
    if due {
        let gain = |place: usize| {
            let cost = costs[candidates[place] as usize].larger(T::of(CHEAPEST));
            let less = scores[nothing] - scores[place];
            if less > T::ZERO { less / cost } else { less * cost }
        };
        let there = (0..nothing).filter(|&place| candidates[place] < p.features);
        let best = T::count(largest(there, gain).map_or(p.features, |place| candidates[place]));
        list[count] = best;
        average[count] = best;
    }
    let mut at = 0;
    for feature in 0..p.features {
        if !list.iter().any(|chosen| chosen.index() == feature as usize) {
            candidates[at] = feature;
            at += 1;
        }
    }
    candidates[at..=nothing].fill(p.features);
}
