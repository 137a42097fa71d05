//! How much work a call is.

use super::Grid;

/// How much work a call is: budgets need no more than the right order of magnitude, as what a device makes of it is
/// learned (`budget.rs`); docs/gpu.md reckons with both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: u64,
    /// Numbers that have to be read and written at least, of four bytes each.
    pub numbers: u64,
}

/// Threads of a workgroup: 64 in nearly every kernel.
const WORKGROUP: u64 = 64;

/// Operations of a thread of a kernel that does not count them.
const OF_A_THREAD: u64 = 16;

impl Work {
    /// Of a kernel that is not worth counting: a little for each thread.
    pub fn of_threads(grid: Grid) -> Self {
        let threads = WORKGROUP * product(&grid.groups());
        Self { flops: OF_A_THREAD * threads, numbers: threads }
    }

    /// A little for each thread, and so many numbers.
    pub fn of_numbers(grid: Grid, numbers: u64) -> Self {
        Self { numbers, ..Self::of_threads(grid) }
    }
}

/// The product of some sizes.
pub fn product(sizes: &[u32]) -> u64 {
    sizes.iter().map(|&size| u64::from(size)).product()
}
