//! One model for a range of α, looked at at several of them: the trade-off is chosen when asking, not when training.

use super::{Flags, Task, history_csv, progress};
use querent::data::Part;
use querent::nmppg::{Alpha, Trainer, reference_blocking};
use querent::policy::evaluate::{Rules, Summary, Traces, episodes};
use querent::report::{self, CurvePoint, Series};
use querent::{Engine, Result, files};
use std::path::Path;

/// Points of the range that are shown where none are asked for.
const POINTS: usize = 6;

/// Points that the curve that travels with the model begins with.
const CURVE: usize = 13;

/// What the model does at one α.
struct Point {
    alpha: f64,
    summary: Summary,
    traces: Traces,
}

pub fn run(engine: &Engine, task: &Task, flags: &Flags, folder: &Path) -> Result<()> {
    let alpha = flags.range.map_or(Alpha::Auto, |[from, to]| Alpha::Range([from, to]));
    let config = flags.config(alpha, flags.seed)?;
    let [raw, data] = task.data(flags, flags.seed)?;
    let mut trainer = Trainer::new(engine, &data, config.clone())?;
    let checkpoint = folder.join("checkpoint.safetensors");
    if flags.resume {
        trainer.resume(&checkpoint)?;
        files::clear_remains(&checkpoint);
    }
    progress::train(engine, &mut trainer, Some(&checkpoint))?;
    let model = trainer.finish_blocking()?.with_curve(&data, CURVE)?;
    let seconds = trainer.history().last().map_or(0.0, |epoch| epoch.seconds);
    model.save(folder.join("model.safetensors"))?;
    files::write_atomically(&folder.join("history.csv"), history_csv(trainer.history()).as_bytes())?;

    let grid = model
        .alphas()
        .map_or(Vec::new(), |range| range.grid(POINTS).into_iter().map(|a| range.shown(a)).collect());
    let labels = &data.splits()[2].y;
    let mut points = Vec::new();
    for alpha in flags.at.clone().unwrap_or(grid) {
        let model = model.clone().with_tradeoff(alpha)?;
        let traces = episodes(&model, &data, Part::Test, &Rules::default())?.ended();
        points.push(Point { alpha, summary: traces.summary(data.problem(), labels, alpha), traces });
    }
    let reference = reference_blocking(engine, &data, &config)?;
    table(task, &points, &reference);
    pictures(task, flags, &raw, &trainer, &points, &reference, folder)?;
    if let Some(path) = &flags.json {
        let first = |s: &Summary| s.first_actions[task.first.clone()].iter().sum::<f64>();
        let point = |p: &Point| {
            let s = &p.summary;
            let mut value = serde_json::json!({ "alpha": p.alpha, "objective": s.objective, "loss": s.loss, "cost": s.cost,
                "accuracy": s.accuracy, "acquisitions": s.acquisitions, "first_action_share": first(s) });
            (task.extra)(&raw, &p.traces).iter().for_each(|(key, number)| value[*key] = (*number).into());
            value
        };
        let value = serde_json::json!({
            "task": task.name, "seed": flags.seed, "seconds": seconds, "range": model.alphas(),
            "points": points.iter().map(point).collect::<Vec<_>>(),
        });
        files::write_atomically(path, format!("{value:#}\n").as_bytes())?;
    }
    let shown = folder.display();
    println!("\nTraining took {seconds:.1} s.");
    println!(
        "In {shown}: model.safetensors, history.csv, curve.svg/.png, dynamics.svg/.png, paths_ALPHA.svg/.png"
    );
    println!("Ask it yourself: cargo run --release --example ask -- {shown}/model.safetensors");
    Ok(())
}

fn table(task: &Task, points: &[Point], reference: &querent::nmppg::Evaluation) {
    let instances = points.first().map_or(0, |point| point.summary.instances);
    println!("\n{}, one model, {instances} test rows", task.title);
    println!(
        "{:>9} {:>10} {:>8} {:>9} {:>8} {:>6} {:>7}",
        "alpha", "objective", "loss", "accuracy", "cost", "asked", "first"
    );
    for Point { alpha, summary: s, .. } in points {
        let first: f64 = s.first_actions[task.first.clone()].iter().sum();
        println!(
            "{alpha:>9} {:>10.4} {:>8.4} {:>9.4} {:>8.3} {:>6.2} {first:>7.3}",
            s.objective, s.loss, s.accuracy, s.cost, s.acquisitions
        );
    }
    println!("{:>9} {:>10} {:>8.4} {:>9.4}", "all", "", reference.loss, reference.accuracy);
}

fn pictures(
    task: &Task,
    flags: &Flags,
    raw: &querent::data::Dataset,
    trainer: &Trainer,
    points: &[Point],
    reference: &querent::nmppg::Evaluation,
    folder: &Path,
) -> Result<()> {
    let title = format!("{}, seed {}", task.title, flags.seed);
    report::save(&report::dynamics(&title, trainer.history()), folder.join("dynamics"))?;
    for Point { alpha, traces, .. } in points {
        let title = format!("{}, α = {alpha}", task.title);
        report::save(
            &report::paths(&title, &task.panels(raw, traces)),
            folder.join(format!("paths_{alpha}")),
        )?;
    }
    let point = |p: &Point| CurvePoint {
        x: p.summary.cost,
        y: p.summary.accuracy,
        y_sd: 0.0,
        label: Some(format!("α {}", p.alpha)),
    };
    let mut points: Vec<CurvePoint> = points.iter().map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let series = Series { name: "NM-PPG, one model".into(), points };
    let all = Some(("all features".into(), reference.accuracy));
    let svg = report::curve(&title, "mean cost of what was acquired", "accuracy", &[series], all);
    report::save(&svg, folder.join("curve"))
}
