//! What SEFA brought: batch norm, block-diagonal layers, latents and mixtures by hand and by central differences, and
//! whole steps in f64.

use crate::gdfs_kernels::before_the_update;
use crate::rig::{Random, Rig, assert_close, differences, toy};
use querent::Engine;
use querent::engine::kernels as k;
use querent::engine::kernels::words::{clock, losses};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::methods::sefa::{Config, Stepper};
use querent::nn::pitch;

/// Batch norm behind a ReLU: forward against the formula, backward against differences; the running moments; and folded,
/// what it does by them.
#[test]
fn batch_norm() {
    for (rows, blocks, width, gate) in [(1, 1, 3, 1), (5, 1, 4, 1), (6, 3, 5, 1), (7, 2, 2, 0)] {
        let (p, units) = (pitch(width), blocks * pitch(width));
        let mut b = PlanBuilder::new(1);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
        let (x, y, dy) = (reals("x", rows * units), reals("y", rows * units), reals("dy", rows * units));
        let (values, grad) = (reals("values", 4 * units), reals("grad", 4 * units));
        let (moments, sums) = (reals("moments", 2 * units), reals("sums", 2 * units));
        let [n, of, at] = [rows, blocks, p].map(|n| n as u32);
        b.section("forward", |b| {
            b.call(k::Moments { rows: n, blocks: of, pitch: at, norm: 0 }, &[x, values, moments]);
            b.call(k::Normalize { rows: n, blocks: of, pitch: at, norm: 0 }, &[x, values, moments, y]);
        });
        b.section("backward", |b| {
            let call = k::NormGrad { rows: n, blocks: of, pitch: at, norm: 0, divisor: 3 };
            b.call(call, &[dy, x, moments, grad, sums]);
            let call = k::NormGradInput { rows: n, blocks: of, pitch: at, norm: 0, gate };
            b.call(call, &[dy, x, values, moments, sums]);
        });
        let mut rig = Rig::new(b);
        let mut random = Random::new(rows as u64);
        let before = random.normals(rows * units);
        let cut = |v: f64| if gate != 0 && v < 0.0 { 0.0 } else { v };
        let norm = random.normals(4 * units);
        let weights = random.normals(rows * units);
        // Σ weights · y, from what goes into the ReLU and the norm's numbers.
        let mut run = |before: &[f64], norm: &[f64]| {
            let x: Vec<f64> = before.iter().map(|&v| cut(v)).collect();
            let y = rig.set("x", &x).set("values", norm).run("forward").get("y");
            (y.iter().zip(&weights).map(|(y, w)| y * w).sum::<f64>(), x, y)
        };
        let (_, x, y) = run(&before, &norm);
        let numeric = differences(&before, |v| run(v, &norm).0);
        let by_norm = differences(&norm, |v| run(&before, v).0);
        run(&before, &norm);
        let running = rig.get("values");
        rig.set("dy", &weights).run("backward");
        let name = format!("{rows} rows, {blocks} blocks");
        assert_close(&name, &rig.get("dy"), &numeric);
        let scaled: Vec<f64> = by_norm[..2 * units].iter().map(|g| g / 3.0).collect();
        assert_close(&name, &rig.get("grad")[..2 * units], &scaled);
        assert!(by_norm[2 * units..].iter().all(|&g| g == 0.0), "running moments have no say in training");
        for unit in 0..units {
            let of_unit = |row: usize| x[(unit / p * rows + row) * p + unit % p];
            let mean = (0..rows).map(of_unit).sum::<f64>() / rows as f64;
            let square: f64 = (0..rows).map(|row| (of_unit(row) - mean).powi(2)).sum();
            let expected =
                norm[unit] * (of_unit(0) - mean) / (square / rows as f64 + 1e-5).sqrt() + norm[units + unit];
            assert!((y[unit / p * rows * p + unit % p] - expected).abs() < 1e-9);
            let moved = |which: usize, to: f64| {
                let old = norm[which * units + unit];
                assert!((running[which * units + unit] - (0.9 * old + 0.1 * to)).abs() < 1e-12, "{which}");
            };
            moved(2, mean);
            moved(3, square / (rows.max(2) - 1) as f64);
        }
    }
}

