//! The same list of features for everybody: what every policy that looks at answers has to beat.
//!
//! As a method ([`Trainer`], `querent train --method fixed`): a predictor is trained on random masks, then the list grows
//! by a feature an epoch, always the one that lowers the loss on the validation rows most for its cost; in the end the
//! predictor is trained on the beginnings of the list alone. The model asks the list in its order, until the entropy of
//! its belief is below a threshold or the list ends. With a threshold of 0 it is a fixed set: the first n of the list,
//! with n the horizon.
//!
//! As a baseline of any method's run ([`choose_blocking`], [`subset_blocking`], `querent train --baselines`): the best set
//! of a given cost, chosen in the same way with NM-PPG's predictor, and what a predictor of its own reaches with it.

mod baseline;
mod config;
mod entry;
#[doc(hidden)]
pub mod kernels;
mod method;
mod plan;
mod policy;
mod trials;

pub use baseline::{Subset, choose_blocking, everything_blocking, subset_blocking};
pub use config::Config;
pub use entry::ENTRY;
pub use method::{Stage, State};
pub use plan::Fixed;
pub use policy::model;

/// The method's name.
pub const NAME: &str = "fixed";

/// The method on an engine, step by step.
pub type Stepper = crate::train::Stepper<Fixed>;
/// A training run: the predictor alone, then a feature an epoch, then the predictor on the list.
pub type Trainer = crate::train::Trainer<Fixed>;
