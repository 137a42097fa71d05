//! A replay memory: episodes that are kept, and transitions that are drawn out of them. The maths is beside the shaders.

use super::words::{STREAMS, clock, words};
use super::{Gather, PLACE, Part, RANDOM, Work, area, kernel, line, places, product, source, workgroups};
use crate::engine::cpu::{Args, Real};

words! {
    /// Words of what a drawn transition does.
    pub mod taken: usize, first 0, prefix "", len "TAKEN" {
        /// The action.
        ACTION,
        /// Features that are held after it, if it acquires one.
        HELD,
    }
}

words! {
    /// Words of what a drawn transition comes to.
    pub mod returns: usize, first 0, prefix "", len "RETURNS" {
        /// What it was rewarded with.
        REWARD,
        /// What the value is wrong by, squared.
        ERROR,
    }
}

kernel! {
    /// Keeps a micro-batch's episodes in the replay memory.
    pub ReplayStore "replay_store" [Part::Words(&clock::WORDS), Part::Words(&STREAMS), RANDOM, PLACE]
    { rows, steps, first, batch, split_start, split_len, shuffled, chunks, lane_at, rounds, rewarded }
    (clock: U32 Read, path: U32 Read, rewards: F32 Read, kept: U32 Read, episodes: U32 Write, earned: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), 2 * product(&[p.rows, p.steps + 1, 1 + p.rewarded]));
    twin replay_store;
}

#[inline(always)]
fn replay_store<T: Real>(p: &ReplayStore, mut args: Args<T>) {
    let (clock, path, rewards, kept) = (args.words(), args.words(), args.reals(), args.words());
    let (episodes, earned) = (args.words_mut(), args.reals_mut());
    let (rows, steps) = (p.rows as usize, p.steps as usize);
    let &ReplayStore { first, batch, split_start, split_len, shuffled, chunks, .. } = p;
    let gathered =
        Gather { rows: p.rows, first, batch, split_start, split_len, shuffled, chunks, ..Gather::default() };
    for (row, place) in places(&gathered, clock).enumerate() {
        let episode = (kept[0] % p.rounds * batch + first) as usize + row;
        let to = &mut episodes[episode * (steps + 1)..][..steps + 1];
        to[0] = place.unwrap_or(split_start as usize) as u32;
        for (t, action) in to[1..].iter_mut().enumerate() {
            *action = path[p.lane_at as usize + t * rows + row];
        }
        if p.rewarded != 0 {
            for (t, earned) in earned[episode * steps..][..steps].iter_mut().enumerate() {
                *earned = rewards[p.lane_at as usize + t * rows + row];
            }
        }
    }
}

kernel! {
    /// Counts the batches that were kept in the replay memory.
    pub ReplayTurn "replay_turn" []
    { batches }
    (kept: U32 Write)
    grid |_p| workgroups(1);
    work |_p| Work::of_threads(workgroups(1));
    twin replay_turn;
}

#[inline(always)]
fn replay_turn<T: Real>(p: &ReplayTurn, mut args: Args<T>) {
    args.words_mut()[0] += p.batches;
}

