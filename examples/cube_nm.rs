//! Cube-NM: cheap context questions tell which block of ten entries shows the label.
//!
//! `cargo run --release --example cube_nm` trains, shows what was learned, and leaves the model and the
//! pictures in `runs/cube_nm`. `--help` lists the flags.

mod common;

use clap::Parser;
use common::{Flags, Task};
use querent::data::{Dataset, synthetic};
use querent::policy::evaluate::Traces;

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Standard deviation of the noise.
    #[arg(long, default_value_t = 0.1)]
    sigma: f64,
    /// How many contexts, and blocks.
    #[arg(long, default_value_t = 5)]
    contexts: usize,
}

/// The share of block acquisitions that are in the active block, among those made when the context was
/// known: its indicator was seen, or all the others were.
fn in_the_active_block(contexts: usize, raw: &Dataset, traces: &Traces) -> f64 {
    let columns = raw.problem().columns();
    let (mut inside, mut all) = (0.0, 0.0);
    for instance in 0..traces.len() {
        let x = &raw.splits()[2].x[instance * columns..][..columns];
        let active = x[..contexts].iter().position(|&v| v == 1.0).unwrap_or(0);
        let (mut others, mut found) = (0, contexts == 1);
        for &action in traces.path_of(instance) {
            let action = action as usize;
            if action < contexts {
                others += usize::from(action != active);
                found |= action == active || others + 1 == contexts;
            } else if action < traces.features && found {
                all += 1.0;
                inside += f64::from(u8::from((action - contexts) / 10 == active));
            }
        }
    }
    if all > 0.0 { inside / all } else { 0.0 }
}

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    let (contexts, sigma) = (args.contexts, args.sigma);
    let task = Task {
        name: "cube_nm",
        title: format!("Cube-NM, σ = {sigma}"),
        make: Box::new(move |seed, sizes| synthetic::cube_nm(seed, sizes, contexts, sigma)),
        sizes: [7_000, 1_500],
        contexts: (0..contexts.min(3))
            .map(|r| {
                (
                    format!("context {}", r + 1),
                    Box::new(move |x: &[f32]| x[r] == 1.0) as Box<dyn Fn(&[f32]) -> bool>,
                )
            })
            .collect(),
        first: 0..contexts,
        extra: Box::new(move |raw, traces| {
            vec![("in_active_block_share", in_the_active_block(contexts, raw, traces))]
        }),
    };
    common::main(&task, &args.flags)
}
