//! The one error type of the crate.

use std::path::PathBuf;

/// What another library or the system said.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Everything that can go wrong, each with what was wrong, where, and what to do about it.
///
/// A host that wants to react looks at [`Error::kind`]. The message is whole: what a
/// [source](std::error::Error::source) says is in it already, so the source is there to be looked at, not to be shown.
///
/// ```
/// use querent::{ErrorKind, Model};
///
/// match Model::load("no such file") {
///     Ok(model) => println!("{} features", model.problem().features().len()),
///     Err(error) if error.kind() == ErrorKind::File => println!("choose another file: {error}"),
///     Err(error) => panic!("{error}"),
/// }
/// ```
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
    /// An adapter gave no device.
    #[error("gpu: {adapter}: {source}")]
    NoDevice {
        /// The adapter's name.
        adapter: String,
        /// wgpu's error.
        source: wgpu::RequestDeviceError,
    },
    /// The device has no memory left.
    #[error("gpu: {what}: {source}")]
    OutOfMemory {
        /// What there was no memory for.
        what: String,
        /// The [`wgpu::Error`]; in a browser, its words.
        source: Cause,
    },
    /// The process gets no more memory from the system.
    #[error(
        "there is no memory for {what} ({needed} bytes): take fewer rows or smaller networks, or let the process have more"
    )]
    HostMemory {
        /// What there was no memory for.
        what: String,
        /// Bytes that were asked for.
        needed: u64,
    },
    /// The device refused something.
    #[error("gpu: {what}: {source}")]
    Validation {
        /// What it refused.
        what: String,
        /// The [`wgpu::Error`] or [`wgpu::MapRangeError`]; in a browser, its words.
        source: Cause,
    },
    /// The device's driver failed.
    #[error("gpu: {what}: {source}")]
    Driver {
        /// What it failed at.
        what: String,
        /// The [`wgpu::Error`]; in a browser, its words.
        source: Cause,
    },
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
        /// What its content is about: a table, a problem, or anything else.
        kind: ErrorKind,
        /// What was wrong with it.
        what: String,
        /// What a parser said, if it was one that complained.
        source: Option<Cause>,
    },
    /// Text or bytes, from wherever, are not what they should be.
    #[error("{what}")]
    Content {
        /// What it is about: a table, a problem, or anything else.
        kind: ErrorKind,
        /// What was wrong with it.
        what: String,
        /// What a parser said, if it was one that complained.
        source: Option<Cause>,
    },
    /// A mistake in this library, not in what it was given.
    #[error("a mistake in querent itself, please report it: {0}")]
    Internal(String),
}

/// What sort of thing went wrong, for a host that reacts to it: [`Error::kind`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The device, or the process, has no memory left. Less of everything may fit, or the same later.
    OutOfMemory,
    /// The device was lost. The run continues on another one from its last checkpoint.
    DeviceLost,
    /// The device refused something, such as a buffer above its limits. The same again is refused again; a device
    /// that was asked for with other limits may take it.
    Validation,
    /// The device's driver failed at something that should have worked.
    Driver,
    /// There is no adapter, or none that gives a device. The CPU engine needs none.
    NoAdapter,
    /// A file cannot be read or written, or is not what it should be.
    File,
    /// A table, or a value that was measured, cannot be used.
    Data,
    /// The description of features, costs and classes contradicts itself.
    Problem,
    /// A setting is out of range, does not fit the problem, or asks for what the engine cannot do.
    Setting,
    /// A gradient stopped being a finite number.
    NonFinite,
    /// A host's frames did not run as they were recorded, or not yet.
    Recorded,
    /// A mistake in this library.
    Internal,
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What sort of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Problem(_) => ErrorKind::Problem,
            Error::Data(_) => ErrorKind::Data,
            // The memory budget is a setting: the machine may have more.
            Error::Config(_) | Error::Memory { .. } => ErrorKind::Setting,
            Error::NoAdapter(_) | Error::NoDevice { .. } => ErrorKind::NoAdapter,
            Error::OutOfMemory { .. } | Error::HostMemory { .. } => ErrorKind::OutOfMemory,
            // WebGPU calls a buffer above the limits so, too; we only ask before it does.
            Error::Validation { .. } | Error::Limit { .. } => ErrorKind::Validation,
            Error::Driver { .. } => ErrorKind::Driver,
            Error::NonFinite { .. } => ErrorKind::NonFinite,
            Error::DeviceLost(_) => ErrorKind::DeviceLost,
            Error::Recorded(_) => ErrorKind::Recorded,
            Error::Io { .. } => ErrorKind::File,
            Error::File { kind, .. } | Error::Content { kind, .. } => *kind,
            Error::Internal(_) => ErrorKind::Internal,
        }
    }

    /// The message without the word for its kind in front, to be said in a place that tells what it is about.
    pub fn message(&self) -> String {
        match self {
            Error::Problem(what) | Error::Data(what) | Error::Config(what) => what.clone(),
            other => other.to_string(),
        }
    }

    /// Wraps a system error with the path it is about.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Error::Io { path: path.into(), source }
    }

    /// A complaint about a file's content.
    pub fn file(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Error::content(ErrorKind::File, what).at(path)
    }

    /// A complaint about a file's content that is a table.
    #[cfg(feature = "table")]
    pub(crate) fn table(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Error::content(ErrorKind::Data, what).at(path)
    }

    /// A complaint about text or bytes.
    pub(crate) fn content(kind: ErrorKind, what: impl Into<String>) -> Self {
        Error::Content { kind, what: what.into(), source: None }
    }

    /// What a device has against something, or has no memory for.
    pub(crate) fn gpu(what: impl Into<String>, error: wgpu::Error) -> Self {
        let what = what.into();
        match error {
            wgpu::Error::OutOfMemory { .. } => Error::OutOfMemory { what, source: cause(error) },
            wgpu::Error::Validation { .. } => Error::Validation { what, source: cause(error) },
            wgpu::Error::Internal { .. } => Error::Driver { what, source: cause(error) },
        }
    }

    /// A complaint about content, as one about that of a file. Other errors stay as they are.
    pub(crate) fn at(self, path: impl Into<PathBuf>) -> Self {
        let (path, kind) = (path.into(), self.kind());
        match self {
            Error::Problem(what) | Error::Data(what) | Error::Config(what) => {
                Error::File { path, kind, what, source: None }
            }
            Error::Content { what, source, .. } => Error::File { path, kind, what, source },
            other => other,
        }
    }

    /// A complaint about content, with what a parser said. Other errors stay as they are.
    pub fn because(mut self, error: impl Into<Cause>) -> Self {
        if let Error::File { source, .. } | Error::Content { source, .. } = &mut self {
            *source = Some(error.into());
        }
        self
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn cause(error: wgpu::Error) -> Cause {
    error.into()
}

/// In a browser, what wgpu's error holds cannot go to other threads: its words can.
#[cfg(target_arch = "wasm32")]
fn cause(error: wgpu::Error) -> Cause {
    error.to_string().into()
}
