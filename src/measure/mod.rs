//! How fast engines train: which one is fastest for a problem ([`Engine::auto_for_blocking`](crate::Engine::auto_for_blocking)),
//! and where the time of a step goes, on the shapes that benchmarks and `querent info --measure` share.

mod choice;
#[doc(hidden)]
pub mod device;
#[doc(hidden)]
pub mod kernels;
mod rate;
mod remembered;
mod report;
mod shape;
mod step;

pub use choice::{Choice, Speed, Start};
#[doc(hidden)]
pub use choice::{Memory, fastest_blocking, few_rows, speed_blocking};
#[doc(hidden)]
pub use rate::rate_blocking;
#[doc(hidden)]
pub use remembered::Remembered;
#[doc(hidden)]
pub use report::{Options, Report, report_blocking};
#[doc(hidden)]
pub use shape::{SHAPES, Shape};
#[doc(hidden)]
pub use step::{KernelTime, StepTime, step_blocking};