/// A block-diagonal layer is a layer a block.
#[test]
fn block_diagonal_layers() {
    for (rows, blocks, inputs, outputs, relu) in [(1, 1, 3, 2, 0), (4, 3, 5, 6, 1), (3, 5, 2, 4, 1)] {
        let (i, o) = (pitch(inputs), pitch(outputs));
        let weights = blocks * (i + 1) * o;
        let mut b = PlanBuilder::new(1);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
        let (x, dx) = (reals("x", blocks * rows * i), reals("dx", blocks * rows * i));
        let (y, dy) = (reals("y", blocks * rows * o), reals("dy", blocks * rows * o));
        let (values, grad) = (reals("values", weights), reals("grad", weights));
        let [n, of, ip, op] = [rows, blocks, i, o].map(|n| n as u32);
        let bias = of * ip * op;
        b.section("forward", |b| {
            let call = k::BlockLinear {
                rows: n,
                blocks: of,
                inputs_pitch: ip,
                outputs_pitch: op,
                weight: 0,
                bias,
                relu,
            };
            b.call(call, &[x, values, y]);
        });
        b.section("backward", |b| {
            let call =
                k::BlockGradInput { rows: n, blocks: of, inputs_pitch: ip, outputs_pitch: op, weight: 0 };
            b.call(call, &[dy, values, dx]);
            let call = k::BlockGradWeight {
                rows: n,
                blocks: of,
                inputs_pitch: ip,
                outputs_pitch: op,
                weight: 0,
                bias,
                divisor: 2,
            };
            b.call(call, &[x, dy, grad]);
        });
        let mut rig = Rig::new(b);
        let mut random = Random::new(7);
        let (input, weight) = (random.normals(blocks * rows * i), random.normals(weights));
        let factors = random.normals(blocks * rows * o);
        let by_hand = |block: usize, row: usize, output: usize| {
            let x = &input[(block * rows + row) * i..][..i];
            let sum: f64 = (0..i).map(|at| x[at] * weight[(block * i + at) * o + output]).sum();
            let sum = sum + weight[blocks * i * o + block * o + output];
            if relu != 0 { sum.max(0.0) } else { sum }
        };
        let y = rig.set("x", &input).set("values", &weight).run("forward").get("y");
        let expected = (0..blocks * rows * o).map(|at| by_hand(at / o / rows, at / o % rows, at % o));
        assert_close("forward", &y, &expected.collect::<Vec<_>>());
        let mut total = |input: &[f64], weight: &[f64]| {
            let y = rig.set("x", input).set("values", weight).run("forward").get("y");
            y.iter().zip(&factors).map(|(y, f)| y * f).sum::<f64>()
        };
        let by_input = differences(&input, |v| total(v, &weight));
        let by_weight = differences(&weight, |v| total(&input, v));
        total(&input, &weight);
        // The gradient of what is before the ReLU is the caller's business.
        let dy: Vec<f64> =
            factors.iter().zip(&y).map(|(f, &y)| if relu == 0 || y > 0.0 { *f } else { 0.0 }).collect();
        rig.set("dy", &dy).run("backward");
        assert_close("input", &rig.get("dx"), &by_input);
        let halves: Vec<f64> = by_weight.iter().map(|g| g / 2.0).collect();
        assert_close("weights", &rig.get("grad"), &halves);
    }
}

