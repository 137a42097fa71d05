//! NM-PPG: non-myopic pathwise policy gradients. The whole acquisition trajectory is relaxed by a
//! Gumbel-softmax, so the gradient flows through every step of it.
//!
//! `rollout.rs` builds the forward half of the step's plan, `backward.rs` the other; the maths of each
//! kernel is derived beside its shader.

mod backward;
mod buffers;
mod checkpoint;
mod config;
mod frames;
mod immediate;
pub mod kernels;
mod layout;
mod limits;
mod measures;
mod procedure;
mod reference;
pub mod replay;
mod rollout;
mod schedule;
mod snapshot;
mod stepper;
mod trainer;

pub use buffers::{Buffers, Network};
pub use checkpoint::Checkpoint;
pub use config::{Config, Rollout, Stage};
pub use frames::{Recorded, Seen};
pub use layout::Memory;
pub use limits::Shape;
pub use measures::{Evaluation, Metrics};
pub use reference::reference_blocking;
pub use stepper::{Stepper, Which};
pub use trainer::Trainer;
