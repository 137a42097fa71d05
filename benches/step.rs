//! Training instances a second: the whole step (noise, rollout, both gradients, dropout, both Adam updates),
//! by our engines and by peers, in the published setting.
//!
//!     cargo bench --bench step
//!     cargo bench --bench step -- --shapes syn1,mnist --batches 128 --engines cpu --peers all --json step.json
//!     cargo bench --bench step -- --methods all --shapes syn1,cube
//!
//! With `--methods`, the step of each method with its default settings, instead of the published one of NM-PPG.
//! Peers are measured in turn with ours, round by round; ratios are medians of the rounds' ratios. They need
//! `sh benches/peers/setup.sh` first; docs/benchmarks.md says what they are.

mod support;

use clap::Parser;
use querent::Engine;
use querent::measure::{SHAPES, Shape};
use querent::methods::Entry;
use serde_json::{Value, json};
use std::path::PathBuf;
use support::contest::{self, Contender};
use support::methods::{self, Measured};
use support::peers::{self, Peer, Recipe};
use support::stats::{median, or_dash, short, table};
use support::{EngineName, Machine, Outcome, engines, write_json};

/// Training instances a second, ours and others'.
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench step --")]
struct Arguments {
    /// Shapes: syn1, diabetes, cube, mnist [default: all]
    #[arg(long, value_delimiter = ',')]
    shapes: Vec<Shape>,
    /// Instances of a step.
    #[arg(long, value_delimiter = ',', default_values_t = [128, 1024])]
    batches: Vec<usize>,
    /// Engines [default: cpu, and gpu if there is an adapter]
    #[arg(long, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// Peers to measure in turn with ours: pytorch, compiled, jax, jax-derived, burn-cpu,
    /// burn-wgpu, or all.
    #[arg(long, value_delimiter = ',', num_args = 0..=1, default_missing_value = "all",
          value_parser = peers::parse)]
    peers: Vec<Vec<Recipe>>,
    /// Methods whose steps are measured, each with its default settings, in place of the
    /// published step of NM-PPG: their names, or all
    #[arg(long, value_delimiter = ',', value_parser = methods::parse, conflicts_with_all = ["peers", "batches"])]
    methods: Vec<Vec<&'static Entry>>,
    /// Rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of a measurement; at least one step is done.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Rows of the table that is trained on.
    #[arg(long, default_value_t = 4096)]
    rows: usize,
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
    let engines = engines(&arguments.engines)?;
    let mut started = Vec::new();
    for recipe in arguments.peers.iter().flatten() {
        started.push(Peer::start(*recipe)?);
    }
    for (name, engine) in &engines {
        println!("{name}: {engine}");
    }
    let mut machine = Machine::new();
    let mut results = Vec::new();
    let asked: Vec<&Entry> = arguments.methods.iter().flatten().copied().collect();
    for shape in shapes {
        if !asked.is_empty() {
            let how = Measured { rounds: arguments.rounds, seconds: arguments.seconds, rows: arguments.rows };
            for engine in &engines {
                results.push(methods::measure(&asked, shape, engine, &mut machine, how)?);
            }
            continue;
        }
        for &batch in &arguments.batches {
            let case = Case { shape, batch };
            results.push(case.measure(&engines, &mut started, &mut machine, &arguments)?);
        }
    }
    println!("{}", machine.describe());
    if let Some(path) = &arguments.json {
        let engines: Vec<String> = engines.iter().map(|(_, engine)| engine.to_string()).collect();
        let peak = machine.peak();
        let all = json!({ "engines": engines, "sgemm_gflops": peak, "rounds": arguments.rounds,
                          "seconds": arguments.seconds, "cases": results });
        write_json(path, &all)?;
    }
    Ok(())
}

/// A shape at a batch size.
#[derive(Clone, Copy)]
struct Case {
    shape: Shape,
    batch: usize,
}

impl Case {
    fn measure(
        self,
        engines: &[(&'static str, Engine)],
        started: &mut [Peer],
        machine: &mut Machine,
        arguments: &Arguments,
    ) -> Outcome<Value> {
        let Case { shape, batch } = self;
        println!(
            "\n{} (d {}, columns {}, k {}, C {}, h {}), batch {batch}",
            shape.name, shape.d, shape.columns, shape.k, shape.classes, shape.hidden
        );
        let mut contenders = Vec::new();
        for (name, engine) in engines {
            let mut stepper = shape.stepper(engine, batch, arguments.rows)?;
            contenders.push(Contender::ours(*name, move |steps| {
                stepper.steps(steps);
                // Waits for the device, and fails if the numbers went wrong.
                stepper.means_blocking()?;
                Ok(())
            })?);
        }
        let ours = contenders.len();
        let request = json!({ "do": "step", "shape": shape.to_json(), "batch": batch, "rows": arguments.rows.max(batch) });
        let mut on_gpu = vec![false; ours];
        for peer in started {
            match peer.prepare(&request) {
                Ok(()) => {
                    on_gpu.push(peer.recipe.on_gpu);
                    contenders.push(Contender::peer(peer));
                }
                Err(error) => println!("not measured: {error}"),
            }
        }
        let peaks = contest::run(&mut contenders, machine, arguments.rounds, arguments.seconds)?;
        Ok(self.report(&contenders, ours, &on_gpu, &peaks))
    }

    /// Prints a table, and returns the same as JSON.
    fn report(self, contenders: &[Contender], ours: usize, on_gpu: &[bool], peaks: &[f64]) -> Value {
        let Case { shape, batch } = self;
        let gigaflops = batch as f64 * shape.flops() / 1e9;
        let (own, peers) = contenders.split_at(ours);
        let mut head = vec!["", "instances/s", "GFLOP/s", "% of peak"];
        let faster: Vec<String> =
            own.iter().map(|contender| format!("{} is × faster", contender.name)).collect();
        if !peers.is_empty() {
            head.extend(faster.iter().map(String::as_str));
        }
        let (mut rows, mut all) = (Vec::new(), Vec::new());
        for (contender, on_gpu) in contenders.iter().zip(on_gpu) {
            let per_second = contender.median().map(|rate| rate * batch as f64);
            let rate = contender.median().map(|rate| rate * gigaflops);
            let share = median(contender.rates.iter().zip(peaks).map(|(rate, peak)| rate * gigaflops / peak));
            let is_peer = !own.iter().any(|our| std::ptr::eq(our, contender));
            let ratios: Vec<Option<f64>> =
                own.iter().map(|our| our.times(contender).filter(|_| is_peer)).collect();
            let mut row = vec![
                contender.name.clone(),
                or_dash(per_second),
                or_dash(rate),
                share.map_or("–".into(), |share| format!("{:.0}%", 100.0 * share)),
            ];
            if !peers.is_empty() {
                row.extend(ratios.iter().map(|&ratio| ratio.map_or(String::new(), short)));
            }
            rows.push(row);
            let ratios: serde_json::Map<String, Value> = own
                .iter()
                .zip(&ratios)
                .filter_map(|(our, ratio)| Some((our.name.clone(), json!((*ratio)?))))
                .collect();
            all.push(json!({ "name": contender.name, "on_gpu": on_gpu, "instances_per_second": per_second,
                             "gflops": rate, "share_of_peak": share, "ours_is_times_faster": ratios,
                             "steps_per_second_by_round": contender.rates }));
        }
        print!("{}", table(&head, &rows));
        json!({ "shape": shape.to_json(), "batch": batch, "flops_per_instance": shape.flops(),
                "sgemm_gflops_by_round": peaks, "results": all })
    }
}
