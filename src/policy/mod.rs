//! What a trained thing is: the model and its file, a session that asks, and what it does on many rows.

pub mod evaluate;
pub mod history;
mod model;
mod session;

pub use model::Model;
pub use session::{Answer, Event, Question, Session, Step, Values};
