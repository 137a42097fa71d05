//! Querent learns which measurement to ask for next, and when to stop asking.
//!
//! Features cost something: a lab test, a sensor, a question. From a fully observed table Querent
//! trains a policy that acquires them one at a time and a predictor that answers from what was seen.
//! The method is [NM-PPG](methods::nmppg); the compute is WGSL through wgpu, with a native engine
//! where there is no adapter.
//!
//! ```
//! use querent::{Engine, data::synthetic, nmppg::{Config, Stage, Stepper, Which}};
//!
//! # fn main() -> querent::Result<()> {
//! let engine = Engine::cpu(); // or Engine::auto()?, Engine::gpu()?, Engine::on(device, queue)
//! let data = synthetic::syn1(0, [2_000, 500, 500])?;
//! let mut trainer = Stepper::new(&engine, &data, Config::new(0.02))?;
//! trainer.warm_up(50);
//! trainer.set_stage(Stage { tau_soft: 0.5, lambda: 0.01, ..Stage::default() })?;
//! trainer.steps(5);
//! println!("{:?}", trainer.metrics_blocking()?);
//! println!("{:?}", trainer.evaluate_blocking(Which::Validation)?);
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]

pub mod data;
pub mod engine;
mod error;
pub mod evaluate;
pub mod files;
pub mod history;
pub mod methods;
mod model;
pub mod nn;
mod problem;
#[cfg(feature = "report")]
pub mod report;
mod session;

pub use engine::Engine;
pub use error::{Error, Result};
pub use methods::nmppg;
pub use model::Model;
pub use problem::{Feature, Problem};
pub use session::{Answer, Event, Question, Session, Step, Values};
pub use wgpu;
