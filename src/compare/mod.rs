//! Methods beside each other on the same rows: what one training gives (a cell), the points of a curve that are worth
//! showing, curves over several seeds, and what lies between two of them.

mod cell;
mod context;
mod line;
mod outcome;
mod spread;
mod standing;
pub mod tree;

pub use cell::{Cell, FAILURE, OUTCOME, State, TIMES, Table, check};
pub use context::{Context, contexts};
pub use line::{Line, Place};
pub use outcome::{Curve, Outcome, Paths, PathsOf, Point, Times};
pub use spread::{alphas, representative, thresholds};
pub use standing::{At, Between, EVERYTHING, Method, NOTHING, Standing};
