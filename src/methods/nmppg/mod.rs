//! NM-PPG: non-myopic pathwise policy gradients. The whole acquisition trajectory is relaxed by a
//! Gumbel-softmax, so the gradient flows through every step of it.
//!
//! Where what stands: `config.rs` has the settings, `stage.rs` and `schedule.rs` what they become over a run; `method.rs` is what
//! the trainer asks; `plan.rs` declares networks, tape and sections, `forward.rs` writes the calls of a step up to the
//! losses and `backward.rs` those of the way back; `kernels/` has what only this method computes, the maths of each
//! kernel beside its shader. `policy.rs` is what comes out of a run, `entry.rs` the method's line in the list. `steps.rs`
//! runs single steps; `examples/replay` takes one of a file, for ports.

mod backward;
mod config;
mod entry;
mod forward;
#[doc(hidden)]
pub mod kernels;
mod method;
mod plan;
mod policy;
mod reference;
mod schedule;
mod stage;
mod steps;
mod traces;
mod trial;

pub use crate::methods::alpha::{Alpha, Survey};
pub use crate::policy::history::Evaluation;
pub use crate::train::{Buffers, Checkpoint, Memory, NetworkView, Progress, Recorded, Shape};
pub use config::{Config, Exploration, Gradient, Networks, Predictor, RENAMED, Rollout, Schedule};
pub use entry::ENTRY;
pub use method::State;
pub use plan::NmPpg;
pub(crate) use policy::load;
pub use policy::model;
pub use reference::reference_blocking;
pub(crate) use reference::seeing_blocking;
pub use stage::Stage;
pub use traces::traces_blocking;

/// The method's name.
pub const NAME: &str = "nmppg";

/// NM-PPG on an engine, step by step.
pub type Stepper = crate::train::Stepper<NmPpg>;
/// A training run of NM-PPG: warm-up, then stage after stage of falling temperature, each from the best weights so
/// far, until no epoch is better.
pub type Trainer = crate::train::Trainer<NmPpg>;
