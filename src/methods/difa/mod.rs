//! DiFA: differentiable feature acquisition (Ghosh & Lan 2023). A selector without a stop and a predictor learn together:
//! the choice of a feature is sampled by Gumbel noise, the predictor's loss is taken on what it really reveals, and its
//! gradient goes to the relaxed choice instead (straight-through), through this one step only. One training serves every
//! trade-off: it acquires until the entropy of the belief falls below a threshold.
//!
//! With m the mask, z the selector's logits and ε Gumbel noise, over what is not yet acquired:
//!   r̃ = softmax((z + ε)/τ),   j = argmax r̃,   m' = m + onehot j,   the loss of the step ℓ(f(x(m')), y)/k,
//! where on the way back ∂m'/∂r̃ counts as the identity. The rollout goes on from m': there is but one noise, where GDFS
//! needs a second to sample what it acquires.
//!
//! The authors' code is not public. From the paper's text are the straight-through Gumbel-softmax over the features that
//! are not yet acquired, and that selector and predictor learn together from the prediction loss. These are decisions:
//! - There is no model that imputes what is unknown: both networks see zeros and the mask, as for every method here.
//! - Selector and predictor have an Adam and a rate each, as in the adaptation that NM-PPG is compared with.
//! - The temperature falls geometrically in stages from τ_start to τ_end, each with Adams that have seen nothing, until the
//!   greedy validation loss rests; then it goes on from the best weights so far. GDFS's schedule is the same, but goes by
//!   the loss of its relaxed masks, which are not trained here.
//! - The predictor is pretrained on masks of uniform cardinality, as GDFS's is.
//! - Costs play no part, as in GDFS; when to stop is the belief's entropy, not a number of features.

mod config;
mod entry;
mod method;
mod policy;

pub use config::Config;
pub use entry::ENTRY;
pub use method::{Difa, Stage};
pub use policy::model;

pub use super::myopic::State;
#[doc(hidden)]
pub use super::myopic::kernels;

/// The method's name.
pub const NAME: &str = "difa";

/// DiFA on an engine, step by step.
pub type Stepper = crate::train::Stepper<Difa>;
/// A training run of DiFA: the predictor alone, then both networks at one temperature after another.
pub type Trainer = crate::train::Trainer<Difa>;
