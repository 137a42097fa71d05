//! Syn3: as Syn1, with two formulas of four features each.
//!
//! `cargo run --release --example syn3` trains, shows what was learned, and leaves the model and the
//! pictures in `runs/syn3`. `--help` lists the flags.

mod common;

use clap::Parser;
use querent::data::synthetic;

fn main() -> std::process::ExitCode {
    common::main(&common::syn("syn3", "Syn3", synthetic::syn3), &common::Flags::parse())
}
