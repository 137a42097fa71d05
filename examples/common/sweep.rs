//! Many runs: a list of α and seeds, as a table and a cost–performance curve. Each has a folder, so that `--resume`
//! finds what was done: a finished run is only evaluated again.

use super::{Flags, Task};
use querent::nmppg::reference_blocking;
use querent::report::{self, CurvePoint, Series};
use querent::{Engine, Error, Result, files};
use std::path::Path;

pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
}

pub fn run(engine: &Engine, task: &Task, flags: &Flags, alphas: &[f64], folder: &Path) -> Result<()> {
    let seeds = flags.seeds.as_deref().unwrap_or(&[0, 1, 2]);
    let mut points = Vec::new();
    let mut results = Vec::new();
    println!(
        "{:>8} {:>5} {:>10} {:>8} {:>9} {:>8} {:>7} {:>8}",
        "alpha", "seed", "objective", "loss", "accuracy", "cost", "first", "seconds"
    );
    for &alpha in alphas {
        let mut runs = Vec::new();
        for &seed in seeds {
            let place = folder.join(format!("alpha_{alpha}_seed_{seed}"));
            std::fs::create_dir_all(&place).map_err(|error| Error::io(&place, error))?;
            let outcome = task.run(engine, flags, flags.config(alpha, seed)?, Some(&place))?;
            let s = &outcome.summary;
            println!(
                "{alpha:>8} {seed:>5} {:>10.4} {:>8.4} {:>9.4} {:>8.3} {:>7.3} {:>8.1}",
                s.objective, s.loss, s.accuracy, s.cost, outcome.first_action_share, outcome.seconds
            );
            let mut row = serde_json::json!({ "alpha": alpha, "seed": seed, "objective": s.objective, "loss": s.loss,
                "accuracy": s.accuracy, "cost": s.cost, "first_action_share": outcome.first_action_share,
                "seconds": outcome.seconds });
            outcome.extra.iter().for_each(|(key, number)| row[*key] = (*number).into());
            results.push(row);
            runs.push((s.cost, s.accuracy));
        }
        let (costs, accuracies): (Vec<f64>, Vec<f64>) = runs.into_iter().unzip();
        let (y, y_sd) = mean_and_deviation(&accuracies);
        let x = mean_and_deviation(&costs).0;
        points.push(CurvePoint { x, y, y_sd, label: Some(format!("α {alpha}")) });
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let seed = seeds.first().copied().unwrap_or(0);
    let [_, data] = task.data(flags, seed)?;
    let reference = reference_blocking(engine, &data, &flags.config(flags.one(), seed)?)?;
    let series = Series { name: format!("NM-PPG, {} seeds", seeds.len()), points };
    let svg = report::curve(
        &task.title,
        "mean cost of what was acquired",
        "accuracy",
        &[series],
        Some(("all features".into(), reference.accuracy)),
    );
    report::save(&svg, folder.join("curve"))?;
    if let Some(path) = &flags.json {
        let text = format!("{:#}\n", serde_json::Value::Array(results));
        files::write_atomically(path, text.as_bytes())?;
    }
    println!("\nIn {}: curve.svg/.png, and each run in a folder of its own", folder.display());
    Ok(())
}
