//! The twin of `lib/best.wgsl`, for kernels that choose.

use crate::engine::cpu::Real;

/// Of some candidates, the one with the largest number; of equal ones the first.
#[inline(always)]
pub(crate) fn largest<T: Real>(
    candidates: impl Iterator<Item = usize>,
    number: impl Fn(usize) -> T,
) -> Option<usize> {
    let mut best: Option<(usize, T)> = None;
    for i in candidates {
        let number = number(i);
        if best.is_none_or(|(_, most)| number > most) {
            best = Some((i, number));
        }
    }
    best.map(|(i, _)| i)
}
