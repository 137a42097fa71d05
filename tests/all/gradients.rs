//! Tier 3: every backward kernel in f64 against central differences, op by op, then the whole soft
//! rollout and the warm-up step through the trainer. The choice of a feature is in `selection.rs`.

use crate::rig::{self, Random, Rig, assert_close, differences, toy};
use querent::engine::kernels::words::{NEVER, losses, settings};
use querent::engine::kernels::{self as k, Params};
use querent::engine::plan::{BufferId, Elem, PlanBuilder, Scope};
use querent::engine::{Engine, groups};
use querent::nmppg::kernels::{self as own, hyper, scalars};
use querent::nmppg::{Alpha, Config, Rollout, Stage, Stepper};
use querent::policy::{AlphaRange, Tradeoffs};

/// The control: a gradient that is 0.01% wrong in one place is seen.
#[test]
#[should_panic(expected = "off by")]
fn the_gradient_comparator_can_fail() {
    let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    let values = [1.0, 2.0, -3.0];
    let mut gradient: Vec<f64> = values.iter().map(|x| 2.0 * x).collect();
    assert_close("right", &gradient, &differences(&values, square));
    gradient[2] *= 1.0001;
    assert_close("wrong", &gradient, &differences(&values, square));
}

/// Two layers, the first with ReLU and dropout: dW, db of both and dx, with odd sizes.
#[test]
fn linear_layers() {
    for (rows, inputs, hidden, outputs) in [(1, 1, 1, 1), (5, 7, 6, 3), (9, 4, 13, 2)] {
        let [ip, hp, op] = [inputs, hidden, outputs].map(querent::nn::pitch);
        let stack = querent::nn::Stack::new(0, &[inputs, hidden, outputs, 1]);
        let (l1, l2) = (stack.layers[0], stack.layers[1]);
        let mut b = PlanBuilder::new(1);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
        let (none, w) = (reals("none", 4), reals("w", stack.len));
        let (x, h, y) = (reals("x", rows * ip), reals("h", rows * hp), reals("y", rows * op));
        let (drop, dy, da, dx) = (
            reals("drop", rows * hp),
            reals("dy", rows * op),
            reals("da", rows * hp),
            reals("dx", rows * ip),
        );
        let (grad, turned) = (reals("grad", stack.len), reals("turned", stack.len));
        let forward = |l: querent::nn::Layer, relu: u32, dropout: u32| k::Linear {
            rows: rows as u32,
            inputs_pitch: querent::nn::pitch(l.inputs) as u32,
            outputs_pitch: querent::nn::pitch(l.outputs) as u32,
            x_row: 0,
            y_row: 0,
            weight: l.weight as u32,
            bias: l.bias as u32,
            relu,
            dropout,
        };
        b.section("forward", |b| {
            b.call(forward(l1, 1, 1), &[x, w, drop, h]);
            b.call(forward(l2, 0, 0), &[h, w, none, y]);
        });
        let grad_input = |l: querent::nn::Layer, gate: u32| k::LinearGradInput {
            rows: rows as u32,
            inputs_pitch: querent::nn::pitch(l.inputs) as u32,
            outputs_pitch: querent::nn::pitch(l.outputs) as u32,
            dy_row: 0,
            dx_row: 0,
            hidden_row: 0,
            weight: l.weight as u32,
            gate,
            dropout: gate,
        };
        let transpose = |l: querent::nn::Layer| k::Transpose {
            inputs_pitch: querent::nn::pitch(l.inputs) as u32,
            outputs_pitch: querent::nn::pitch(l.outputs) as u32,
            weight: l.weight as u32,
        };
        let grad_weight = |l: querent::nn::Layer| k::LinearGradWeight {
            rows: rows as u32,
            inputs_pitch: querent::nn::pitch(l.inputs) as u32,
            outputs_pitch: querent::nn::pitch(l.outputs) as u32,
            weight: l.weight as u32,
            divisor: 3,
            ..Default::default()
        };
        let grad_bias = |l: querent::nn::Layer| k::BiasGrad {
            rows: rows as u32,
            pitch: querent::nn::pitch(l.outputs) as u32,
            bias: l.bias as u32,
            divisor: 3,
            ..Default::default()
        };
        b.section("backward", |b| {
            b.call(transpose(l1), &[w, turned]);
            b.call(transpose(l2), &[w, turned]);
            b.call(grad_weight(l2), &[h, dy, grad]);
            b.call(grad_bias(l2), &[dy, grad]);
            b.call(grad_input(l2, 1), &[dy, turned, h, drop, da]);
            b.call(grad_weight(l1), &[x, da, grad]);
            b.call(grad_bias(l1), &[da, grad]);
            b.call(grad_input(l1, 0), &[da, turned, none, none, dx]);
        });

        let mut rig = Rig::new(b);
        let mut random = Random::new(rows as u64);
        let weights = stack.init(5, 0);
        let inputs_x = random.padded(rows, inputs);
        let cotangent = random.padded(rows, outputs);
        rig.set("w", &weights).set("x", &inputs_x).set("dy", &cotangent);
        rig.set("drop", &random.choice(rows * hp, &[0.0, 1.5, 1.5]));
        rig.run("forward").run("backward");
        let (dw, dx) = (rig.get("grad"), rig.get("dx"));
        let loss = |rig: &mut Rig| {
            rig.run("forward").get("y").iter().zip(&cotangent).map(|(y, c)| y * c).sum::<f64>()
        };
        let live: Vec<usize> = (0..stack.len).filter(|&i| weights[i] != 0.0).collect();
        let values: Vec<f64> = live.iter().map(|&i| weights[i]).collect();
        let numeric = differences(&values, |v| {
            let mut w = weights.clone();
            live.iter().zip(v).for_each(|(&i, &value)| w[i] = value);
            rig.set("w", &w);
            loss(&mut rig) / 3.0
        });
        // The third layer has no part in this.
        let (got, numeric): (Vec<f64>, Vec<f64>) = live
            .iter()
            .zip(&numeric)
            .filter(|(i, _)| **i < stack.layers[2].weight)
            .map(|(&i, &n)| (dw[i], n))
            .unzip();
        assert_close("weights", &got, &numeric);
        assert!(dw.iter().enumerate().all(|(i, &g)| weights[i] != 0.0 || g == 0.0), "padding has a gradient");
        rig.set("w", &weights);
        let numeric = differences(&inputs_x, |v| {
            rig.set("x", v);
            loss(&mut rig)
        });
        assert_close("input", &rig::unpadded(&dx, inputs), &rig::unpadded(&numeric, inputs));
    }
}

