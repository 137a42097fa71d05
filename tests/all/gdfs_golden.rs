//! GDFS: whole steps against PyTorch.

use crate::gdfs_kernels::widths;
use crate::golden_step::{Golden, Named, Way};
use querent::Engine;
use querent::methods::gdfs::{Config, Gdfs, Stage};
use querent::nn::Stack;

fn all() -> Vec<Golden> {
    Golden::all(["gdfs_step", "gdfs_plain", "gdfs_warm_up"])
}

/// Takes the step on an engine.
fn run(golden: &Golden, engine: &Engine) -> Named {
    let [mut hidden, predictor] = ["selector", "predictor"].map(|net| golden.widths(net));
    let features = hidden.pop().expect("a last layer");
    let classes = *predictor.last().expect("a last layer");
    let data = golden.data(&vec![1.0; features], classes);
    let config = Config {
        horizon: Some(golden.number("k")),
        hidden: hidden.clone(),
        dropout: golden.number("dropout"),
        batch: golden.number("batch"),
        gamma: golden.number("gamma"),
        seed: golden.number("seed"),
        ..Config::default()
    };
    let selector = Stack::new(0, &widths(&data, &config, features));
    let predictor = Stack::new(selector.end(), &widths(&data, &config, classes));
    let way: Way<Gdfs> = Way {
        stage: Stage { temperature: golden.number("temperature"), rate: golden.number("rate") },
        groups: vec![("gdfs", vec![("selector", selector), ("predictor", predictor)])],
        means: &["objective"],
        hidden: if config.dropout > 0.0 { hidden } else { Vec::new() },
        dropped: golden.number("k"),
        gumbel: true,
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
        ("temperature", "0.71"),
        ("gamma", "0.4"),
        ("dropout", "0.4"),
        ("rate", "0.03"),
        ("seed", "77"),
        ("steps", "5"),
        ("epoch", "9"),
    ];
    Golden::check_control(all(), run, &settings, |golden, key| match key {
        "temperature" | "gamma" => golden.is_step().then_some("grad.selector"),
        "dropout" => golden.file.metadata["dropout"].ne("0.0").then_some("dropout.0"),
        "rate" | "steps" => Some("after.predictor"),
        _ => Some("order"),
    });
}