kernel! {
    /// Draws transitions out of the replay memory: where the row lies, the masks before and after, what was done.
    pub ReplayDraw "replay_draw"
    [
        Part::Words(&clock::WORDS),
        Part::Words(&STREAMS),
        Part::Words(&taken::WORDS),
        Part::Words(&returns::WORDS),
        RANDOM,
    ]
    { rows, steps, features, first, batch, rounds, pitch, update, stream, stops, rewarded }
    (clock: U32 Read, kept: U32 Read, episodes: U32 Read, earned: F32 Read, places: U32 Write, taken: U32 Write,
     returns: F32 Write, masks: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(line(p.rows), product(&[p.rows, 2 * (p.steps + p.features)]));
    twin replay_draw;
}

#[inline(always)]
fn replay_draw<T: Real>(p: &ReplayDraw, mut args: Args<T>) {
    let (clock, kept, episodes, earned) = (args.words(), args.words(), args.words(), args.reals());
    let (places, taken) = (args.words_mut(), args.words_mut());
    let (returns, masks) = (args.reals_mut(), args.reals_mut());
    let source = source(clock, p.stream);
    let (rows, steps, features) = (p.rows as usize, p.steps as usize, p.features as usize);
    let (now, next) = masks.split_at_mut(rows * p.pitch as usize);
    for row in 0..rows {
        let drawn = source.bits(p.first + row as u32, p.update, 0);
        let episode = (drawn[0] % (kept[0].max(1).min(p.rounds) * p.batch)) as usize;
        let words = &episodes[episode * (steps + 1)..][..steps + 1];
        let path = &words[1..];
        let ended = path.iter().position(|&action| action == p.features);
        let length = ended.map_or(p.steps + p.stops, |at| at as u32 + 1);
        let t = (drawn[1] % length.max(1)) as usize;
        let action = path.get(t).copied().unwrap_or(p.features);
        let [now, next] = [&mut *now, &mut *next].map(|all| &mut all[row * p.pitch as usize..][..features]);
        now.fill(T::ZERO);
        path[..t].iter().for_each(|&feature| now[feature as usize] = T::ONE);
        next.copy_from_slice(now);
        if action < p.features {
            next[action as usize] = T::ONE;
        }
        places[row] = words[0];
        taken[row * taken::LEN + taken::ACTION] = action;
        taken[row * taken::LEN + taken::HELD] = t as u32 + 1;
        let reward = if p.rewarded != 0 { earned[episode * steps + t.min(steps - 1)] } else { T::ZERO };
        returns[row * returns::LEN + returns::REWARD] = reward;
        returns[row * returns::LEN + returns::ERROR] = T::ZERO;
    }
}

kernel! {
    /// Copies rows out of the data set by where they lie.
    pub GatherAt "gather_at" []
    { rows, columns, pitch }
    (places: U32 Read, data_x: F32 Read, data_y: U32 Read, x: F32 Write, y: U32 Write)
    grid |p| area(p.pitch, p.rows);
    work |p| Work::of_numbers(area(p.pitch, p.rows), 2 * product(&[p.rows, p.columns]));
    twin gather_at;
}

#[inline(always)]
fn gather_at<T: Real>(p: &GatherAt, mut args: Args<T>) {
    let (places, data_x, data_y) = (args.words(), args.reals(), args.words());
    let (x, y) = (args.reals_mut(), args.words_mut());
    let columns = p.columns as usize;
    let rows = x.chunks_exact_mut(p.pitch as usize).zip(y).zip(places).take(p.rows as usize);
    for ((x, y), &place) in rows {
        let (values, padding) = x.split_at_mut(columns);
        values.copy_from_slice(&data_x[place as usize * columns..][..columns]);
        padding.fill(T::ZERO);
        *y = data_y[place as usize];
    }
}

kernel! {
    /// The same out of a data set of bytes, four to a word: x = byte / divisor.
    pub GatherAtBytes "gather_at_bytes" []
    { rows, columns, pitch, divisor }
    (places: U32 Read, data_x: U32 Read, data_y: U32 Read, x: F32 Write, y: U32 Write)
    grid |p| area(p.pitch, p.rows);
    work |p| Work::of_numbers(area(p.pitch, p.rows), 2 * product(&[p.rows, p.columns]));
    twin gather_at_bytes;
}

#[inline(always)]
fn gather_at_bytes<T: Real>(p: &GatherAtBytes, mut args: Args<T>) {
    let (places, data_x, data_y) = (args.words(), args.words(), args.words());
    let (x, y) = (args.reals_mut(), args.words_mut());
    let columns = p.columns as usize;
    let rows = x.chunks_exact_mut(p.pitch as usize).zip(y).zip(places).take(p.rows as usize);
    for ((x, y), &place) in rows {
        let (values, padding) = x.split_at_mut(columns);
        for (value, index) in values.iter_mut().zip(place as usize * columns..) {
            let byte = data_x[index / 4] >> (8 * (index % 4)) & 0xff;
            *value = T::count(byte) / T::count(p.divisor);
        }
        padding.fill(T::ZERO);
        *y = data_y[place as usize];
    }
}
