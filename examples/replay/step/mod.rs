//! One training step from a file: the door through which ports, and our own tests, check that a step is exact. A case
//! holds the batch, the noise and the weights, the step's options and Adam's state if it has any; the outcome holds the
//! objective, its parts, the path, every gradient, and what the update makes of the weights. `assets/golden/README.md`
//! describes both files.

mod case;
mod file;
mod outcome;

pub use case::Case;
#[allow(unused_imports)] // the tests look into it, the example only saves it
pub use outcome::Outcome;
