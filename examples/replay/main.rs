//! One training step from a file: the parity door for ports and for us.
//!
//! `cargo run --release --example replay -- CASE.safetensors OUT.safetensors --engine cpu`
//!
//! The case holds the batch, noise and weights of a step, the output its objective, path and
//! gradients; `assets/golden/README.md` describes both.

mod step;

use clap::{Parser, ValueEnum};
use querent::Engine;
use std::path::PathBuf;
use std::process::ExitCode;
use step::Case;

/// Replay one training step from a file.
#[derive(Parser)]
struct Args {
    /// The step to replay.
    case: PathBuf,
    /// Where the result goes. Not written if anything is wrong.
    out: PathBuf,
    /// Which engine.
    #[arg(long, value_enum, default_value = "cpu")]
    engine: Which,
    /// Precision; f64 on the CPU only.
    #[arg(long, value_enum, default_value = "f32")]
    precision: Precision,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Which {
    Cpu,
    Gpu,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Precision {
    F32,
    F64,
}

fn run(args: &Args) -> querent::Result<()> {
    let engine = match (args.engine, args.precision) {
        (Which::Cpu, Precision::F32) => Engine::cpu(),
        (Which::Cpu, Precision::F64) => Engine::cpu_f64(),
        (Which::Gpu, Precision::F32) => Engine::gpu_blocking()?,
        (Which::Gpu, Precision::F64) => {
            return Err(querent::Error::Config("f64 is for the CPU engine: WGSL has no f64".into()));
        }
    };
    let outcome = Case::load(&args.case)?.run_blocking(&engine)?;
    outcome.save(&args.out)?;
    println!("{engine}: J {:.7}, L_pred {:.7}", outcome.objective, outcome.prediction_loss);
    Ok(())
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
