//! The parts of a host application that trains in the frames it draws anyway; `embed.rs` is its command line.

pub mod host;
pub mod offscreen;
pub mod scene;
pub mod text;
pub mod window;
