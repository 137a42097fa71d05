//! Querent learns which measurement to ask for next, and when to stop asking.
//!
//! Features cost something: a lab test, a sensor, a question. From a fully observed table Querent
//! trains a policy that acquires them one at a time and a predictor that answers from what was seen.
//! The default method is [NM-PPG](methods::nmppg), others are [GDFS](methods::gdfs), [DiFA](methods::difa),
//! [DIME](methods::dime), [SEFA](methods::sefa), [OL](methods::ol), [GSMRL](methods::gsmrl) and
//! [AACO](methods::aaco), and [a fixed list](methods::fixed) is what all have to beat; the compute is WGSL through wgpu,
//! with a native engine where there is no adapter.
//!
//! ```
//! use querent::{Engine, Step, data::synthetic, methods::nmppg::{Config, Trainer}};
//!
//! # fn main() -> querent::Result<()> {
//! let engine = Engine::cpu(); // or Engine::auto_blocking()?, Engine::gpu_blocking()?, Engine::on(device, queue)
//! let data = synthetic::syn1(0, [2_000, 500, 500])?.standardized();
//! // So short a run learns nothing yet: it only shows the way.
//! let config = Config::new(0.02).with(|c| {
//!     let s = &mut c.schedule;
//!     (s.warm_up_epochs, s.stage_epochs, s.epoch_steps) = (1, 1, 1);
//! });
//! let mut trainer = Trainer::new(&engine, &data, config)?;
//! while let Some(epoch) = trainer.epoch_blocking()? {
//!     println!("{:?}: objective {:.3}", epoch.phase, epoch.validation.objective);
//! }
//! let model = trainer.finish_blocking()?; // model.save("syn1.safetensors")?
//!
//! let mut session = model.session();
//! while let Step::Acquire(feature) = session.next() {
//!     session.observe(feature, 0.3)?; // measured, in the table's units
//! }
//! println!("{}: {:?}", session.label(), session.predict());
//! # Ok(())
//! # }
//! ```
//!
//! # Inside another wgpu application
//!
//! An application that has a device already lends it: [`Engine::on`]. [`methods::nmppg::Trainer::encode`] records a
//! slice of the training into the application's own encoder, [`methods::nmppg::Trainer::try_progress`] looks how far
//! it is and never waits, and [`methods::nmppg::Trainer::buffers`] are there to be drawn. Only functions named
//! `*_blocking` wait for a device or poll it; no callback of the device is set. This is a whole host,
//! `examples/embed_min.rs`:
//!
#![doc = concat!("```no_run\n", include_str!("../examples/embed_min.rs"), "```")]
//!
//! # Features
//!
//! An application takes the library with `default-features = false` and adds what it needs.
//!
//! | feature | in the default set | what it adds |
//! |---|---|---|
//! | `table` | yes, through `cli` | tables from files, `problem.toml` and the catalog: `data::table`, `data::catalog` |
//! | `pictures` | yes, through `report` | pictures of runs as SVG, and the page of a run: `report` |
//! | `report` | yes | the same, and PNG |
//! | `web` | yes | training in a browser: WebGPU, and a clock; a page that only asks does without |
//! | `page` | yes, through `cli` | a model as one HTML file that asks; nothing that these pages show |
//! | `cli` | yes | the `querent` command; nothing in the library |
//!
//! # Errors
//!
//! Whatever goes wrong is an [`Error`]; [`Error::kind`] is there to be matched on.
//!
//! # What is not promised
//!
//! Modules that these pages do not show (kernels, plans, networks, random numbers, run folders, comparisons, what the ways
//! of asking share) are public for the project's own command, tests and benchmarks, and change without notice.
#![deny(missing_docs)]
// Each says why it is sound.
#![deny(clippy::undocumented_unsafe_blocks)]
// What goes wrong is an error; only tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

#[doc(hidden)]
pub mod asking;
#[doc(hidden)]
pub mod compare;
pub mod data;
#[doc(hidden)]
pub mod digest;
pub mod engine;
mod error;
#[doc(hidden)]
pub mod files;
// A browser waits for nothing.
#[cfg(not(target_arch = "wasm32"))]
pub mod measure;
mod memory;
pub mod methods;
#[doc(hidden)]
pub mod nn;
pub mod policy;
mod problem;
#[doc(hidden)]
pub mod random;
#[cfg(feature = "pictures")]
pub mod report;
#[doc(hidden)]
pub mod run;
pub mod train;

pub use data::encoding::Encoding;
pub use engine::{Budget, Engine};
pub use error::{Error, ErrorKind, Result};
// Methods are in `methods`; this one was here before there were others, and keeps its old path too.
#[doc(no_inline)]
pub use methods::nmppg;
pub use policy::{Answer, Event, Model, Prediction, Question, Session, Step, Values};
pub use problem::{Feature, Problem};
pub use wgpu;
