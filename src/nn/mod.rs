//! Networks as plan pieces.

mod mlp;

pub use mlp::{Layer, LiveRows, Mlp, Net, Operand, Rows, Tensors, pitch};
