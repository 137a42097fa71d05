//! Networks as plan pieces: where their weights lie, their layers forward and backward, and how they are updated.

mod flow;
mod lateral;
mod layer;
mod masked;
mod normed;
mod optim;
mod stack;
mod tape;

pub use flow::{Flow, FlowRows, FlowTape, Moves, POINTS};
pub use lateral::Lateral;
pub use layer::{Layer, Tensors, pitch};
pub use masked::{Dense, Inputs, Masked};
pub use normed::{NormedLayer, NormedNetwork, NormedStack, NormedTape};
pub use optim::{Optimizer, Weights};
pub(crate) use stack::Rows;
pub use stack::{Network, Stack};
pub use tape::{Operand, Tape};

/// The kernels' parameters are u32.
pub(crate) fn word(value: usize) -> u32 {
    debug_assert!(u32::try_from(value).is_ok(), "{value} does not fit a kernel parameter");
    value as u32
}