/// The loss of a mean of softmaxes, its gradient, the belief and the guess.
#[test]
fn mixtures() {
    for (rows, samples, classes) in [(1, 1, 2), (4, 5, 3), (3, 2, 6)] {
        let p = pitch(classes);
        let mut b = PlanBuilder::new(1);
        let y = b.buffer("y", Elem::U32, rows, Scope::Shared);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
        let (logits, costs) = (reals("logits", samples * rows * p), reals("costs", 1 + classes));
        let (lost, belief) = (reals("losses", rows * losses::LEN), reals("belief", rows * p));
        let [n, s, c, at] = [rows, samples, classes, p].map(|n| n as u32);
        for (name, learn) in [("look", 0), ("learn", 1)] {
            b.section(name, |b| {
                let call = k::MixtureLoss { rows: n, samples: s, classes: c, pitch: at, weights: 1, learn };
                b.call(call, &[logits, y, costs, lost, belief]);
            });
        }
        let mut rig = Rig::new(b);
        let mut random = Random::new(3);
        let start = random.padded(samples * rows, classes);
        let weights = random.positives(classes);
        let mut labels: Vec<u32> = (0..rows as u32).map(|row| row % c).collect();
        if rows > 1 {
            labels[rows - 1] = u32::MAX;
        }
        rig.set("costs", &[vec![9.0], weights.clone()].concat()).set_words("y", &labels);
        let soft = |logits: &[f64], sample: usize, row: usize| -> Vec<f64> {
            let logits = &logits[(sample * rows + row) * p..][..classes];
            let mass: f64 = logits.iter().map(|z| z.exp()).sum();
            logits.iter().map(|z| z.exp() / mass).collect()
        };
        let mean = |logits: &[f64], row: usize, class: usize| {
            (0..samples).map(|sample| soft(logits, sample, row)[class]).sum::<f64>() / samples as f64
        };
        let loss = |logits: &[f64], row: usize| match labels[row] {
            u32::MAX => 0.0,
            label => -weights[label as usize] * mean(logits, row, label as usize).ln(),
        };
        rig.set("logits", &start).run("look");
        assert_eq!(rig.get("logits"), start, "they stay");
        for row in 0..rows {
            let beliefs: Vec<f64> = (0..classes).map(|class| mean(&start, row, class)).collect();
            assert_close("belief", &rig.get("belief")[row * p..][..classes], &beliefs);
            let got = &rig.get("losses")[row * losses::LEN..][..losses::LEN];
            assert!((got[losses::LOSS] - loss(&start, row)).abs() < 1e-12);
            let most = beliefs.iter().copied().fold(0.0, f64::max);
            assert_eq!(beliefs[got[losses::GUESS] as usize], most);
        }
        let numeric = differences(&start, |v| (0..rows).map(|row| loss(v, row)).sum());
        assert_close("gradient", &rig.run("learn").get("logits"), &numeric);
    }
    // Samples that are all sure of another class: the loss is that of the least sure, and it has a gradient.
    let mut b = PlanBuilder::new(1);
    let y = b.buffer("y", Elem::U32, 1, Scope::Shared);
    let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let buffers =
        [reals("logits", 8), y, reals("costs", 2), reals("losses", losses::LEN), reals("belief", 4)];
    b.section("learn", |b| {
        b.call(k::MixtureLoss { rows: 1, samples: 2, classes: 2, pitch: 4, weights: 0, learn: 1 }, &buffers);
    });
    let mut rig = Rig::new(b);
    rig.set("costs", &[1.0; 2]).set("logits", &[0.0, 500.0, 0.0, 0.0, 0.0, 400.0, 0.0, 0.0]).run("learn");
    assert!((rig.get("losses")[0] - (400.0 + 2f64.ln())).abs() < 1e-9);
    assert!((rig.get("logits")[4] + 1.0).abs() < 1e-9 && rig.get("logits")[0].abs() < 1e-9);
}

