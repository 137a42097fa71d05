//! What a training step takes, in time and memory, against the sizes of a problem, one at a time.
//!
//!     cargo bench --bench scaling -- --json assets/pictures/scaling.json --picture assets/pictures/scaling
//!
//! Sizes are measured in turn, round by round, so that what else the machine does hits all of them alike.

mod support;

use clap::Parser;
use querent::Engine;
use querent::measure::Shape;
use querent::nmppg::Stepper;
use querent::report;
use serde_json::json;
use std::path::PathBuf;
use support::contest::{self, Contender};
use support::stats::{short, table};
use support::{Machine, Outcome, write_json};

/// Time and memory of a training step against d, k, h, B and n.
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench scaling --")]
struct Arguments {
    /// On the GPU engine, not on the CPU's.
    #[arg(long)]
    gpu: bool,
    /// Rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of a measurement; at least one step is done.
    #[arg(long, default_value_t = 0.2)]
    seconds: f64,
    /// Writes the results to a file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draws the results, as an SVG and a PNG file of this name without an ending.
    #[arg(long)]
    picture: Option<PathBuf>,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The sizes a step is made of.
#[derive(Clone, Copy)]
struct Sizes {
    d: usize,
    k: usize,
    hidden: usize,
    batch: usize,
    rows: usize,
}

/// What stays where another size is varied.
const BASE: Sizes = Sizes { d: 64, k: 16, hidden: 128, batch: 256, rows: 4096 };

/// A size's name, its values, and how it is set.
type Axis = (&'static str, &'static [usize], fn(&mut Sizes, usize));

const AXES: [Axis; 5] = [
    ("features d", &[16, 32, 64, 128, 256, 512, 1024], |sizes, d| sizes.d = d),
    ("horizon k", &[1, 2, 4, 8, 16, 32, 64], |sizes, k| sizes.k = k),
    ("hidden width h", &[32, 64, 128, 256, 512], |sizes, hidden| sizes.hidden = hidden),
    ("batch B", &[32, 64, 128, 256, 512, 1024, 2048], |sizes, batch| sizes.batch = batch),
    ("rows n", &[2048, 8192, 32_768, 131_072], |sizes, rows| sizes.rows = rows),
];

const MEASURES: [&str; 2] = ["milliseconds a step", "MiB"];

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let engine = if arguments.gpu { Engine::gpu_blocking()? } else { Engine::cpu() };
    println!(
        "{engine}; otherwise d {}, k {}, h {}, B {}, n {}",
        BASE.d, BASE.k, BASE.hidden, BASE.batch, BASE.rows
    );
    let mut machine = Machine::new();
    let mut sweeps = Vec::new();
    for (name, values, set) in AXES {
        let mut contenders = Vec::new();
        let mut memory = Vec::new();
        for &value in values {
            let mut sizes = BASE;
            set(&mut sizes, value);
            let (contender, bytes) = prepare(&engine, sizes, value)?;
            contenders.push(contender);
            memory.push(bytes as f64 / f64::from(1 << 20));
        }
        contest::run(&mut contenders, &mut machine, arguments.rounds, arguments.seconds)?;
        let points: Vec<(f64, Vec<f64>)> = contenders
            .iter()
            .zip(values)
            .zip(memory)
            .map(|((contender, &value), memory)| {
                (value as f64, vec![1e3 / contender.median().unwrap_or(f64::NAN), memory])
            })
            .collect();
        let rows: Vec<Vec<String>> = points
            .iter()
            .map(|(value, made)| vec![value.to_string(), short(made[0]), short(made[1])])
            .collect();
        println!("\n{}", table(&[name, MEASURES[0], MEASURES[1]], &rows));
        sweeps.push(report::Sweep { name: name.into(), points });
    }
    if let Some(path) = &arguments.json {
        let all: Vec<_> =
            sweeps.iter().map(|sweep| json!({ "size": sweep.name, "points": sweep.points })).collect();
        let base = json!({ "d": BASE.d, "k": BASE.k, "h": BASE.hidden, "B": BASE.batch, "n": BASE.rows });
        write_json(
            path,
            &json!({ "engine": engine.to_string(), "otherwise": base, "rounds": arguments.rounds,
                                  "measures": MEASURES, "sweeps": all }),
        )?;
    }
    if let Some(path) = &arguments.picture {
        let title = format!(
            "A training step against its sizes; otherwise d {}, k {}, h {}, B {}, n {}",
            BASE.d, BASE.k, BASE.hidden, BASE.batch, BASE.rows
        );
        report::save(&report::scaling(&title, &MEASURES, &sweeps), path)?;
    }
    Ok(())
}

/// Steps of some sizes, and the bytes they take: data, weights and moments, tapes and gradients.
fn prepare(engine: &Engine, sizes: Sizes, value: usize) -> Outcome<(Contender<'static>, u64)> {
    let Sizes { d, k, hidden, batch, rows } = sizes;
    let shape = Shape { name: "scaling", d, columns: d, k, classes: 4, hidden };
    let data = shape.table(rows.max(batch), 0)?;
    let memory = Stepper::memory(engine, &data, &shape.config(batch))?;
    let mut stepper = shape.stepper(engine, batch, rows)?;
    let contender = Contender::ours(value.to_string(), move |steps| {
        stepper.steps(steps);
        stepper.means_blocking()?;
        Ok(())
    })?;
    Ok((contender, memory.state + memory.working))
}
