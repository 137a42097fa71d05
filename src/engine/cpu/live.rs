//! Twin of `live.wgsl`, and the lists it makes as the other twins see them.

use super::args::Args;
use super::real::Real;
use crate::engine::kernels::Live;
use crate::engine::state::{hyper, scalars};
use std::ops::Range;

/// Rows of the tape: the first `whole` ones, and then each listed one `whole` rows later.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    whole: usize,
    list: &'a [u32],
}

impl<'a> Listed<'a> {
    /// The rows of the lists `from .. to` in `live`; `None` if the call works on all rows.
    #[inline(always)]
    pub fn of(live: &'a [u32], [from, to, list, shift]: [u32; 4]) -> Option<Self> {
        let begin = |step: u32| (list + live[step as usize]) as usize;
        (from != to).then(|| Self { whole: shift as usize, list: &live[begin(from)..begin(to)] })
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.whole + self.list.len()
    }

    /// The row at a place.
    #[inline(always)]
    pub fn at(&self, index: usize) -> usize {
        if index < self.whole { index } else { self.list[index - self.whole] as usize + self.whole }
    }

    /// The last row: the lists rise.
    #[inline(always)]
    pub fn last(&self) -> Option<usize> {
        self.len().checked_sub(1).map(|last| self.at(last))
    }

    /// All of them.
    #[inline(always)]
    pub fn rows(self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(move |index| self.at(index))
    }
}

/// The rollouts of a row's instance in this micro-batch: `count` rows one after the other.
#[inline(always)]
pub fn twins_of<T: Real>(row: usize, rows: usize, count: T) -> Range<usize> {
    let mut twins = 1;
    while T::count(twins) < count {
        twins += 1;
    }
    let first = row - row % twins as usize;
    first..(first + twins as usize).min(rows)
}

/// Whether a row still asks at a step: see `asks.wgsl`.
#[inline(always)]
pub fn still_asks<T: Real>(tape: &[T], hyper: &[T], step: usize, rows: usize, row: usize) -> bool {
    let negligible = hyper[hyper::NEGLIGIBLE];
    let mass = |row: usize| tape[(step * rows + row) * scalars::LEN + scalars::SURVIVAL];
    step == 0
        || negligible == T::ZERO
        || twins_of(row, rows, hyper[hyper::TWINS]).any(|twin| mass(twin) >= negligible)
}

#[inline(always)]
pub fn live<T: Real>(p: &Live, mut args: Args<T>) {
    let (tape, hyper, live) = (args.reals(), args.reals(), args.words_mut());
    let (rows, step) = (p.rows as usize, p.step as usize);
    if step == 0 {
        live[0] = 0;
    }
    let mut at = live[step];
    for row in 0..rows {
        if still_asks(tape, hyper, step, rows, row) {
            live[(p.list + at) as usize] = (step * rows + row) as u32;
            live[p.ends as usize + row] = p.step + 1;
            at += 1;
        }
    }
    live[step + 1] = at;
}
