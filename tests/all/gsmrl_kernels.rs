//! Proximal policy optimisation by hand: advantages, the clipped surrogate's gradient by central differences, the critic's;
//! and GSMRL's surrogate in whole steps.

use crate::gdfs_kernels::{gradient, up_to_the_update};
use crate::rig::{Random, Rig, assert_close, differences, toy, unpadded};
use querent::Engine;
use querent::engine::kernels::words::NEVER;
use querent::engine::kernels::{self as k, kept};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::methods::gsmrl::{Config, Stepper};
use querent::nn::pitch;

/// Words of the settings that these tests have.
const DISCOUNT: usize = 0;
const DECAY: usize = 1;
const CLIP: usize = 2;
const BONUS: usize = 3;

#[test]
fn advantages() {
    let (rows, steps, p) = (3, 4, pitch(1));
    let mut b = PlanBuilder::new(1);
    let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let (values, settings) = (reals("values", rows * steps * p), reals("settings", 4));
    let of_steps = reals("kept", rows * steps * kept::LEN);
    let call = k::Advantage {
        rows: rows as u32,
        steps: steps as u32,
        pitch: p as u32,
        discount: DISCOUNT as u32,
        decay: DECAY as u32,
    };
    b.section("advantage", |b| b.call(call, &[values, settings, of_steps]));
    let mut rig = Rig::new(b);
    let mut random = Random::new(1);
    let (v, mut words) = (random.normals(rows * steps * p), random.normals(rows * steps * kept::LEN));
    // The instances end after the last, the first and the third step.
    let ends = [4, 1, 3];
    for at in 0..rows * steps {
        words[at * kept::LEN + kept::LIVE] = if at / rows < ends[at % rows] { 1.0 } else { 0.0 };
    }
    let (discount, decay) = (0.9, 0.7);
    let got = rig
        .set("values", &v)
        .set("kept", &words)
        .set("settings", &[discount, decay, 0.0, 0.0])
        .run("advantage")
        .get("kept");
    for row in 0..rows {
        let value = |t: usize| if t < ends[row] { v[(t * rows + row) * p] } else { 0.0 };
        let error =
            |t: usize| -words[(t * rows + row) * kept::LEN + kept::COST] + discount * value(t + 1) - value(t);
        for t in 0..steps {
            // The definition: a sum over all that follows.
            let sum: f64 = (t..ends[row]).map(|u| (discount * decay).powi((u - t) as i32) * error(u)).sum();
            let of = &got[(t * rows + row) * kept::LEN..][..kept::LEN];
            let expected = if t < ends[row] { [sum, sum + value(t)] } else { [0.0; 2] };
            assert_close("the advantage", &[of[kept::ADVANTAGE], of[kept::TARGET]], &expected);
        }
    }
}

