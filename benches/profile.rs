//! Where the time of a training step goes: kernel by kernel, on each engine, with the arithmetic and the bytes that each
//! needs at least. Every call is timed by itself, in the order of the plan, a lane after the other on one core.
//!
//!     cargo bench --bench profile -- --shapes cube --engines cpu

mod support;

use clap::Parser;
use querent::Engine;
use querent::engine::kernels::Target;
use querent::engine::plan::Call;
use querent::nmppg::{Config, Stepper};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::shapes::{self, SHAPES, Shape};
use support::stats::{short, table};
use support::{EngineName, Outcome, engines, write_json};

/// Where the time of a training step goes.
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench profile --")]
struct Arguments {
    /// Shapes: syn1, diabetes, cube, mnist [default: all]
    #[arg(long, value_delimiter = ',', value_parser = shapes::parse)]
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

/// A kernel's calls in a step.
#[derive(Default)]
struct Part {
    calls: usize,
    flops: f64,
    bytes: f64,
    time: Duration,
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
            let table = report(&parts, arguments.steps);
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

/// By kernel, and by the size of its calls if those are told apart.
type Parts = BTreeMap<(&'static str, Option<u64>), Part>;

fn measure(engine: &Engine, shape: Shape, arguments: &Arguments) -> Outcome<(Parts, usize)> {
    let mut stepper = stepper_of(engine, shape, arguments)?;
    let plan = stepper.program().plan();
    let Some(section) = plan.find_section(&arguments.section) else {
        let names: Vec<&str> = plan.sections().iter().map(|(name, _)| name.as_str()).collect();
        return Err(format!("there is no section `{}`, but {}", arguments.section, names.join(", ")).into());
    };
    let range = section.calls();
    let key = |call: &Call| (call.kernel.name, arguments.sizes.then_some(call.flops));
    let steps = arguments.steps;
    // As a GPU's plan is: one that is cut into lanes for cores has more.
    let dispatches = match engine.device() {
        Some((device, queue)) => {
            let gpu = Engine::on_as(device.clone(), queue.clone(), Target::Gpu);
            let stepper = stepper_of(&gpu, shape, arguments)?;
            stepper.program().plan().dispatches(range.clone())
        }
        None => plan.dispatches(range.clone()),
    };
    let mut parts = Parts::new();
    for call in &stepper.program().plan().calls()[range.clone()] {
        let part = parts.entry(key(call)).or_default();
        part.calls += 1;
        part.flops += call.flops as f64;
        part.bytes += call.bytes as f64;
    }
    if steps == 0 {
        return Ok((parts, dispatches));
    }
    stepper.steps(1);
    stepper.metrics_blocking()?;
    // On one of rayon's threads: to get there takes as long as a small call.
    rayon::scope(|_| {
        let nothing =
            (0..20).map(|_| timed(&mut stepper, range.start..range.start)).min().unwrap_or_default();
        for call in (0..steps).flat_map(|_| range.clone()) {
            let time = timed(&mut stepper, call..call + 1).saturating_sub(nothing);
            parts.entry(key(&stepper.program().plan().calls()[call])).or_default().time += time;
        }
    });
    stepper.metrics_blocking()?;
    Ok((parts, dispatches))
}

fn stepper_of(engine: &Engine, shape: Shape, arguments: &Arguments) -> Outcome<Stepper> {
    if !arguments.default_settings {
        return shape.stepper(engine, arguments.batch, 4096);
    }
    let config = Config { batch: arguments.batch, ..Config::new(0.02) };
    Ok(Stepper::new(engine, &shape.table(4096, 0)?, config)?)
}

/// Runs some calls until they are done.
fn timed(stepper: &mut Stepper, calls: std::ops::Range<usize>) -> Duration {
    let started = Instant::now();
    stepper.program_mut().run(calls, 1);
    if let querent::engine::Program::Gpu(program) = stepper.program() {
        // A device that was lost shows at the end, in the metrics.
        let _ = program.gpu().wait_blocking();
    }
    started.elapsed()
}

/// Prints a table, and returns the same as JSON.
fn report(parts: &Parts, steps: usize) -> Value {
    let total: f64 = parts.values().map(|part| part.time.as_secs_f64()).sum();
    let steps = steps.max(1);
    let sum = |of: fn(&Part) -> f64| parts.values().map(of).sum::<f64>();
    let mut sorted: Vec<_> = parts.iter().collect();
    sorted.sort_by_key(|(_, part)| std::cmp::Reverse(part.time));
    let measured = |value: f64| if total > 0.0 { short(value) } else { "–".into() };
    let line = |name: &str, calls: f64, seconds: f64, flops: f64, bytes: f64| {
        vec![
            name.to_string(),
            short(calls),
            measured(seconds * 1e3),
            measured(100.0 * seconds * steps as f64 / total),
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
            line(&name, part.calls as f64, part.time.as_secs_f64() / steps as f64, part.flops, part.bytes)
        })
        .collect();
    let (calls, flops, bytes) =
        (sum(|part| part.calls as f64), sum(|part| part.flops), sum(|part| part.bytes));
    rows.push(line("all", calls, total / steps as f64, flops, bytes));
    print!("{}", table(&["kernel", "calls", "ms", "%", "MFLOP", "MB", "GFLOP/s", "GB/s"], &rows));
    sorted
        .iter()
        .map(|((name, size), part)| {
            json!({ "kernel": name, "size": size, "calls": part.calls, "seconds": part.time.as_secs_f64() / steps as f64,
                    "flops": part.flops, "bytes": part.bytes })
        })
        .collect()
}
