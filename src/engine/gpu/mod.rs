//! The GPU engine: turns a plan into buffers, pipelines and bind groups once, then encodes ranges
//! of it into any command encoder, its own or a host's.

mod cache;
mod context;
mod fuse;
mod hardware;
mod program;
mod readback;
mod slice;
mod submitted;
mod times;

pub use context::{Adapter, Gpu, adapters};
pub use fuse::fused_sources;
pub use program::GpuProgram;
pub(crate) use program::{buffer_bytes, check_grid, check_limits};
pub use readback::Readback;
pub(crate) use slice::{Arrival, Fate, PAYLOAD, RETURN, Recording, Slice, Slices};
pub use times::Submitted;