/// Normal numbers have the moments of a standard normal distribution, and every use has numbers of its own.
#[test]
fn normal_numbers() {
    let (rows, samples, p) = (40, 50, 20);
    let mut b = PlanBuilder::new(1);
    let time = b.buffer("clock", Elem::U32, clock::LEN, Scope::Shared);
    let noise = b.buffer("noise", Elem::F32, rows * samples * p, Scope::Shared);
    b.section("draw", |b| {
        let call =
            k::Normals { rows: rows as u32, samples: samples as u32, pitch: p as u32, first: 3, stream: 145 };
        b.call(call, &[time, noise]);
    });
    let mut rig = Rig::new(b);
    let mut draw = |step: u32| {
        let mut words = [0; clock::LEN];
        (words[clock::SEED_LO], words[clock::STEP]) = (9, step);
        rig.set_words("clock", &words).run("draw").get("noise")
    };
    let drawn = draw(1);
    let mean = |power: i32| drawn.iter().map(|v| v.powi(power)).sum::<f64>() / drawn.len() as f64;
    // Of 40,000 numbers: five standard errors.
    for (power, expected, error) in [(1, 0.0, 0.025), (2, 1.0, 0.036), (3, 0.0, 0.1), (4, 3.0, 0.25)] {
        assert!((mean(power) - expected).abs() < error, "moment {power}: {}", mean(power));
    }
    let below = |at: f64| drawn.iter().filter(|&&v| v < at).count() as f64 / drawn.len() as f64;
    for (at, share) in [(-2.0, 0.02275), (-0.6745, 0.25), (0.6745, 0.75), (2.0, 0.97725)] {
        assert!((below(at) - share).abs() < 0.011, "{at}");
    }
    let mut sorted = drawn.clone();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    assert!(sorted.len() > drawn.len() - 200, "numbers are drawn twice");
    assert_ne!(drawn, draw(2));
    assert_eq!(drawn, draw(1));
}

/// The objective by all weights, scales and shifts, with groups, known columns, class weights, and without noise.
#[test]
fn whole_steps() {
    for (features, batch, encoder, hidden, latent, samples, deterministic) in [
        (1, 4, vec![3], vec![4], 1, 2, false),
        (4, 6, vec![3, 5], vec![5, 4], 2, 3, false),
        (3, 7, vec![4], vec![3, 5, 4], 3, 3, true),
    ] {
        let data = toy(features, batch);
        let config = Config {
            horizon: Some(features),
            encoder,
            hidden,
            latent,
            training_samples: samples,
            validation_samples: 2,
            beta: 0.05,
            deterministic,
            batch,
            seed: 11,
            ..Config::default()
        };
        let mut stepper = Stepper::new(&Engine::cpu_f64(), &data, config).expect("fits");
        let values = stepper.program().plan().find("sefa.values").expect("declared");
        let weights = stepper.program().read_blocking(values).expect("reads");
        let mut run = |weights: &[f64]| {
            stepper.program_mut().write(values, 0, weights);
            let (means, gradient) = before_the_update(&mut stepper, "step");
            let parts = means["prediction_loss"] + means["divergence_price"];
            assert!((means["objective"] - parts).abs() < 1e-12);
            assert_eq!(means["divergence_price"] == 0.0, deterministic);
            (means["objective"], gradient)
        };
        let (_, gradient) = run(&weights);
        // Knots are no weights; the running moments and the padding have no gradient.
        let live: Vec<usize> = (0..weights.len()).filter(|&i| gradient[i].abs() > 1e-9).collect();
        assert!(live.len() > 20, "{}", live.len());
        let mut at = weights.clone();
        let mut numeric = |i: usize| {
            let mut value = |step: f64| {
                at[i] = weights[i] + step;
                run(&at).0
            };
            let difference = (value(1e-6) - value(-1e-6)) / 2e-6;
            at[i] = weights[i];
            difference
        };
        let expected: Vec<f64> = live.iter().map(|&i| numeric(i)).collect();
        let got: Vec<f64> = live.iter().map(|&i| gradient[i]).collect();
        assert_close(&format!("d = {features}"), &got, &expected);
        // And where the gradient is nothing, nothing changes: every seventh of them.
        let rest = (0..weights.len()).filter(|i| gradient[*i].abs() <= 1e-9 && weights[*i] != 0.0);
        let knots = data.problem().columns() * 2 * 64;
        for i in rest.filter(|i| *i < weights.len() - knots).step_by(7) {
            assert!(numeric(i).abs() < 1e-6, "{i} of {}", weights.len());
        }
    }
}
