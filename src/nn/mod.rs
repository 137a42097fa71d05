//! Networks as plan pieces.

mod mlp;

pub use mlp::{Layer, Mlp, Net, Operand, Tensors, pitch};
