//! Methods: each is one folder, and one line here.

pub mod nmppg;

use crate::engine::kernels::{GENERAL, Kernel};

/// Every kernel: the general ones, then each method's own.
pub fn kernels() -> impl Iterator<Item = &'static Kernel> {
    GENERAL.iter().chain(nmppg::kernels::KERNELS).copied()
}
