//! DIME: discriminative mutual information estimation (Gadgil et al. 2024). A network says what acquiring each feature
//! would lower the predictor's loss by, and learns it from what acquiring one has lowered it by; the feature that is
//! worth most for its cost is acquired. One training serves every trade-off: it acquires until the best is worth less
//! than a threshold.
//!
//! The predictor and the values are one network: they share all hidden layers, whose gradient is that of both, and the
//! last layer has the classes' logits and behind them v of each feature. With H the entropy of the belief, a feature is
//! worth q = σ(v) · H; along a rollout, the loss of a step is (q_a − δ)² + ℓ_{t+1}, δ = ℓ_t − ℓ_{t+1} and H being constants.
//!
//! What the original does otherwise:
//! - It has ten ε from 0.05 on, each a fifth of the one before, and dropout 0.3. Here there are four from 0.4 on, each a quarter,
//!   much as in the re-implementation whose results on the Syn tasks are published, and only small tables get dropout:
//!   docs/methods.md has what either reaches. All of it can be set.
//! - It may choose again what is acquired, by its values in training and by chance; here both choose among the rest.
//! - Its two networks have common weights, but dropout of their own; here a state goes through the hidden layers once.
//! - It goes on from the last weights when ε falls; here from the best so far, with an Adam that has seen nothing, as
//!   GDFS does. That validation losses are compared with the best of all ε is the original's.
//! - Its examples keep the checkpoint of the worst accuracy, or that of the last step; here it is the lowest mean loss
//!   over all steps, which also decides when an ε is over.
//! - It knows no class weights. With them, the predictor's belief f is that of a table in which classes occur w times
//!   as often, and what can be gained at most is not H but H / Σ_y f_y/w_y: that is what takes its place here.
//! - A free feature counts as costing 0.001.

mod config;
mod entry;
#[doc(hidden)]
pub mod kernels;
mod method;
mod plan;
mod policy;

pub use config::Config;
pub use entry::ENTRY;
pub use method::{Stage, State};
pub use plan::Dime;
pub use policy::model;

/// The method's name.
pub const NAME: &str = "dime";

/// DIME on an engine, step by step.
pub type Stepper = crate::train::Stepper<Dime>;
/// A training run of DIME: the predictor alone, then both with less and less chance.
pub type Trainer = crate::train::Trainer<Dime>;