/// The running-sum first layer and its suffix-sum gradient, with groups of different sizes, a path
/// that stops early and one that acquires everything.
#[test]
fn first_layer_under_hard_masks() {
    // Column 2 is known from the start.
    let group_of_column = [1u32, 0, 3, 2, 1, 1];
    let (rows, steps, columns, features, hidden) = (3usize, 3usize, 6usize, 3usize, 6usize);
    let (xp, hp) = (querent::nn::pitch(columns), querent::nn::pitch(hidden));
    let stack = querent::nn::Stack::new(0, &[columns + features, hidden, 1, 1]);
    let layer = stack.layers[0];
    let all = (steps + 1) * rows;
    let mut b = PlanBuilder::new(1);
    let groups_id = b.buffer("groups", Elem::U32, features + 1 + 2 * columns, Scope::Shared);
    let path = b.buffer("path", Elem::U32, steps * rows, Scope::Shared);
    let when = b.buffer("when", Elem::U32, features * rows, Scope::Shared);
    let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let (x, w, drop) = (reals("x", rows * xp), reals("w", stack.len), reals("drop", all * hp));
    let (sum, h) = (reals("sum", rows * hp), reals("h", all * hp));
    let (d, grad) = (reals("d", all * hp), reals("grad", stack.len));
    b.section("forward", |b| {
        // In two calls, as the policy does it step by step: the running sum must carry over.
        for (first_step, count) in [(0, 2), (2, 2)] {
            b.call(
                k::Embed {
                    rows: rows as u32,
                    first_step,
                    steps: count,
                    columns: columns as u32,
                    features: features as u32,
                    hidden_pitch: hp as u32,
                    x_pitch: xp as u32,
                    weight: layer.weight as u32,
                    bias: layer.bias as u32,
                    dropout: 1,
                    tape: 1,
                },
                &[groups_id, x, path, w, drop, sum, h],
            );
        }
    });
    b.section("backward", |b| {
        let (each_row, each_step) = (rows as u32, steps as u32 + 1);
        let suffix = k::EmbedSuffix { rows: each_row, steps: each_step, pitch: hp as u32 };
        b.call(suffix, &[d]);
        b.call(
            k::EmbedGrad {
                rows: rows as u32,
                steps: steps as u32 + 1,
                columns: columns as u32,
                features: features as u32,
                hidden_pitch: hp as u32,
                x_pitch: xp as u32,
                weight: layer.weight as u32,
                bias: layer.bias as u32,
                divisor: 2,
                ..Default::default()
            },
            &[groups_id, x, when, d, grad],
        );
    });

    // Instance 0 acquires 1, 0, 2; instance 1 only 2; instance 2 acquires 0, 1.
    let stop = features as u32;
    let paths = [1, 2, 0, 0, stop, 1, 2, stop, stop];
    let mut whens = vec![NEVER; rows * features];
    for (at, &feature) in paths.iter().enumerate().filter(|(_, f)| **f != stop) {
        whens[(at % rows) * features + feature as usize] = (at / rows) as u32;
    }
    let mut rig = Rig::new(b);
    let mut random = Random::new(9);
    let weights = stack.init(6, 0);
    let cotangent = random.padded(all, hidden);
    rig.set_words("groups", &groups::words(features, &group_of_column));
    rig.set_words("path", &paths).set_words("when", &whens);
    rig.set("w", &weights).set("x", &random.padded(rows, columns));
    let multipliers = random.choice(all * hp, &[0.0, 2.0, 2.0]);
    rig.set("drop", &multipliers);
    let h = rig.run("forward").get("h");
    let gated: Vec<f64> =
        (0..all * hp).map(|i| if h[i] > 0.0 { cotangent[i] * multipliers[i] } else { 0.0 }).collect();
    let got = rig.set("d", &gated).run("backward").get("grad");
    let numeric = differences(&weights[..layer.bias + hidden], |v| {
        rig.set("w", v);
        rig.run("forward").get("h").iter().zip(&cotangent).map(|(h, c)| h * c).sum::<f64>() / 2.0
    });
    // Padding columns take part in the sums but not in the network.
    let is_live = |i: usize| i % hp < hidden && (i / hp < columns + features || i >= layer.bias);
    let live: Vec<usize> = (0..layer.bias + hidden).filter(|&i| is_live(i)).collect();
    let pick = |values: &[f64]| live.iter().map(|&i| values[i]).collect::<Vec<_>>();
    assert_close("first layer", &pick(&got), &pick(&numeric));
}

