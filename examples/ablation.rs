//! The paper's ablations on Syn1: hard against relaxed masks, and the entropy bonus against none.
//!
//! `cargo run --release --example ablation` trains each variant from the same seed, prints a table, and
//! leaves a picture of the validation objective over the epochs in `runs/ablation`. `--help` lists the
//! flags; `--seeds 0,1,2` repeats every variant.

mod common;

use clap::Parser;
use common::sweep::mean_and_deviation;
use common::{Flags, Outcome};
use querent::data::synthetic;
use querent::nmppg::{Config, Rollout};
use querent::policy::history::{Epoch, Phase};
use querent::report::{self, CurvePoint, Series};
use querent::{Engine, Error, Result, files};

/// The objective of the best possible policy on Syn1, where it is known.
const BEST: [(f64, f64); 4] = [(0.005, 0.4054), (0.01, 0.4248), (0.02, 0.4630), (0.05, 0.5750)];

/// A name, and what is other than the default.
struct Variant {
    name: &'static str,
    change: fn(&mut Config),
}

/// With relaxed masks there is no choice of a feature to reinforce: every rollout acquires a little of each.
/// `reinforce_from` below 1 would give these rollouts the gradient of choices that they do not make, and no
/// other, so the soft variants keep the relaxed gradient, which is exact for them, throughout. As this
/// changes two things at once, there is a straight-through variant with the relaxed gradient as well:
/// that is the one to compare the soft rollout with.
const VARIANTS: [Variant; 5] = [
    Variant { name: "default", change: |_| {} },
    Variant { name: "no entropy bonus", change: |config| config.exploration.lambda_share = 0.0 },
    Variant { name: "relaxed gradient only", change: |config| config.gradient.reinforce_from = 1.0 },
    Variant { name: "soft rollout", change: soft },
    Variant {
        name: "soft, no entropy bonus",
        change: |config| {
            soft(config);
            config.exploration.lambda_share = 0.0;
        },
    },
];

fn soft(config: &mut Config) {
    (config.rollout, config.gradient.reinforce_from) = (Rollout::Soft, 1.0);
}

/// The validation objective of the weights that were kept.
fn validated(outcome: &Outcome) -> f64 {
    outcome.history.iter().rfind(|epoch| epoch.best).map_or(f64::NAN, |epoch| epoch.validation.objective)
}

fn row(name: &str, seed: &str, outcome: &Outcome) -> String {
    let s = &outcome.summary;
    format!(
        "{name:24} {seed:>5} {:>10.4} {:>8.4} {:>8.4} {:>7.3} {:>9.4} {:>8.1}",
        validated(outcome),
        s.objective,
        s.loss,
        s.cost,
        outcome.first_action_share,
        outcome.seconds
    )
}

fn json(name: &str, config: &Config, outcome: &Outcome) -> serde_json::Value {
    let s = &outcome.summary;
    let objectives: Vec<f64> = outcome.history.iter().map(|epoch| epoch.validation.objective).collect();
    serde_json::json!({
        "variant": name, "alpha": config.alpha.one(), "seed": config.seed, "rollout": config.rollout,
        "lambda_share": config.exploration.lambda_share, "reinforce_from": config.gradient.reinforce_from,
        "validation_objective": validated(outcome), "objective": s.objective, "loss": s.loss,
        "accuracy": s.accuracy, "cost": s.cost, "first_action_share": outcome.first_action_share,
        "seconds": outcome.seconds, "validation_objectives": objectives,
    })
}

/// The validation objective over the epochs of the stages, the mean over seeds. In the warm-up, all
/// variants are the same. A stage may end early, so not every seed need have every epoch.
fn line(name: &str, outcomes: &[Outcome]) -> Series {
    let staged = |outcome: &Outcome, index: usize| {
        let epoch: &Epoch = outcome.history.get(index)?;
        matches!(epoch.phase, Phase::Stage(_)).then_some(epoch.validation.objective)
    };
    let longest = outcomes.iter().map(|outcome| outcome.history.len()).max().unwrap_or(0);
    let points = (0..longest).filter_map(|index| {
        let values: Vec<f64> = outcomes.iter().filter_map(|outcome| staged(outcome, index)).collect();
        let (y, y_sd) = mean_and_deviation(&values);
        (!values.is_empty()).then_some(CurvePoint { x: index as f64, y, y_sd, label: None })
    });
    let kept: Vec<f64> = outcomes.iter().map(validated).collect();
    Series { name: format!("{name}, {:.4}", mean_and_deviation(&kept).0), points: points.collect() }
}

fn picture(flags: &Flags, lines: &[Series]) -> String {
    let best = BEST.iter().find(|(alpha, _)| *alpha == flags.one());
    report::curve(
        &format!("Syn1, α = {}: ablations, each with the objective of the epoch that was kept", flags.one()),
        "epoch",
        "validation objective (nats)",
        lines,
        best.map(|(_, value)| (format!("best possible, {value:.4}"), *value)),
    )
}

fn run(flags: &Flags) -> Result<()> {
    if flags.resume || flags.sweep.is_some() {
        return Err(Error::Config("the ablations know neither --resume nor --sweep".into()));
    }
    let task = common::syn("ablation", "Syn1", synthetic::syn1);
    let folder = flags.folder(&task);
    std::fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
    let engine: Engine = flags.engine()?;
    let seeds = flags.seeds.clone().unwrap_or(vec![flags.seed]);
    let (mut rows, mut results, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for Variant { name, change } in &VARIANTS {
        let mut outcomes = Vec::new();
        for &seed in &seeds {
            println!("{name}, seed {seed}");
            let mut config = flags.config(flags.one(), seed)?;
            change(&mut config);
            let outcome = task.run(&engine, flags, config.clone(), None)?;
            rows.push(row(name, &seed.to_string(), &outcome));
            results.push(json(name, &config, &outcome));
            outcomes.push(outcome);
        }
        lines.push(line(name, &outcomes));
    }
    println!("\nSyn1 on {} test rows, α = {}, on {engine}", flags.test_size, flags.one());
    println!(
        "{:24} {:>5} {:>10} {:>8} {:>8} {:>7} {:>9} {:>8}",
        "variant", "seed", "validation", "test", "loss", "cost", "x11 first", "seconds"
    );
    rows.iter().for_each(|row| println!("{row}"));
    report::save(&picture(flags, &lines), folder.join("ablation"))?;
    if let Some(path) = &flags.json {
        let text = format!("{:#}\n", serde_json::Value::Array(results));
        files::write_atomically(path, text.as_bytes())?;
    }
    println!("\nIn {}: ablation.svg/.png", folder.display());
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::exit(run(&Flags::parse()))
}
