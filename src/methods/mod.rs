//! Methods: each is one folder, and one line of [`METHODS`].

pub mod aaco;
pub mod alpha;
pub mod difa;
pub mod dime;
pub mod fixed;
pub mod gdfs;
pub mod gsmrl;
mod myopic;
pub mod nmppg;
pub mod ol;
mod range;
pub mod sefa;
pub mod set;
mod usual;

mod registry;

pub use registry::{Entry, Reader, Tradeoff, Trial, Try, find, kernels, reader};
pub use usual::{pass, whole_passes};

/// Every method there is. Whatever walks over methods (the command, the report, the tests) finds them here.
pub static METHODS: &[&Entry] = &[
    &nmppg::ENTRY,
    &gdfs::ENTRY,
    &difa::ENTRY,
    &dime::ENTRY,
    &sefa::ENTRY,
    &ol::ENTRY,
    &gsmrl::ENTRY,
    &aaco::ENTRY,
    &fixed::ENTRY,
];