#[test]
fn weighted_cross_entropy() {
    let (rows, batch, classes) = (6usize, 3usize, 5usize);
    let pitch = querent::nn::pitch(classes);
    let mut b = PlanBuilder::new(1);
    let y = b.buffer("y", Elem::U32, batch, Scope::Shared);
    let logits = b.buffer("logits", Elem::F32, rows * pitch, Scope::Shared);
    let costs = b.buffer("costs", Elem::F32, 2 + classes, Scope::Shared);
    let losses_id = b.buffer("losses", Elem::F32, rows * losses::LEN, Scope::Shared);
    let tape = b.buffer("scalars", Elem::F32, rows * scalars::LEN, Scope::Shared);
    let stride = scalars::LEN as u32;
    for (name, weight_stride, from_row) in [("loss", 0, 0), ("weighted", stride, 0), ("later", 0, 4)] {
        b.section(name, |b| {
            b.call(
                k::Loss {
                    rows: rows as u32,
                    batch: batch as u32,
                    classes: classes as u32,
                    pitch: pitch as u32,
                    weights: 2,
                    weight_stride,
                    weight_word: scalars::WEIGHT as u32,
                    from_row,
                },
                &[logits, y, costs, losses_id, tape],
            );
        });
    }
    let mut rig = Rig::new(b);
    let values = Random::new(4).padded(rows, classes).iter().map(|v| 4.0 * v).collect::<Vec<_>>();
    rig.set_words("y", &[0, 4, 2]);
    rig.set("costs", &[9.0, 9.0, 0.5, 1.0, 3.0, 1.0, 2.0]);
    let weights = Random::new(5).positives(rows * scalars::LEN);
    rig.set("scalars", &weights);
    let loss = |rig: &mut Rig, v: &[f64]| {
        rig.set("logits", v).run("loss").get("losses").iter().step_by(losses::LEN).sum::<f64>()
    };
    let numeric = differences(&values, |v| loss(&mut rig, v));
    loss(&mut rig, &values);
    assert_close("logits", &rig.get("logits"), &numeric);
    // The predictor's own weight of a row multiplies the gradient, but not the loss.
    let (plain, gradient) = (rig.get("losses"), rig.get("logits"));
    rig.set("logits", &values).run("weighted");
    assert_eq!(rig.get("losses"), plain);
    let weight = |row: usize| weights[row * scalars::LEN + scalars::WEIGHT];
    let expected: Vec<f64> = (0..rows * pitch).map(|i| weight(i / pitch) * gradient[i]).collect();
    assert_close("weighted logits", &rig.get("logits"), &expected);
    // −w ln softmax, by hand, for the first row.
    let mass: f64 = values[..classes].iter().map(|v| v.exp()).sum();
    assert!((rig.get("losses")[0] - 0.5 * (mass.ln() - values[0])).abs() < 1e-12);
    // Rows before the first one that counts weigh nothing; the others are as they were.
    rig.set("logits", &values).run("later");
    for row in 0..rows {
        let counts = f64::from(u8::from(row >= 4));
        assert_eq!(rig.get("losses")[row * losses::LEN], counts * plain[row * losses::LEN]);
        let of_row = row * pitch..(row + 1) * pitch;
        let expected: Vec<f64> = gradient[of_row.clone()].iter().map(|g| counts * g).collect();
        assert_close("later rows", &rig.get("logits")[of_row], &expected);
    }
    // An instance that is not there weighs nothing.
    rig.set_words("y", &[0, NEVER, 2]).set("logits", &values).run("loss");
    assert_eq!(rig.get("losses")[losses::LEN], 0.0);
    assert!(rig.get("logits")[pitch..2 * pitch].iter().all(|&g| g == 0.0));
}

