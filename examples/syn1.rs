//! Syn1 from start to end: eleven questions, of which the last decides which others matter.
//!
//! `cargo run --release --example syn1` trains, shows what was learned, and leaves the model and the
//! pictures in `runs/syn1`. `--help` lists the flags.

mod common;

use clap::Parser;
use querent::data::synthetic;

fn main() -> std::process::ExitCode {
    common::main(&common::syn("syn1", "Syn1", synthetic::syn1), &common::Flags::parse())
}
