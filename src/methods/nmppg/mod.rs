//! NM-PPG: non-myopic pathwise policy gradients. The whole acquisition trajectory is relaxed by a
//! Gumbel-softmax, so the gradient flows through every step of it.
//!
//! `rollout.rs` builds the forward half of the step's plan, `backward.rs` the other; the maths of each
//! kernel is derived beside its shader.

mod backward;
mod checkpoint;
mod config;
mod layout;
mod reference;
pub mod replay;
mod rollout;
mod schedule;
mod stepper;
mod trainer;

pub use checkpoint::Checkpoint;
pub use config::{Config, Rollout, Stage};
pub use layout::Memory;
pub use reference::reference_blocking;
pub use stepper::{Evaluation, Metrics, Stepper, Which};
pub use trainer::Trainer;
