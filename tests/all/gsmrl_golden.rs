//! GSMRL: whole steps against PyTorch.

use crate::golden_step::{Golden, Named, Way};
use querent::Engine;
use querent::methods::gsmrl::{Config, Gsmrl, Stage};
use querent::nn::{Flow, Stack};

fn all() -> Vec<Golden> {
    Golden::all(["gsmrl_step", "gsmrl_plain", "gsmrl_warm_up"])
}

/// The couplings' names.
const FLOW: [&str; 4] = ["flow0", "flow1", "flow2", "flow3"];

/// Takes the step on an engine.
fn run(golden: &Golden, engine: &Engine) -> Named {
    let hidden_of = |net: &str| {
        let mut widths = golden.widths(net);
        widths.pop();
        widths
    };
    let (hidden, surrogate_hidden) = (hidden_of("policy"), hidden_of("prior"));
    let (costs, classes) = (golden.get("cost"), golden.widths("prior")[surrogate_hidden.len()]);
    let data = golden.data(&costs, classes);
    let config = Config {
        alpha: golden.number::<f64>("alpha").into(),
        horizon: Some(golden.number("k")),
        hidden: hidden.clone(),
        surrogate_hidden: surrogate_hidden.clone(),
        couplings: golden.number("couplings"),
        dropout: golden.number("dropout"),
        batch: golden.number("batch"),
        passes: golden.number("passes"),
        likelihood: golden.number("likelihood"),
        information: golden.number("information"),
        discount: golden.number("discount"),
        trace: golden.number("trace"),
        clip: golden.number("clip"),
        bonus: golden.number("bonus"),
        norm: golden.number("norm"),
        seed: golden.number("seed"),
        ..Config::default()
    };
    let sizes @ [columns, features, _] = [data.problem().columns(), costs.len(), classes];
    let couplings = Flow::stacks(0, sizes, &surrogate_hidden, config.couplings);
    let end = couplings.last().expect("a base").end();
    let mut surrogate: Vec<(&str, Stack)> = FLOW.into_iter().zip(couplings).collect();
    let widths = |inputs: usize, hidden: &[usize], outputs| [&[inputs][..], hidden, &[outputs]].concat();
    surrogate.push(("prior", Stack::new(end, &widths(columns + features, &surrogate_hidden, classes))));
    let state = 3 * columns + features + classes;
    let one = |name, inputs, outputs| (name, vec![(name, Stack::new(0, &widths(inputs, &hidden, outputs)))]);
    let way: Way<Gsmrl> = Way {
        stage: Stage { rate: golden.number("rate"), surrogate_rate: golden.number("surrogate_rate") },
        groups: vec![
            ("surrogate", surrogate),
            one("predictor", columns + features, classes),
            one("policy", state, features + 1),
            one("critic", state, 1),
        ],
        means: match golden.is_step() {
            true => &["objective", "policy_entropy", "value_error"],
            false => &["objective", "surrogate_loss"],
        },
        hidden: if config.dropout > 0.0 { hidden } else { Vec::new() },
        dropped: golden.number::<usize>("k") + 1,
        gumbel: false,
        config,
    };
    golden.run(engine, &data, way)
}

#[test]
fn steps_match_pytorch() {
    Golden::check(&all(), run);
}

#[test]
fn the_comparison_can_fail() {
    let settings = [
        ("alpha", "0.3"),
        ("information", "0.1"),
        ("discount", "0.5"),
        ("trace", "0.2"),
        ("bonus", "0.3"),
        ("norm", "0.01"),
        ("likelihood", "2"),
        ("rate", "0.03"),
        ("surrogate_rate", "0.03"),
    ];
    Golden::check_control(all(), run, &settings, |golden, key| {
        let has_costs = golden.get("expect.objective")[0] != 0.0;
        Some(match (golden.is_step(), key) {
            (false, "norm") => "grad.flow",
            (false, "likelihood") => "objective",
            (false, "surrogate_rate") => "after.flow",
            (true, "alpha" | "information") if has_costs => "objective",
            (true, "discount" | "trace") => "grad.",
            (true, "bonus" | "norm") => "grad.policy",
            (true, "rate") => "after.policy",
            _ => return None,
        })
    });
}
