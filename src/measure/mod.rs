//! How fast engines train: where the time of a step goes, on the shapes that benchmarks and `querent info --measure` share.

#[doc(hidden)]
pub mod device;
#[doc(hidden)]
pub mod kernels;
mod rate;
mod report;
mod shape;
mod step;

#[doc(hidden)]
pub use rate::rate_blocking;
#[doc(hidden)]
pub use report::{Options, Report, report_blocking};
#[doc(hidden)]
pub use shape::{SHAPES, Shape};
#[doc(hidden)]
pub use step::{KernelTime, StepTime, step_blocking};
