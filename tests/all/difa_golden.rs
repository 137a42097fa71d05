//! DiFA: whole steps against PyTorch.

use crate::golden_step::{Golden, Named, Way};
use querent::Engine;
use querent::methods::difa::{Config, Difa, Stage};
use querent::nn::Stack;

fn all() -> Vec<Golden> {
    Golden::all(["difa_step", "difa_plain", "difa_warm_up"])
}

/// Takes the step on an engine.
fn run(golden: &Golden, engine: &Engine) -> Named {
    let [mut hidden, predictor] = ["selector", "predictor"].map(|net| golden.widths(net));
    let features = hidden.pop().expect("a last layer");
    let classes = *predictor.last().expect("a last layer");
    let data = golden.data(&vec![1.0; features], classes);
    let steps: usize = golden.number("k");
    let config = Config {
        horizon: Some(steps),
        hidden: hidden.clone(),
        dropout: golden.number("dropout"),
        batch: golden.number("batch"),
        seed: golden.number("seed"),
        ..Config::default()
    };
    let inputs = data.problem().columns() + features;
    let stack = |outputs| Stack::new(0, &[&[inputs][..], &hidden, &[outputs]].concat());
    let group = |name, outputs| (name, vec![(name, stack(outputs))]);
    let way: Way<Difa> = Way {
        stage: Stage {
            temperature: golden.number("temperature"),
            selector_rate: golden.number("selector_rate"),
            predictor_rate: golden.number("predictor_rate"),
        },
        groups: vec![group("selector", features), group("predictor", classes)],
        means: &["objective"],
        hidden: if config.dropout > 0.0 { hidden } else { Vec::new() },
        // Knowing nothing, and what each step has added.
        dropped: steps + 1,
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
        ("dropout", "0.4"),
        ("selector_rate", "0.04"),
        ("predictor_rate", "0.03"),
        ("seed", "77"),
        ("steps", "5"),
        ("epoch", "9"),
    ];
    Golden::check_control(all(), run, &settings, |golden, key| match key {
        "temperature" => golden.is_step().then_some("grad.selector"),
        // The pretraining leaves the selector alone.
        "selector_rate" => golden.is_step().then_some("after.selector"),
        "dropout" => golden.file.metadata["dropout"].ne("0.0").then_some("dropout.0"),
        "predictor_rate" | "steps" => Some("after.predictor"),
        _ => Some("order"),
    });
}
