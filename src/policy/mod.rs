//! What a trained thing is: a policy, the model around it and its file, a session that asks, and what it does on many
//! rows.

pub(crate) mod belief;
mod curve;
pub mod evaluate;
mod file;
pub mod history;
mod model;
mod networks;
mod perceptron;
#[allow(clippy::module_inception)] // the trait is what the folder is about
mod policy;
mod predict;
mod session;
mod steps_table;
mod traces;
pub mod tradeoff;
pub mod uncertainty;
mod why;

pub use curve::{Choices, CurvePoint, mean_score, most_points};
pub use file::Stored;
pub(crate) use model::storable;
pub use model::{Model, Trained};
pub use networks::{Networks, Stop};
pub(crate) use perceptron::Activations;
pub use perceptron::Perceptron;
pub use policy::{Case, Measure, Policy, Tensor};
pub use predict::{OddCell, Prediction};
pub use session::{Answer, Event, Question, Session, Step, Values};
pub use tradeoff::{AlphaRange, Tradeoffs};
pub use uncertainty::Uncertainty;
pub use why::{Stopping, Wanted, Why};