#[test]
fn the_clipped_surrogate() {
    let (batch, steps, features) = (5, 3, 4);
    let (rows, p) = (batch * steps, pitch(features + 1));
    let mut b = PlanBuilder::new(1);
    let acquired_at = b.buffer("acquired_at", Elem::U32, batch * features, Scope::Shared);
    let path = b.buffer("path", Elem::U32, rows, Scope::Shared);
    let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let (logits, settings) = (reals("logits", rows * p), reals("settings", 4));
    let (of_steps, values) = (reals("kept", rows * kept::LEN), reals("values", rows * pitch(1)));
    let call = k::ClippedChoice {
        rows: rows as u32,
        batch: batch as u32,
        features: features as u32,
        pitch: p as u32,
        clip: CLIP as u32,
        bonus: BONUS as u32,
    };
    b.section("choice", |b| b.call(call, &[logits, acquired_at, path, settings, of_steps]));
    let call = k::ValueError { rows: rows as u32, pitch: pitch(1) as u32 };
    b.section("value", |b| b.call(call, &[values, of_steps]));
    let mut rig = Rig::new(b);
    let mut random = Random::new(4);
    let z = random.padded(rows, features + 1);
    // Instance i acquires i, i + 1, …; the second stops at once, the third after a step.
    let (mut taken, mut when) = (vec![features as u32; rows], vec![NEVER; batch * features]);
    let ends = [steps, 0, 1, steps, steps];
    let mut words = random.normals(rows * kept::LEN);
    for row in 0..rows {
        let (t, i) = (row / batch, row % batch);
        words[row * kept::LEN + kept::LIVE] = if t <= ends[i] { 1.0 } else { 0.0 };
        // Ratios on both sides of both ends.
        words[row * kept::LEN + kept::LOG_CHANCE] = [-0.9, -1.5, -2.5][row % 3];
        if t < ends[i] {
            let feature = (i + t) % features;
            (taken[row], when[i * features + feature]) = (feature as u32, t as u32);
        }
    }
    let (clip, bonus) = (0.2, 0.05);
    rig.set_words("path", &taken).set_words("acquired_at", &when).set("settings", &[0.0, 0.0, clip, bonus]);
    let mut clipped = 0;
    let mut loss = |z: &[f64]| {
        let mut total = 0.0;
        clipped = 0;
        for row in (0..rows).filter(|row| words[row * kept::LEN + kept::LIVE] > 0.5) {
            let (t, i) = ((row / batch) as u32, row % batch);
            let open = |a: usize| a == features || when[i * features + a] >= t;
            let at = |a: usize| z[row * p + a];
            let mass: f64 = (0..=features).filter(|&a| open(a)).map(|a| at(a).exp()).sum();
            let log = |a: usize| at(a) - mass.ln();
            let of = &words[row * kept::LEN..][..kept::LEN];
            let (ratio, a) = ((log(taken[row] as usize) - of[kept::LOG_CHANCE]).exp(), of[kept::ADVANTAGE]);
            let surrogate = (ratio * a).min(ratio.clamp(1.0 - clip, 1.0 + clip) * a);
            clipped += usize::from(surrogate != ratio * a);
            let entropy: f64 = (0..=features).filter(|&a| open(a)).map(|a| -log(a) * log(a).exp()).sum();
            total -= surrogate + bonus * entropy;
        }
        total
    };
    let numeric = differences(&z, &mut loss);
    loss(&z);
    assert!(clipped > 1 && clipped < rows / 2, "{clipped} of {rows} are clipped");
    let got = rig.set("logits", &z).set("kept", &words).run("choice").get("logits");
    assert_close("the choices", &unpadded(&got, features + 1), &unpadded(&numeric, features + 1));

    let v = random.normals(rows * pitch(1));
    let got = rig.set("values", &v).run("value").get("values");
    for row in 0..rows {
        let of = &words[row * kept::LEN..][..kept::LEN];
        let expected = if of[kept::LIVE] > 0.5 { 2.0 * (v[row * 4] - of[kept::TARGET]) } else { 0.0 };
        assert!((got[row * 4] - expected).abs() < 1e-12, "row {row}");
    }
}

/// The surrogate's loss by all its weights, and the predictor's, with groups, known columns, class weights, several lanes,
/// and several micro-batches a lane.
#[test]
fn whole_steps_of_the_surrogate() {
    for (features, batch, tight) in [(1, 3, false), (4, 7, false), (4, 40, true)] {
        let data = toy(features, batch);
        let mut config = Config {
            horizon: Some(1),
            hidden: vec![4],
            surrogate_hidden: vec![4, 3],
            couplings: 2,
            batch,
            likelihood: 0.6,
            // Nothing is clipped.
            norm: 1e9,
            seed: 11,
            ..Config::default()
        };
        let engine = Engine::cpu_f64();
        if tight {
            config.memory_budget = Stepper::memory(&engine, &data, &config).expect("fits").working / 3;
        }
        let mut stepper = Stepper::new(&engine, &data, config.clone()).expect("fits");
        let plan = stepper.program().plan();
        let micro = Stepper::memory(&engine, &data, &config).expect("fits").micro_batches;
        assert_eq!(micro > plan.lanes(), tight, "{micro} micro-batches on {} lanes", plan.lanes());
        for (group, loss) in [("surrogate", "surrogate_loss"), ("predictor", "prediction_loss")] {
            let id = stepper.program().plan().find(&format!("{group}.values")).expect("declared");
            let weights = stepper.program().read_blocking(id).expect("reads");
            let mut run = |weights: &[f64]| {
                stepper.program_mut().write(id, 0, weights);
                let means = up_to_the_update(&mut stepper, "warm_up");
                let sum = means["surrogate_loss"] + means["prediction_loss"];
                assert!((means["objective"] - sum).abs() < 1e-12);
                (means[loss], gradient(&stepper, group))
            };
            let got = run(&weights).1;
            // Every so many: each takes a whole step.
            let live: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).step_by(3).collect();
            let at: Vec<f64> = live.iter().map(|&i| weights[i]).collect();
            let numeric = differences(&at, |values| {
                let mut moved = weights.clone();
                live.iter().zip(values).for_each(|(&i, &value)| moved[i] = value);
                run(&moved).0
            });
            run(&weights);
            let picked: Vec<f64> = live.iter().map(|&i| got[i]).collect();
            assert_close(&format!("{group}, d = {features}, B = {batch}"), &picked, &numeric);
            assert!(picked.iter().any(|&g| g != 0.0), "nothing was tested");
        }
    }
}
