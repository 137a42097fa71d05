//! SEFA: stochastic encodings for feature acquisition (Norcliffe et al. 2025). Each feature has an encoder of its own to a
//! Gaussian latent, also for not having been acquired; a predictor reads samples of all latents, and what is believed is
//! the mean of its softmaxes. The feature whose latent moves the belief most, over the samples, is acquired. One training
//! serves every trade-off: it acquires until the entropy of the belief falls below a threshold.
//!
//! The score of feature j: with S samples z of all latents, f_c the probability of class c in one of them, and g = ∂f_c/∂z_j,
//!   Σ_c f̄_c (1/S) Σ_s ‖g_sj‖ / Σ_k ‖g_sk‖,      f̄ the mean over samples.
//! Training never acquires: masks are of uniform cardinality, the loss is −ln f̄_y + β KL(latents ‖ N(0, 1)).
//!
//! What the original does otherwise:
//! - It makes a column normal by 200 bins and interpolates its distribution; here 64 knots, and the normal scores between
//!   them are interpolated. Categories have embeddings instead of an encoder; here a feature's columns, one or several, go
//!   through its encoder.
//! - It takes 100 samples in training and 200 for everything else, and fresh ones each time. Here there are fewer, fewest in
//!   training and validation, and an evaluation or a session has the same noise for
//!   every row and step: what is asked depends on what was answered alone, on both engines and in sessions.
//! - It keeps the weights of the highest validation accuracy or AUROC in the mean over all acquisitions; here of the lowest
//!   loss in that mean.
//! - Its threshold is a share of ln C, the entropy of knowing nothing; here nats, as for every method that stops by it.
//! - It divides by the lengths' sum plus 1e-8, which leaves a sample out that is sure: here only one whose gradient is
//!   nothing is left out.
//!
//! Costs: a score is divided by its feature's cost, a free feature counts as costing 0.001. Columns that are known from the
//! start are a feature that was acquired before the first step. Class weights weigh the loss. `deterministic` is the
//! publication's ablation: no noise, no KL.

mod config;
mod entry;
mod evaluate;
mod instance;
#[doc(hidden)]
pub mod kernels;
mod knots;
mod method;
mod plan;
mod policy;

pub use config::Config;
pub use entry::ENTRY;
pub use method::{Stage, State};
pub use plan::Sefa;
pub use policy::{Layers, model};

/// The method's name.
pub const NAME: &str = "sefa";

/// SEFA on an engine, step by step.
pub type Stepper = crate::train::Stepper<Sefa>;
/// A training run of SEFA.
pub type Trainer = crate::train::Trainer<Sefa>;
