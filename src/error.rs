//! The one error type of the crate.

use std::path::PathBuf;

/// Everything that can go wrong, each with what was wrong, where, and what to do about it.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The description of features, groups, costs or classes contradicts itself.
    #[error("problem: {0}")]
    Problem(String),
    /// A table does not fit its problem, or holds values that cannot be used.
    #[error("data: {0}")]
    Data(String),
    /// A setting is out of range or does not fit the problem.
    #[error("configuration: {0}")]
    Config(String),
    /// No adapter could be had for the GPU engine.
    #[error("no GPU adapter: {0}")]
    NoAdapter(String),
    /// The device refused something: the message is wgpu's own.
    #[error("gpu: {0}")]
    Gpu(String),
    /// A buffer is larger than the device's limits allow.
    #[error(
        "buffer `{buffer}` needs {needed} bytes, but the device allows {limit} ({name}); \
         request the device with `Engine::required_limits`, or use a smaller batch or table"
    )]
    Limit {
        /// The plan's name for the buffer.
        buffer: String,
        /// The limit's name in `wgpu::Limits`.
        name: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The smallest possible micro-batch does not fit into the memory budget.
    #[error(
        "a micro-batch of one instance needs {needed} bytes, the memory budget is {budget}; \
         raise the budget or make the networks or the horizon smaller"
    )]
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        budget: u64,
    },
    /// A loss or gradient stopped being a finite number.
    #[error(
        "training step {step}: a gradient is not a finite number; the best checkpoint is kept; \
         try a smaller learning rate"
    )]
    NonFinite {
        /// The first training step in which it happened.
        step: u32,
    },
    /// The device was lost.
    #[error("the GPU device was lost: {0}")]
    DeviceLost(String),
    /// A host's frames did not run as they were recorded, or not yet.
    #[error("recorded training: {0}")]
    Recorded(String),
    /// A file could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file's content is not what it should be.
    #[error("{path}: {what}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        what: String,
    },
    /// A plan was built wrongly: a mistake in a method's code, not in its input.
    #[error("plan: {0}")]
    Plan(String),
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps a system error with the path it is about.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Error::Io { path: path.into(), source }
    }

    /// A complaint about a file's content.
    pub fn file(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Error::File { path: path.into(), what: what.into() }
    }
}
