//! AACO: the acquisition conditioned oracle (Valancius et al. 2024). No policy is trained. For each case the search takes
//! the training rows that are nearest by what is known, tries many sets of further features on them, and finds the set
//! with the least of mean loss and price; it acquires one feature of it, the one of the least mean loss alone, and
//! searches again. Where no set is worth more than nothing, it stops. Looking at whole sets, it looks ahead: a feature that
//! says nothing alone is found through what it opens.
//!
//! Exactly, with what is known of a case in the columns O, and the features that are open U:
//!
//! - neighbours: the `neighbours` training rows of the least squared distance over O, in an order of chance that the model
//!   keeps; of equally near ones the first. As long as nothing is known, all are equally near, and the first `start_rows`
//!   take their place: a handful of rows would make the first question a matter of luck.
//! - candidate sets: `candidates` non-empty subsets of U, sizes uniform, each set counted once; all of them where there
//!   are no more. They are drawn anew at each step, keyed by the seed and the values that are known. And nothing at all.
//! - value: the neighbours' mean of the predictor's loss (cross-entropy with class weights, in nats), with the set's
//!   features filled in from each neighbour, and with its label; plus α times the set's cost. All in f32, summed one
//!   neighbour after the other; of equal values the first set counts, and nothing comes first.
//!
//! α is a setting of the search: one model serves any. The predictor is trained on random masks, then on those that
//! rollouts of the search visit, half and half with random ones. A training row is never its own neighbour there, once something is
//! known of it. The
//! model's file holds the training rows, of at most 2²⁶ numbers.
//!
//! What the public code does otherwise: it gives probabilities to a cross-entropy that expects logits, which flattens all
//! losses (two classes: at least 0.31 nats, however sure the predictor is); it has the first feature of each data set
//! named by hand; it draws the sizes of sets from all features, the known ones included, so that many of them add
//! nothing; and it fills in what is known from the neighbour too, as if the case had not been measured
//! (`whole_neighbours` does the same). It takes 20 neighbours and 1,000 sets, or all where they are few.
//!
//! Budgets and what cannot be had take features out of U, one by one: a set that costs more than what is left of a budget
//! may still be the reason to ask for one of its features.

mod config;
mod entry;
#[doc(hidden)]
pub mod kernels;
mod method;
mod plan;
mod policy;
mod rollout;
mod rows;
mod search;
mod sets;
mod trainer;

pub use config::Config;
pub use entry::ENTRY;
pub use method::{Stage, State};
pub use plan::Aaco;
pub use policy::searching;
pub use search::Pick;
pub use trainer::Trainer;

/// The method's name.
pub const NAME: &str = "aaco";

/// AACO's predictor on an engine, step by step.
pub type Stepper = crate::train::Stepper<Aaco>;
