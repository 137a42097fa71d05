//! What methods share whose selector looks one step ahead: the relaxed choice of a feature and its way back, rollouts with
//! a loss for each step, the pretraining, the greedy evaluation, the schedule of temperatures, and the policy of two
//! networks that stops when its belief is certain.

mod evaluate;
pub mod kernels;
pub(super) mod plan;
pub(super) mod policy;
pub(super) mod schedule;
mod step;

pub use schedule::State;
