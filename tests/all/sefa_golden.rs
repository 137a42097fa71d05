//! SEFA: whole steps and evaluations against PyTorch.

use crate::golden_step::{Golden, Named};
use crate::rig::unpadded;
use querent::Engine;
use querent::data::{Dataset, Split};
use querent::engine::kernels::words::{clock, losses};
use querent::methods::sefa::{Config, Stage, Stepper};
use querent::nn::{NormedLayer, NormedStack, pitch};

fn all() -> Vec<Golden> {
    Golden::all(["sefa_step", "sefa_deterministic"])
}

/// Both networks, by their names, as the group's buffers have them.
fn stacks(golden: &Golden, data: &Dataset, config: &Config) -> [(&'static str, NormedStack); 2] {
    let (problem, known) = (data.problem(), data.problem().known_columns());
    let blocks = problem.features().len() + usize::from(known > 0);
    let heads = 2 * config.latent;
    let encoder =
        NormedStack::new(0, blocks, &[&[1 + problem.widest()][..], &config.encoder, &[heads]].concat(), true);
    let classes = problem.classes().len();
    let widths = [&[blocks * config.latent][..], &config.hidden, &[classes]].concat();
    let predictor = NormedStack::new(encoder.end(), 1, &widths, false);
    assert_eq!(golden.find("encoder.0.bias").map(|bias| bias.len()), Some(blocks * config.encoder[0]));
    [("encoder", encoder), ("predictor", predictor)]
}

/// Where each number of a tensor lies in the group's buffers: PyTorch has `[block][output][input]`.
fn places(stack: &NormedStack, NormedLayer { layer, norm }: &NormedLayer, part: &str) -> Option<Vec<usize>> {
    let (inputs, outputs, blocks) = (pitch(layer.inputs), pitch(layer.outputs), stack.blocks);
    let of_units =
        |at: usize| (0..blocks).flat_map(move |b| (0..layer.outputs).map(move |o| at + b * outputs + o));
    let of_norm = |which: usize| norm.map(|norm| of_units(norm + which * blocks * outputs).collect());
    match part {
        "weight" => {
            let of_output = move |b: usize, o: usize| {
                (0..layer.inputs).map(move |i| layer.weight + (b * inputs + i) * outputs + o)
            };
            let of_block = move |b: usize| (0..layer.outputs).flat_map(move |o| of_output(b, o));
            Some((0..blocks).flat_map(of_block).collect())
        }
        "bias" => Some(of_units(layer.bias).collect()),
        "scale" => of_norm(0),
        "shift" => of_norm(1),
        "running_mean" => of_norm(2),
        _ => of_norm(3),
    }
}

const PARTS: [&str; 6] = ["weight", "bias", "scale", "shift", "running_mean", "running_variance"];

/// The table, and the settings of the step.
fn setup(golden: &Golden) -> (Dataset, Config) {
    let costs = golden.get("cost");
    let widths = |net: &str| -> Vec<usize> {
        let bias = |i: usize| golden.file.tensors.get(&format!("{net}.{i}.bias"));
        let mut widths: Vec<usize> = (0..).map_while(bias).map(|bias| bias.shape[1]).collect();
        widths.pop();
        widths
    };
    let classes = golden.get("y").into_iter().fold(0.0, f64::max) as usize + 1;
    let classes = golden.find("class_weight").map_or(classes, |weights| weights.len());
    let plain = golden.data(&costs, classes);
    let rows = plain.sizes()[0];
    // A validation, so that there is something to evaluate: the same rows.
    let split: Split = plain.splits()[0].clone();
    let data = Dataset::new(plain.problem().clone(), split.clone(), split, Split::default()).expect("valid");
    let config = Config {
        horizon: Some(golden.number("k")),
        hidden: widths("predictor"),
        encoder: widths("encoder"),
        latent: golden.number("latent"),
        training_samples: golden.number("samples"),
        validation_samples: golden.number("evaluated"),
        beta: golden.number("beta"),
        deterministic: golden.file.metadata["deterministic"] == "True",
        batch: rows,
        seed: golden.number("seed"),
        ..Config::default()
    };
    (data, config)
}

/// Evaluates the table and takes the step on an engine.
fn run(golden: &Golden, engine: &Engine) -> Named {
    let (data, config) = setup(golden);
    let mut stepper = Stepper::new(engine, &data, config.clone()).unwrap_or_else(|error| panic!("{error}"));
    stepper.set_stage(Stage { rate: 0.01 }).expect("valid");
    let id = |stepper: &Stepper, name: &str| stepper.program().plan().find(name).expect("declared");
    let stacks = stacks(golden, &data, &config);
    let mut values = stepper.program().read_blocking(id(&stepper, "sefa.values")).expect("reads");
    for (net, stack) in &stacks {
        for (i, layer) in stack.layers.iter().enumerate() {
            for part in PARTS {
                let Some(places) = places(stack, layer, part) else { continue };
                let tensor = golden.get(&format!("{net}.{i}.{part}"));
                places.into_iter().zip(tensor).for_each(|(place, value)| values[place] = value);
            }
        }
    }
    for name in ["sefa.values", "sefa.average"] {
        let to = id(&stepper, name);
        stepper.program_mut().write(to, 0, &values);
    }
    let reals =
        |stepper: &Stepper, name: &str| stepper.program().read_blocking(id(stepper, name)).expect("reads");

    let evaluation = stepper.evaluate_blocking(querent::data::Part::Validation).expect("evaluates");
    let features = data.problem().features().len();
    let path = stepper.program().read_words_blocking(id(&stepper, "evaluation.path")).expect("reads");
    let lost = reals(&stepper, "evaluation.losses");
    let mut got: Named = Named::from([
        ("path".into(), path.into_iter().map(f64::from).collect()),
        ("scores".into(), unpadded(&reals(&stepper, "evaluation.scores"), features)),
        ("lost".into(), lost.chunks_exact(losses::LEN).map(|row| row[losses::LOSS]).collect()),
        ("along".into(), vec![evaluation.extra[0]]),
    ]);

    let steps: u32 = golden.number("steps");
    let to = id(&stepper, "clock");
    stepper.program_mut().write_words(to, clock::STEP, &[steps, golden.number("epoch"), 0]);
    stepper.steps(1);
    let means = stepper.means_blocking().expect("finite");
    for name in ["objective", "divergence_price"] {
        got.insert(name.into(), vec![means[name]]);
    }
    got.insert("mask".into(), unpadded(&reals(&stepper, "masks"), features));
    if !config.deterministic {
        let width = stacks[1].1.layers[0].layer.inputs;
        got.insert("noise".into(), unpadded(&reals(&stepper, "noise"), width));
    }
    let (grads, after) = (reals(&stepper, "sefa.grad"), reals(&stepper, "sefa.values"));
    for (net, stack) in &stacks {
        for (i, layer) in stack.layers.iter().enumerate() {
            for part in PARTS {
                let Some(places) = places(stack, layer, part) else { continue };
                let moment = part.starts_with("running");
                let (what, from) = if moment { ("after", &after) } else { ("grad", &grads) };
                let name = format!("{what}.{net}.{i}.{part}");
                let values: Vec<f64> = places.into_iter().map(|place| from[place]).collect();
                if golden.find(&format!("expect.{name}")).is_some() {
                    got.insert(name, values);
                } else {
                    // What a norm takes away again has no gradient.
                    assert!(net == &"encoder" && values.iter().all(|value| value.abs() < 1e-5), "{name}");
                }
            }
        }
    }
    got
}

#[test]
fn golden_steps() {
    Golden::check(&all(), run);
}

#[test]
fn the_golden_comparator_can_fail() {
    let settings = [("beta", "0.5"), ("seed", "77"), ("steps", "5"), ("epoch", "9")];
    Golden::check_control(all(), run, &settings, |golden, key| match key {
        "beta" => golden.file.metadata["deterministic"].eq("False").then_some("divergence_price"),
        "epoch" => Some("grad.predictor"),
        _ => Some("mask"),
    });
}
