//! GDFS: greedy dynamic feature selection (Covert et al. 2023). A selector without a stop chooses the feature that, alone
//! with what is known, lowers the predictor's loss most; the choice is relaxed by a Gumbel-softmax, and the gradient of
//! each step's loss goes through this one step only. One training serves every trade-off: it acquires until the entropy
//! of the belief falls below a threshold.
//!
//! As published, but for three things. What is acquired is blocked in the relaxed sample of training too (the public code
//! samples it again). The temperature starts at 2.0 instead of 0.2, which gets stuck where a feature is worth nothing
//! alone. Costs play no part: the publication has none.

mod config;
mod entry;
mod method;
mod policy;

pub use config::Config;
pub use entry::ENTRY;
pub use method::{Gdfs, Stage};
pub use policy::model;

pub use super::myopic::State;
#[doc(hidden)]
pub use super::myopic::kernels;

/// The method's name.
pub const NAME: &str = "gdfs";

/// GDFS on an engine, step by step.
pub type Stepper = crate::train::Stepper<Gdfs>;
/// A training run of GDFS: the predictor alone, then both networks at one temperature after another.
pub type Trainer = crate::train::Trainer<Gdfs>;
