//! What the benchmarks share: shapes, peers as child processes, the machine's peak, and tables.
#![allow(dead_code)] // each benchmark uses its part

pub mod contest;
pub mod machine;
pub mod peers;
pub mod shapes;
pub mod stats;

pub use machine::Machine;

/// What goes wrong in a benchmark is told and ends it.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Writes the results as JSON.
pub fn write_json(path: &std::path::Path, value: &serde_json::Value) -> Outcome<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    Ok(querent::files::write_atomically(path, text.as_bytes())?)
}
