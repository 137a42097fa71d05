//! What every method that learns in steps shares: batches, the procedure, carrying it out at once or in slices of a
//! host's frames, checkpoints and curves. A method says what its steps are ([`Method`]); everything else is here.

mod advance;
mod batches;
mod carry_out;
mod checkpoint;
mod chunks;
mod curves;
mod differences;
mod draw;
mod dropout;
mod encode;
mod fit;
mod lesson;
mod limits;
mod method;
mod plateau;
mod procedure;
mod replay;
mod resume;
mod sizes;
mod slices;
mod snapshot;
mod span;
mod stepper;
mod trainer;
mod training;

pub use batches::{Batches, Chunk, ChunkRows, MOST_PASSES, Micro};
pub use checkpoint::Checkpoint;
pub use chunks::ByRows;
pub use curves::{Buffers, NetworkView};
pub use differences::differences;
pub use draw::Masks;
pub use dropout::Dropout;
pub use fit::{Memory, Target};
pub use lesson::Lesson;
pub use limits::Shape;
pub use method::{Demand, EpochPlan, Method, Outcome, Settings, Then, Validation};
pub use plateau::Plateau;
pub use replay::{Episodes, Replay};
pub use sizes::{Noise, Sizes, SplitRange};
pub use slices::{Progress, Recorded};
pub use stepper::Stepper;
pub use trainer::Trainer;
pub use training::Training;