/// From masks to the dense input, and the gradient's way back, one step of `mask_carry` included.
#[test]
fn masks() {
    let group_of_column = [2u32, 0, 0, 1, 2, 2, 0];
    let (rows, columns, features) = (4usize, 7usize, 3usize);
    let (xp, dp, ip) =
        (querent::nn::pitch(columns), querent::nn::pitch(features), querent::nn::pitch(columns + features));
    let mut b = PlanBuilder::new(1);
    let groups_id = b.buffer("groups", Elem::U32, features + 1 + 2 * columns, Scope::Shared);
    let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let (x, relax, input) = (reals("x", rows * xp), reals("relax", rows * 2 * dp), reals("input", rows * ip));
    let (din, grad_mask) = (reals("din", rows * ip), reals("grad_mask", rows * dp));
    let (tape_scalars, from_loss, m) =
        (reals("scalars", rows * scalars::LEN), reals("from_loss", rows * dp), reals("m", rows * dp));
    let sizes = [rows, columns, features, xp, ip, dp].map(|size| size as u32);
    let [rows_u, columns_u, features_u, x_pitch, input_pitch, pitch] = sizes;
    b.section("forward", |b| {
        b.call(
            k::Expand {
                rows: rows_u,
                step: 0,
                columns: columns_u,
                features: features_u,
                x_pitch,
                mask_stride: 2 * pitch,
                input_pitch,
                nothing_seen: 0,
            },
            &[groups_id, x, relax, input],
        );
    });
    let carry = |steps, through| own::MaskCarry {
        rows: rows_u,
        step: 0,
        steps,
        columns: columns_u,
        features: features_u,
        x_pitch,
        input_pitch,
        pitch,
        through,
    };
    b.section("backward", |b| {
        b.call(
            k::MaskGrad {
                rows: rows_u,
                batch: rows_u,
                columns: columns_u,
                features: features_u,
                x_pitch,
                input_pitch,
                pitch,
            },
            &[groups_id, x, din, grad_mask],
        );
        b.call(carry(2, 1), &[groups_id, x, din, relax, tape_scalars, from_loss, m]);
    });
    b.section("without", |b| {
        b.call(carry(2, 0), &[groups_id, x, din, relax, tape_scalars, from_loss, m]);
    });
    // The end of the tape, where M starts.
    b.section("last", |b| {
        b.call(carry(0, 1), &[groups_id, x, din, relax, tape_scalars, from_loss, m]);
    });
    let mut rig = Rig::new(b);
    let mut random = Random::new(2);
    rig.set_words("groups", &groups::words(features, &group_of_column));
    rig.set("x", &random.padded(rows, columns));
    let cotangent = random.padded(rows, columns + features);
    let (relaxed, later, loss_grad) =
        (random.positives(rows * 2 * dp), random.normals(rows * dp), random.normals(rows * dp));
    let tape = random.positives(rows * scalars::LEN);
    rig.set("din", &cotangent).set("relax", &relaxed).set("m", &later);
    rig.set("from_loss", &loss_grad).set("scalars", &tape);
    rig.run("backward");
    let (direct, carried) = (rig.get("grad_mask"), rig.get("m"));
    let masks: Vec<f64> = (0..rows).flat_map(|row| relaxed[row * 2 * dp..][..features].to_vec()).collect();
    let through_input = |rig: &mut Rig, v: &[f64]| {
        let mut full = relaxed.clone();
        for row in 0..rows {
            full[row * 2 * dp..][..features].copy_from_slice(&v[row * features..][..features]);
        }
        rig.set("relax", &full)
            .run("forward")
            .get("input")
            .iter()
            .zip(&cotangent)
            .map(|(i, c)| i * c)
            .sum::<f64>()
    };
    let numeric = differences(&masks, |v| through_input(&mut rig, v));
    assert_close("mask", &rig::unpadded(&direct, features), &numeric);
    // With the next mask m̃' = m̃ + (1 − m̃) r̃ weighed by M and the loss by s q. The loss's gradient comes
    // times the predictor's weight, which is none of J's business.
    let beside_input = |v: &[f64]| {
        let mut total = 0.0;
        for row in 0..rows {
            let s = &tape[row * scalars::LEN..][..scalars::LEN];
            for i in 0..features {
                let (mask, r) = (v[row * features + i], relaxed[row * 2 * dp + dp + i]);
                total += later[row * dp + i] * (mask + (1.0 - mask) * r);
                let from_loss = loss_grad[row * dp + i] / s[scalars::WEIGHT];
                total += s[scalars::SURVIVAL] * s[scalars::HALT] * from_loss * mask;
            }
        }
        total
    };
    let numeric = differences(&masks, |v| through_input(&mut rig, v) + beside_input(v));
    assert_close("carried mask", &rig::unpadded(&carried, features), &numeric);
    let without =
        rig::unpadded(&rig.set("relax", &relaxed).set("m", &later).run("without").get("m"), features);
    assert_close("carried mask, the policy's input left out", &without, &differences(&masks, beside_input));
    let last = rig::unpadded(&rig.run("last").get("m"), features);
    let s = |row: usize, word: usize| tape[row * scalars::LEN + word];
    let by_hand: Vec<f64> = rig::unpadded(&loss_grad, features)
        .iter()
        .enumerate()
        .map(|(i, g)| s(i / features, scalars::SURVIVAL) * g / s(i / features, scalars::WEIGHT))
        .collect();
    assert_close("the last mask", &last, &by_hand);
}

