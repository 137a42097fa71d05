//! OL: whole steps against PyTorch.

use crate::golden_step::{Golden, Named, Way};
use querent::Engine;
use querent::methods::ol::{Config, Ol, Reward, Stage};
use querent::nn::Lateral;

fn all() -> Vec<Golden> {
    Golden::all(["ol_step", "ol_confidence", "ol_warm_up"])
}

/// Takes the step on an engine.
fn run(golden: &Golden, engine: &Engine) -> Named {
    let mut widths = golden.widths("network");
    let outputs = widths.pop().expect("a last layer");
    let costs = golden.get("cost");
    let data = golden.data(&costs, outputs - costs.len() - 1);
    let batch: usize = golden.number("batch");
    let samples = golden.file.metadata.get("samples").map(|samples| samples.parse().expect("a number"));
    let config = Config {
        alpha: golden.number("alpha"),
        reward: if golden.file.metadata["reward"] == "loss" { Reward::Loss } else { Reward::Confidence },
        gamma: golden.number("gamma"),
        horizon: Some(golden.number("k")),
        hidden: widths.iter().map(|width| width / 2).collect(),
        dropout: golden.number("dropout"),
        samples: samples.unwrap_or(1),
        batch,
        updates: golden.number("updates"),
        replay: golden.number::<usize>("rounds") * batch,
        seed: golden.number("seed"),
        ..Config::default()
    };
    let inputs = data.problem().columns() + costs.len();
    let lateral = Lateral::new(0, inputs, &config.hidden, [outputs - costs.len() - 1, costs.len() + 1]);
    let way: Way<Ol> = Way {
        stage: Stage {
            epsilon: golden.number("epsilon"),
            rate: golden.number("rate"),
            polyak: golden.number("polyak"),
        },
        groups: vec![("ol", vec![("network", lateral.stack)])],
        means: &["objective", "value_error"],
        hidden: widths,
        dropped: 1,
        gumbel: false,
        config,
    };
    golden.run(engine, &data, way)
}

#[test]
fn golden_steps() {
    Golden::check(&all(), run);
}

#[test]
fn the_golden_comparator_can_fail() {
    let settings = [
        ("epsilon", "0.9"),
        ("alpha", "0.4"),
        ("gamma", "0.2"),
        ("dropout", "0.4"),
        ("polyak", "0.5"),
        ("rate", "0.03"),
        ("seed", "77"),
        ("steps", "5"),
        ("epoch", "9"),
    ];
    Golden::check_control(all(), run, &settings, |golden, key| match key {
        "epsilon" => golden.is_step().then_some("path"),
        "alpha" => (golden.name == "ol_step").then_some("value_error"),
        "gamma" => golden.is_step().then_some("value_error"),
        "dropout" => Some("dropout.0"),
        "polyak" => Some("slow.network"),
        "rate" | "steps" => Some("after.network"),
        _ => Some("order"),
    });
}
