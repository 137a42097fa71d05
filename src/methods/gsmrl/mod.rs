//! GSMRL: a generative surrogate model for reinforcement learning (Li & Oliva 2021). A flow learns how columns and label
//! hang together, whatever is known of a row (ACFlow). Then a policy learns by proximal policy optimisation (PPO) which feature
//! to acquire next, or to stop: it reads, besides what is known, what the surrogate believes of the label and what it
//! expects of everything that is not known, and is rewarded for what it lowers the doubt of that belief by.
//!
//! The surrogate is [`crate::nn::Flow`]: the density of any columns O of a row given a class, p(x_O|y), and of the others given
//! these, p(x_U|x_O, y), each exact by the change of variables. The belief follows by Bayes, p(y|x_O) ∝ p(x_O|y) p(y), as in
//! both public codes; p(y) is a network of what is known from the start. Masks of uniform cardinality; the loss is the
//! cross-entropy of p(y|x_O), that of p(y|x), and the negative log-likelihood of x_U given x_O, per column
//! (`shaders/gsmrl/surrogate_loss.wgsl`). Then it is left as it is.
//!
//! An episode acquires at most `horizon` features. Acquiring costs α c less what the entropy of p(y|x_O) falls by, stopping
//! costs the predictor's loss; advantages are by GAE; policy and critic are updated several times on the steps of a
//! batch, with the clipped surrogate objective; the predictor learns where the rollouts have been. A rollout is
//! thrown away after its passes.
//!
//! With `acquire = "information"` no policy is trained: the surrogate alone (ACFlow) acquires the feature that is expected to lower
//! the entropy of p(y|x_O) most, less α times its cost, and stops where that is below zero. The expectation is over
//! the same points that make the moments. The answer is the predictor's all the same.
//!
//! What the originals (lupalab/GSMRL, and the re-implementation in a-norcliffe/SEFA) do otherwise:
//! - Their flows also have linear layers, or permutations, and a base that is a mixture or autoregressive; here couplings of
//!   fixed halves and a normal base, conditioned. A leaky ReLU's slope is learned by each coupling's network.
//! - SEFA's density also counts the columns that are not asked for, as zeros; here it is one of those asked for alone.
//! - The policy's mean and standard deviation of a column are of random samples there, and labels of the
//!   unconditional ones are drawn uniformly (lupalab). Here every class counts as much as it is believed, and the samples are two fixed
//!   points of the base, ±1 in each column, which make the moments of an affine flow exact and a session's choices
//!   repeatable. The moments given the likeliest class, which the originals add, are left out.
//! - Both choose the surrogate's checkpoint by a score, lupalab by that of the test rows. Here it is the last one, after a rate
//!   that has fallen along a cosine.
//! - Their predictor shares layers with the policy (lupalab) or is frozen (SEFA). Here it is a network of its own, pretrained on
//!   the surrogate's masks.
//! - SEFA has no stop and pays the loss at every step.
//! - Whoever has not stopped at the horizon has to: the loss is then the last step's, discounted once more.
//! - The mean of a rollout's steps is over all steps there could have been; those after a stop count zero.
//! - Change of variables needs numbers: a category's columns are taken for such. Scales are bounded, so that a column
//!   of few values is no density without end.

mod config;
mod entry;
mod host;
#[doc(hidden)]
pub mod kernels;
mod method;
mod plan;
mod policy;
mod rollout;
mod surrogate;

pub use config::{Acquire, Config};
pub use entry::ENTRY;
pub use method::{Stage, State};
pub use plan::Gsmrl;

/// The method's name.
pub const NAME: &str = "gsmrl";

/// GSMRL on an engine, step by step.
pub type Stepper = crate::train::Stepper<Gsmrl>;
/// A training run of GSMRL: the surrogate, then the policy.
pub type Trainer = crate::train::Trainer<Gsmrl>;
