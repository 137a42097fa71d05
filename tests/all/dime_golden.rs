//! DIME: whole steps against PyTorch.

use crate::golden_step::{Golden, Named, Way};
use querent::Engine;
use querent::methods::dime::{Config, Dime, Stage};
use querent::nn::Stack;

fn all() -> Vec<Golden> {
    Golden::all(["dime_step", "dime_price", "dime_warm_up"])
}

/// Takes the step on an engine.
fn run(golden: &Golden, engine: &Engine) -> Named {
    let mut hidden = golden.widths("network");
    let outputs = hidden.pop().expect("a last layer");
    let costs = golden.get("cost");
    let data = golden.data(&costs, outputs - costs.len());
    let config = Config {
        horizon: Some(golden.number("k")),
        hidden: hidden.clone(),
        dropout: golden.number("dropout"),
        batch: golden.number("batch"),
        price: golden.file.metadata["price"].parse().ok(),
        seed: golden.number("seed"),
        ..Config::default()
    };
    let inputs = data.problem().columns() + costs.len();
    let stack = Stack::new(0, &[&[inputs][..], &hidden, &[outputs]].concat());
    let way: Way<Dime> = Way {
        stage: Stage { epsilon: golden.number("epsilon"), rate: golden.number("rate") },
        groups: vec![("dime", vec![("network", stack)])],
        means: &["objective", "value_error"],
        hidden: if config.dropout > 0.0 { hidden } else { Vec::new() },
        dropped: golden.number::<usize>("k") + 1,
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
        ("price", "0.4"),
        ("dropout", "0.4"),
        ("rate", "0.03"),
        ("seed", "77"),
        ("steps", "5"),
        ("epoch", "9"),
    ];
    Golden::check_control(all(), run, &settings, |golden, key| match key {
        "epsilon" | "price" => golden.is_step().then_some("path"),
        "dropout" => golden.file.metadata["dropout"].ne("0.0").then_some("dropout.0"),
        "rate" | "steps" => Some("after.network"),
        _ => Some("order"),
    });
}
