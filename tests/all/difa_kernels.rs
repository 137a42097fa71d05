//! DiFA's step in f64. Straight-through, the selector's gradient is not that of what is computed, so it is taken apart:
//! masks are hard forward, ∂ℓ/∂m at them is that of the predictor's loss, and from there to the selector's weights it is
//! the gradient of the relaxed choice. The predictor's own is that of its loss.

use crate::gdfs_kernels::{gradient, up_to_the_update};
use crate::rig::{assert_close, differences, toy, unpadded};
use querent::Engine;
use querent::data::Dataset;
use querent::engine::kernels::words::losses;
use querent::methods::difa::{Config, Stage, Stepper};
use querent::nn::{Stack, Tensors};

struct Setting {
    features: usize,
    steps: usize,
    batch: usize,
    hidden: Vec<usize>,
    dropout: f64,
}

fn stepper(data: &Dataset, setting: &Setting) -> Stepper {
    let config = Config {
        horizon: Some(setting.steps),
        hidden: setting.hidden.clone(),
        dropout: setting.dropout,
        batch: setting.batch,
        seed: 11,
        ..Config::default()
    };
    let mut stepper = Stepper::new(&Engine::cpu_f64(), data, config).expect("fits");
    let stage = Stage { temperature: 0.6, selector_rate: 1e-3, predictor_rate: 1e-3 };
    stepper.set_stage(stage).expect("valid");
    stepper
}

fn reals(stepper: &Stepper, name: &str) -> Vec<f64> {
    let id = stepper.program().plan().find(name).expect("declared");
    stepper.program().read_blocking(id).expect("reads")
}

fn words(stepper: &Stepper, name: &str) -> Vec<u32> {
    let id = stepper.program().plan().find(name).expect("declared");
    stepper.program().read_words_blocking(id).expect("reads")
}

fn write(stepper: &mut Stepper, name: &str, values: &[f64]) {
    let id = stepper.program().plan().find(name).expect("declared");
    stepper.program_mut().write(id, 0, values);
}

/// The weighted loss of a row under any mask, by hand.
fn loss(data: &Dataset, layers: &[Tensors], x: &[f64], mask: &[f64], label: usize) -> f64 {
    let problem = data.problem();
    let seen = |group: u32| mask.get(group as usize).copied().unwrap_or(1.0);
    let mut h: Vec<f64> = x.iter().zip(problem.group_of_column()).map(|(x, &g)| x * seen(g)).collect();
    h.extend(mask);
    for (i, layer) in layers.iter().enumerate() {
        let rows = layer.weight.chunks_exact(h.len()).zip(&layer.bias);
        let next = rows.map(|(row, bias)| bias + row.iter().zip(&h).map(|(w, h)| w * h).sum::<f64>());
        h = next.map(|a| if i + 1 < layers.len() { a.max(0.0) } else { a }).collect();
    }
    let mass: f64 = h.iter().map(|logit| logit.exp()).sum();
    problem.class_weights()[label] * (mass.ln() - h[label])
}

