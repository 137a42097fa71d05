//! Where the time of a training step goes: kernel by kernel, on each engine, with the arithmetic and the bytes that each
//! needs at least. Every call is timed by itself, in the order of the plan, a lane after the other on one core.
//!
//!     cargo bench --bench profile -- --shapes cube --engines cpu

mod support;

use clap::Parser;
use querent::Engine;
use querent::engine::kernels::Target;
use querent::measure::kernels::{Enough, Part, Parts, counted, timed_blocking};
use querent::measure::{SHAPES, Shape};
use querent::nmppg::{Config, Stepper};
use serde_json::{Value, json};
use std::path::PathBuf;
use support::stats::{short, table};
use support::{EngineName, Outcome, engines, write_json};

/// Where the time of a training step goes.
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench profile --")]
struct Arguments {
    /// Shapes: syn1, diabetes, cube, mnist [default: all]
    #[arg(long, value_delimiter = ',')]
    shapes: Vec<Shape>,
    /// Instances of a step.
    #[arg(long, default_value_t = 128)]
    batch: usize,
    /// Engines [default: cpu, and gpu if there is an adapter]
    #[arg(long, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// Steps that are measured, after one that is not; 0: only counts what a step needs.
    #[arg(long, default_value_t = 5)]
    steps: usize,
    /// The default settings instead of the published ones.
    #[arg(long)]
    default_settings: bool,
    /// The part of the plan that is measured, such as `warm_up`, `step.reinforce` or `evaluate.1`.
    #[arg(long, default_value = "step")]
    section: String,
    /// Calls of one kernel that need different amounts of arithmetic in lines of their own.
    #[arg(long)]
    sizes: bool,
    /// Writes the results to a file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let shapes = if arguments.shapes.is_empty() { SHAPES.to_vec() } else { arguments.shapes.clone() };
    let mut results = Vec::new();
    for (name, engine) in engines(&arguments.engines)? {
        println!("{name}: {engine}");
        for &shape in &shapes {
            println!("\n{} on {name}, batch {}", shape.name, arguments.batch);
            let (parts, dispatches) = measure(&engine, shape, &arguments)?;
            let table = report(&parts);
            println!("{dispatches} dispatches on a GPU, where several calls are one");
            results.push(json!({ "shape": shape.to_json(), "engine": name, "batch": arguments.batch,
                                 "dispatches": dispatches, "parts": table }));
        }
    }
    match &arguments.json {
        Some(path) => write_json(path, &json!({ "steps": arguments.steps, "profiles": results })),
        None => Ok(()),
    }
}

fn measure(engine: &Engine, shape: Shape, arguments: &Arguments) -> Outcome<(Parts, usize)> {
    let mut stepper = stepper_of(engine, shape, arguments)?;
    let plan = stepper.program().plan();
    let Some(section) = plan.find_section(&arguments.section) else {
        let names: Vec<&str> = plan.sections().iter().map(|(name, _)| name.as_str()).collect();
        return Err(format!("there is no section `{}`, but {}", arguments.section, names.join(", ")).into());
    };
    let range = section.calls();
    // As a GPU's plan is: one that is cut into lanes for cores has more.
    let dispatches = match engine.device() {
        Some((device, queue)) => {
            let gpu = Engine::on_as(device.clone(), queue.clone(), Target::Gpu);
            let stepper = stepper_of(&gpu, shape, arguments)?;
            stepper.program().plan().dispatches(range.clone())
        }
        None => plan.dispatches(range.clone()),
    };
    if arguments.steps == 0 {
        return Ok((counted(plan, range, arguments.sizes), dispatches));
    }
    stepper.steps(1);
    stepper.means_blocking()?;
    let enough = Enough { rounds: arguments.steps, seconds: 0.0 };
    let (parts, _) = timed_blocking(stepper.program_mut(), range, arguments.sizes, enough)?;
    stepper.means_blocking()?;
    Ok((parts, dispatches))
}

fn stepper_of(engine: &Engine, shape: Shape, arguments: &Arguments) -> Outcome<Stepper> {
    if !arguments.default_settings {
        return Ok(shape.stepper(engine, arguments.batch, 4096)?);
    }
    let config = Config { batch: arguments.batch, ..Config::new(0.02) };
    Ok(Stepper::new(engine, &shape.table(4096, 0)?, config)?)
}

/// Prints a table, and returns the same as JSON.
fn report(parts: &Parts) -> Value {
    let total: f64 = parts.values().map(|part| part.seconds).sum();
    let sum = |of: fn(&Part) -> f64| parts.values().map(of).sum::<f64>();
    let mut sorted: Vec<_> = parts.iter().collect();
    sorted.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
    let measured = |value: f64| if total > 0.0 { short(value) } else { "–".into() };
    let line = |name: &str, calls: f64, seconds: f64, flops: f64, bytes: f64| {
        vec![
            name.to_string(),
            short(calls),
            measured(seconds * 1e3),
            measured(100.0 * seconds / total),
            short(flops / 1e6),
            short(bytes / 1e6),
            measured(flops / seconds / 1e9),
            measured(bytes / seconds / 1e9),
        ]
    };
    let mut rows: Vec<Vec<String>> = sorted
        .iter()
        .map(|((name, size), part)| {
            let name =
                size.map_or(name.to_string(), |size| format!("{name}, {} MFLOP", short(size as f64 / 1e6)));
            line(&name, part.calls as f64, part.seconds, part.flops, part.bytes)
        })
        .collect();
    let (calls, flops, bytes) =
        (sum(|part| part.calls as f64), sum(|part| part.flops), sum(|part| part.bytes));
    rows.push(line("all", calls, total, flops, bytes));
    print!("{}", table(&["kernel", "calls", "ms", "%", "MFLOP", "MB", "GFLOP/s", "GB/s"], &rows));
    sorted
        .iter()
        .map(|((name, size), part)| {
            json!({ "kernel": name, "size": size, "calls": part.calls, "seconds": part.seconds,
                    "flops": part.flops, "bytes": part.bytes })
        })
        .collect()
}