/// Adam against its definition, over three steps and two lanes.
#[test]
fn adam() {
    let mut b = PlanBuilder::new(2);
    let mut shared = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let (w, mean, variance) = (shared("w", 4), shared("mean", 4), shared("variance", 4));
    let (hyper_id, powers) = (shared("hyper", hyper::LEN), shared("powers", 4));
    let grad = b.buffer("grad", Elem::F32, 4, Scope::Lane);
    let clock = b.buffer("clock", Elem::U32, 8, Scope::Shared);
    let status = b.buffer("status", Elem::U32, 4, Scope::Shared);
    b.section("step", |b| {
        b.call(
            k::Adam { len: 4, lanes: 2, rate: hyper::RATE_POLICY as u32, power: 0 },
            &[w, mean, variance, grad, hyper_id, powers, clock, status],
        );
        b.call(k::Advance { slots: 1, chunk: 0, batches: 2 }, &[clock, powers, hyper_id]);
    });
    let mut rig = Rig::new(b);
    let mut hypers = vec![0.0; hyper::LEN];
    let (rate, beta1, beta2, epsilon) = (0.01, 0.9, 0.999, 1e-8);
    hypers[hyper::RATE_POLICY] = rate;
    hypers[settings::BETA1] = beta1;
    hypers[settings::BETA2] = beta2;
    hypers[settings::EPSILON] = epsilon;
    rig.set("hyper", &hypers).set("powers", &[1.0; 4]).set_words("status", &[u32::MAX; 4]);
    let (mut w, mut m, mut v) = ([1.0, -2.0, 0.5, 0.0], [0.0; 4], [0.0; 4]);
    rig.set("w", &w);
    for t in 1..=3 {
        let lanes = Random::new(t).normals(8);
        rig.set("grad", &lanes).run("step");
        for i in 0..4 {
            let g: f64 = lanes[i] + lanes[4 + i];
            m[i] = beta1 * m[i] + (1.0 - beta1) * g;
            v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
            let (m_hat, v_hat): (f64, f64) =
                (m[i] / (1.0 - beta1.powi(t as i32)), v[i] / (1.0 - beta2.powi(t as i32)));
            w[i] -= rate * m_hat / (v_hat.sqrt() + epsilon);
        }
        assert_close("weights", &rig.get("w"), &w);
    }
    // Three steps are one pass of two batches and one more.
    assert_eq!(rig.words("clock")[2..5], [3, 1, 1]);
    // A gradient that is not finite is noted with its step and moves nothing.
    let before = rig.get("w");
    rig.set("grad", &[f64::NAN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).run("step");
    assert_eq!(rig.words("status")[0], 3);
    assert_eq!(rig.get("w")[0], before[0]);
}

/// A step up to its update: J, what the predictor minimises, and a gradient summed over its lanes. The
/// predictor's loss is put together from the tape, for the metric leaves its weights out:
///   Σ_t ω_t ℓ_t/(k + 1), and ω ℓ of the sub-masks of the path, which take the place of the tape's first rows.
fn whole_step(trainer: &mut Stepper, steps: usize, grad: BufferId) -> ([f64; 2], Vec<f64>) {
    let plan = trainer.program().plan();
    let (tape, losses_id) = (plan.find("scalars").expect("declared"), plan.find("losses").expect("declared"));
    let (tape_len, losses_len) = (plan.buffer(tape).len, plan.buffer(losses_id).len);
    let micros: Vec<_> = plan.sections().iter().filter(|(name, _)| name.starts_with("step.micro.")).collect();
    assert!(micros.len() <= plan.lanes(), "a lane has one micro-batch, or its tape would be gone");
    let micros: Vec<_> = micros
        .into_iter()
        .map(|(_, section)| {
            let range = section.calls();
            let is_part = |call: &usize| plan.calls()[*call].kernel.is(own::Submask::KERNEL);
            let part = range.clone().find(is_part).unwrap_or(range.end);
            (range, part)
        })
        .collect();
    let batch = trainer.batch();
    let rows = losses_len / losses::LEN / (steps + 1);
    let weighted = |trainer: &Stepper, lane: usize, rows: usize| {
        let s = trainer.program().read_blocking(tape).expect("reads");
        let l = trainer.program().read_blocking(losses_id).expect("reads");
        let weight = |row: usize| s[lane * tape_len + row * scalars::LEN + scalars::WEIGHT];
        let loss = |row: usize| l[lane * losses_len + row * losses::LEN + losses::LOSS];
        (0..rows).map(|row| weight(row) * loss(row)).sum::<f64>() / batch as f64
    };
    let prepare = crate::common::section(trainer.program().plan(), "step.prepare");
    trainer.program_mut().run(prepare, 1);
    let mut prediction = 0.0;
    for (lane, (micro, part)) in micros.into_iter().enumerate() {
        let rows = rows.min(batch - lane * rows);
        trainer.program_mut().run(micro.start..part, 1);
        prediction += weighted(trainer, lane, (steps + 1) * rows) / (steps + 1) as f64;
        if part < micro.end {
            trainer.program_mut().run(part..micro.end, 1);
            prediction += weighted(trainer, lane, rows);
        }
    }
    let means = trainer.means_blocking().expect("finite");
    let stage = *trainer.stage();
    if stage.focus == 0.0 && stage.submasks == 0.0 {
        assert!((means["prediction_loss"] - prediction).abs() < 1e-12, "the metric is the plain loss");
    }
    let gradient = trainer.program().read_blocking(grad).expect("reads");
    let len = trainer.program().plan().buffer(grad).len;
    let total = (0..len).map(|i| gradient.iter().skip(i).step_by(len).sum()).collect();
    ([means["objective"], prediction], total)
}

/// The whole thing: J by the policy's weights and L_pred by the predictor's, through the soft rollout
/// (whose gradient is exact), at odd sizes, with groups, class weights, dropout and several lanes; as
/// published, with an exact stop and a hazard, with an α of its own for each instance, with features that cannot be had (of
/// some instances none), and with a predictor that cares where the policy stops and for sub-masks of its paths.
#[test]
fn the_whole_soft_rollout() {
    let plain = Stage { tau_soft: 0.6, lambda: 0.03, ..Stage::default() };
    let exact = Stage { exact_stop: true, hazard: 0.1, ..plain };
    let all = Stage { focus: 0.6, submasks: 0.3, ..exact };
    let [scale, trained] =
        [[0.02, 0.8], [0.05, 0.5]].map(|ends| AlphaRange::try_from(ends).expect("a range"));
    let many = Stage { tradeoffs: Some(Tradeoffs { scale, trained }), ..exact };
    for (features, steps, batch, hidden, stage) in [
        (1, 1, 3, 3, plain),
        (4, 4, 5, 5, plain),
        (6, 3, 40, 4, plain),
        (4, 4, 5, 5, Stage { focus: 0.4, ..plain }),
        (4, 4, 5, 5, exact),
        (6, 3, 40, 4, all),
        (4, 4, 5, 5, many),
        (6, 3, 40, 4, Stage { submasks: 0.3, ..many }),
        (4, 4, 12, 5, Stage { unavailable: 0.7, ..plain }),
        (4, 4, 12, 5, Stage { unavailable: 0.7, submasks: 0.3, ..many }),
    ] {
        let data = toy(features, batch);
        let config = Config::default().with(|c| {
            c.alpha = if stage.tradeoffs.is_some() { Alpha::Auto } else { 0.2.into() };
            c.horizon = Some(steps);
            c.unavailable = stage.unavailable;
            c.networks.policy = [hidden, hidden + 1];
            c.networks.predictor = [hidden + 2, hidden];
            c.batch = batch;
            c.rollout = Rollout::Soft;
            c.predictor.submasks = stage.submasks;
            c.gradient.tau_hard = 1.2;
            c.seed = 11;
        });
        let mut trainer = Stepper::new(&Engine::cpu_f64(), &data, config).unwrap_or_else(|e| panic!("{e}"));
        trainer.set_stage(stage).unwrap_or_else(|e| panic!("{e}"));
        for (index, name) in ["policy", "predictor"].into_iter().enumerate() {
            let id = trainer.program().plan().find(&format!("{name}.values")).expect("declared");
            let grad = trainer.program().plan().find(&format!("{name}.grad")).expect("declared");
            let weights = trainer.program().read_blocking(id).expect("reads");
            let mut run = |v: &[f64]| {
                trainer.program_mut().write(id, 0, v);
                let (value, gradient) = whole_step(&mut trainer, steps, grad);
                (value[index], gradient)
            };
            let (_, gradient) = run(&weights);
            let numeric = differences(&weights, |v| run(v).0);
            run(&weights);
            // Padding is no part of the networks: its derivative is not the engine's business.
            let (got, numeric): (Vec<f64>, Vec<f64>) = weights
                .iter()
                .zip(gradient.iter().zip(&numeric))
                .filter(|(w, _)| **w != 0.0)
                .map(|(_, (g, n))| (*g, *n))
                .unzip();
            assert_close(&format!("{name}, d = {features}, {stage:?}"), &got, &numeric);
            assert!(got.iter().any(|g| *g != 0.0), "the gradient of {name} is all zero: nothing was tested");
        }
    }
}

/// The warm-up's loss by the predictor's weights.
#[test]
fn the_warm_up_step() {
    let data = toy(5, 37);
    let config = Config::default().with(|c| {
        c.networks.predictor = [5, 6];
        c.networks.policy = [3, 3];
        c.batch = 37;
        c.seed = 3;
    });
    let mut trainer = Stepper::new(&Engine::cpu_f64(), &data, config).unwrap_or_else(|e| panic!("{e}"));
    let plan = trainer.program().plan();
    let (id, grad) =
        (plan.find("predictor.values").expect("declared"), plan.find("predictor.grad").expect("declared"));
    let section = crate::common::section(plan, "warm_up");
    // Without Adam and the clock, the last two calls.
    let section = section.start..section.end - 2;
    let weights = trainer.program().read_blocking(id).expect("reads");
    let mut run = |v: &[f64]| {
        trainer.program_mut().write(id, 0, v);
        trainer.program_mut().run(section.clone(), 1);
        let gradient = trainer.program().read_blocking(grad).expect("reads");
        let total: Vec<f64> =
            (0..weights.len()).map(|i| gradient.iter().skip(i).step_by(weights.len()).sum()).collect();
        (trainer.means_blocking().expect("finite")["prediction_loss"], total)
    };
    let (_, gradient) = run(&weights);
    let numeric = differences(&weights, |v| run(v).0);
    let (got, numeric): (Vec<f64>, Vec<f64>) = weights
        .iter()
        .zip(gradient.iter().zip(&numeric))
        .filter(|(w, _)| **w != 0.0)
        .map(|(_, (g, n))| (*g, *n))
        .unzip();
    assert_close("predictor", &got, &numeric);
}
