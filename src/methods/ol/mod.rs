//! OL: opportunistic learning (Kachuee et al. 2019). A deep Q-network says what each action is worth in the long run:
//! acquiring a feature, or stopping. It looks ahead, as a value is that of all that follows. One training serves one
//! trade-off: α is part of what is rewarded.
//!
//! There is one network with two branches: P predicts the label, Q says what actions are worth. Layer i of Q reads its own
//! layer i − 1 and that of P, detached. A training step rolls out a batch of episodes, ε-greedily, into a replay memory, and
//! then makes some updates on transitions (s, a, s') drawn out of it: P learns to predict in s, and Q(s, a) follows
//! r + γ Q̄(s', argmax Q(s', ·)), where the argmax is over what can still be done (double DQN) and Q̄ has slow weights, their
//! moving average (Polyak averaging).
//!
//! What the original does otherwise:
//! - Its network sees no mask, so that a value of zero and an unknown one are the same to it; here it sees the mask.
//! - It rewards what an answer changes in the belief, for its cost: the setting `reward` = `confidence`. There a stop is in
//!   the code and never taken, and a case ends at a threshold of the belief's entropy. The default, `loss`, is what the
//!   comparison in the NM-PPG paper has: −α c(a) for acquiring, minus the predictor's loss for stopping, as it is when the
//!   transition is drawn and not when it was made.
//! - It may choose again what is acquired, also in the target; here both choose among the rest, and after the last step there
//!   is nothing but stopping.
//! - It leaves dropout on when it is tested, in its notebook γ is 0, and there the rate is cut in every episode of a percent;
//!   here dropout is the training's, γ is 1, and the rate falls once a tenth of the run in its second half.
//! - It learns from a stream, a row at a time; here a batch of episodes at a time, after a pretraining of P on masks of uniform
//!   cardinality. An episode is drawn out of the memory, then one of its transitions.
//! - It keeps the last weights; here the best by the validation rows are kept, and those are the slow ones.
//! - A free feature counts as costing 0.001 where something is divided by its cost.

mod config;
mod entry;
#[doc(hidden)]
pub mod kernels;
mod method;
mod plan;
mod policy;
mod step;

pub use config::{Config, Reward};
pub use entry::ENTRY;
pub use method::{Stage, State};
pub use plan::Ol;
pub use policy::model;

/// The method's name.
pub const NAME: &str = "ol";

/// OL on an engine, step by step.
pub type Stepper = crate::train::Stepper<Ol>;
/// A training run of OL: the predicting branch alone, then both with less and less chance.
pub type Trainer = crate::train::Trainer<Ol>;
