//! The training step of each method with its default settings, in turn: instances a second, and how much of the machine's
//! peak the arithmetic of its kernels is.

use super::contest::{self, Contender};
use super::stats::{median, or_dash, short, table};
use super::{Machine, Outcome};
use querent::Engine;
use querent::data::{Dataset, Split};
use querent::measure::{Shape, kernels::counted};
use querent::methods::{self, Entry, METHODS};
use serde_json::{Value, json};

/// Validation rows: they are not used, but a run has some.
const VALIDATION: usize = 256;

/// Methods by their names, or all of them.
pub fn parse(name: &str) -> Result<Vec<&'static Entry>, String> {
    match name {
        "all" => Ok(METHODS.to_vec()),
        name => methods::find(name).map(|entry| vec![entry]).map_err(|error| error.to_string()),
    }
}

/// How long, and on how many rows.
#[derive(Clone, Copy)]
pub struct Measured {
    pub rounds: usize,
    pub seconds: f64,
    pub rows: usize,
}

/// Measures the steps of some methods on one shape and one engine; prints a table, and returns the same as JSON.
pub fn measure(
    entries: &[&'static Entry],
    shape: Shape,
    (name, engine): &(&'static str, Engine),
    machine: &mut Machine,
    how: Measured,
) -> Outcome<Value> {
    let made = shape.table(how.rows, VALIDATION)?;
    let [train, _, validation] = made.splits().clone();
    let data = Dataset::new(made.problem().clone(), train, validation, Split::default())?;
    println!(
        "\n{} (d {}, columns {}, C {}), default settings, {name}",
        shape.name, shape.d, shape.columns, shape.classes
    );
    let (mut contenders, mut needs) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut training = match (entry.start)(engine, &data, (entry.defaults)(&data)) {
            Ok(training) => training,
            Err(error) => {
                println!("not measured: {}: {error}", entry.name);
                continue;
            }
        };
        let plan = training.program().map(|program| program.plan());
        let Some(step) = plan.and_then(|plan| Some((plan, plan.find_section("step")?.calls()))) else {
            println!("not measured: {} does not learn in steps", entry.name);
            continue;
        };
        let flops: f64 = counted(step.0, step.1, false).values().map(|part| part.flops).sum();
        needs.push((training.batch(), flops));
        contenders.push(Contender::ours(entry.name, move |steps| Ok(training.rehearse_blocking(steps)?))?);
    }
    let peaks = contest::run(&mut contenders, machine, how.rounds, how.seconds)?;
    let (mut rows, mut results) = (Vec::new(), Vec::new());
    for (contender, &(batch, flops)) in contenders.iter().zip(&needs) {
        let per_second = contender.median().map(|rate| rate * batch as f64);
        let gflops = contender.median().map(|rate| rate * flops / 1e9);
        let share = median(contender.rates.iter().zip(&peaks).map(|(rate, peak)| rate * flops / 1e9 / peak));
        rows.push(vec![
            contender.name.clone(),
            batch.to_string(),
            short(flops / 1e6),
            or_dash(per_second),
            or_dash(gflops),
            share.map_or("–".into(), |share| format!("{:.0}%", 100.0 * share)),
        ]);
        results.push(json!({ "method": contender.name, "batch": batch, "flops_per_step": flops,
                             "instances_per_second": per_second, "gflops": gflops, "share_of_peak": share,
                             "steps_per_second_by_round": contender.rates }));
    }
    print!("{}", table(&["", "batch", "MFLOP a step", "instances/s", "GFLOP/s", "% of peak"], &rows));
    Ok(
        json!({ "shape": shape.to_json(), "engine": name, "sgemm_gflops_by_round": peaks, "methods": results }),
    )
}
