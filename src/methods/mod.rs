//! Methods: each is one folder, and one line of [`METHODS`]. `fixed` is not in the list: it is what they have to beat.

pub mod fixed;
pub mod gdfs;
pub mod nmppg;
mod range;
pub mod set;

mod registry;

pub use registry::{Entry, Tradeoff, find, kernels};

/// Every method there is. Whatever walks over methods (the command, the report, the tests) finds them here.
pub static METHODS: &[&Entry] = &[&nmppg::ENTRY, &gdfs::ENTRY];