#[test]
fn hard_forward_relaxed_backward() {
    let settings = [
        Setting { features: 1, steps: 1, batch: 3, hidden: vec![3], dropout: 0.0 },
        Setting { features: 4, steps: 4, batch: 5, hidden: vec![5, 6], dropout: 0.0 },
        Setting { features: 6, steps: 3, batch: 7, hidden: vec![4, 5], dropout: 0.0 },
    ];
    for setting in &settings {
        let Setting { features, steps, batch, .. } = *setting;
        let data = toy(features, batch);
        let mut stepper = stepper(&data, setting);
        assert_eq!(stepper.program().plan().lanes(), 1, "the tape is read as one");
        let means = up_to_the_update(&mut stepper, "step");
        let (path, y) = (words(&stepper, "path"), words(&stepper, "y"));
        let columns = data.problem().columns();
        let x = unpadded(&reals(&stepper, "x"), columns);
        let of_rows = reals(&stepper, "losses");
        let mask_grad = unpadded(&reals(&stepper, "mask_grad"), features);
        let widths = [&[columns + features][..], &setting.hidden, &[data.problem().classes().len()]].concat();
        let layers = Stack::new(0, &widths).unpack(&reals(&stepper, "predictor.values"));
        let mut total = 0.0;
        for row in 0..batch {
            let mut mask = vec![0.0; features];
            assert_eq!(of_rows[row * losses::LEN + losses::LOSS], 0.0, "knowing nothing has no loss");
            for step in 0..steps {
                let chosen = path[step * batch + row] as usize;
                assert_eq!(mask[chosen], 0.0, "what is acquired is blocked");
                mask[chosen] = 1.0;
                let by_hand = |mask: &[f64]| {
                    loss(&data, &layers, &x[row * columns..][..columns], mask, y[row] as usize)
                };
                // Forward under the hard mask.
                let got = of_rows[((step + 1) * batch + row) * losses::LEN + losses::LOSS];
                assert_close("the loss", &[got], &[by_hand(&mask)]);
                total += got / (steps * batch) as f64;
                let numeric = differences(&mask, by_hand);
                let tape_row = step * batch + row;
                assert_close("∂ℓ/∂m", &mask_grad[tape_row * features..][..features], &numeric);
            }
        }
        assert_close("the objective", &[means["objective"]], &[total]);

        // From there to the selector: the gradient of Σ ∂ℓ/∂m · r̃, with the path as it is.
        let masks = unpadded(&reals(&stepper, "masks"), features);
        for (row, mask) in masks.chunks_exact(features).enumerate() {
            let before = || path[row % batch..row].iter().step_by(batch).map(|&feature| feature as usize);
            let open = mask.iter().enumerate().filter(|(i, _)| before().all(|feature| feature != *i));
            let best = open.max_by(|a, b| a.1.total_cmp(b.1)).expect("one is open");
            assert_eq!(best.0, path[row] as usize, "the sample is the largest of r̃");
        }
        let weights = reals(&stepper, "selector.values");
        let got = gradient(&stepper, "selector");
        let numeric = differences(&weights, |v| {
            write(&mut stepper, "selector.values", v);
            up_to_the_update(&mut stepper, "step");
            assert_eq!(words(&stepper, "path"), path, "the path must not move");
            let relaxed = unpadded(&reals(&stepper, "masks"), features);
            relaxed.iter().zip(&mask_grad).map(|(r, g)| r * g).sum::<f64>() / (steps * batch) as f64
        });
        let live: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).collect();
        let pick = |values: &[f64]| live.iter().map(|&i| values[i]).collect::<Vec<_>>();
        assert_close(&format!("selector, d = {features}"), &pick(&got), &pick(&numeric));
        assert_eq!(got.iter().any(|&g| g != 0.0), features > 1, "of one feature there is nothing to choose");
    }
}

/// The predictor's gradient is that of the objective, with dropout, several lanes and in the pretraining too, which has
/// none for the selector.
#[test]
fn the_predictors_gradient() {
    let settings = [
        Setting { features: 4, steps: 4, batch: 5, hidden: vec![5, 6], dropout: 0.3 },
        Setting { features: 6, steps: 3, batch: 40, hidden: vec![4, 5], dropout: 0.3 },
        Setting { features: 5, steps: 3, batch: 45, hidden: vec![4], dropout: 0.0 },
    ];
    for setting in &settings {
        let data = toy(setting.features, setting.batch);
        let mut stepper = stepper(&data, setting);
        let weights = reals(&stepper, "predictor.values");
        for section in ["warm_up", "step"] {
            write(&mut stepper, "predictor.values", &weights);
            up_to_the_update(&mut stepper, section);
            let got = gradient(&stepper, "predictor");
            let choosing = gradient(&stepper, "selector");
            assert_eq!(choosing.iter().any(|&g| g != 0.0), section == "step", "{section}: the selector's");
            let numeric = differences(&weights, |v| {
                write(&mut stepper, "predictor.values", v);
                up_to_the_update(&mut stepper, section)["objective"]
            });
            let live: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).collect();
            let pick = |values: &[f64]| live.iter().map(|&i| values[i]).collect::<Vec<_>>();
            assert_close(&format!("{section}, B = {}", setting.batch), &pick(&got), &pick(&numeric));
            assert!(got.iter().any(|&g| g != 0.0), "nothing was tested");
        }
    }
}
