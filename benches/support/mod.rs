//! What the benchmarks share: peers as child processes, the machine's peak, and tables. The shapes that are measured are
//! the library's (`querent::measure`), as `querent info --measure` has them too.
#![allow(dead_code)] // each benchmark uses its part

pub mod contest;
pub mod machine;
pub mod methods;
pub mod peers;
pub mod stats;

pub use machine::Machine;
use querent::Engine;

/// What goes wrong in a benchmark is told and ends it.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// An engine, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineName {
    Cpu,
    Gpu,
}

/// The engines asked for; where none are, those there are.
pub fn engines(asked: &[EngineName]) -> Outcome<Vec<(&'static str, Engine)>> {
    let mut engines = Vec::new();
    if asked.is_empty() || asked.contains(&EngineName::Cpu) {
        engines.push(("cpu", Engine::cpu()));
    }
    match Engine::gpu_blocking() {
        Ok(engine) if asked.is_empty() || asked.contains(&EngineName::Gpu) => engines.push(("gpu", engine)),
        Err(error) if asked.contains(&EngineName::Gpu) => return Err(error.into()),
        _ => {}
    }
    Ok(engines)
}

/// Writes the results as JSON.
pub fn write_json(path: &std::path::Path, value: &serde_json::Value) -> Outcome<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    Ok(querent::files::write_atomically(path, text.as_bytes())?)
}
