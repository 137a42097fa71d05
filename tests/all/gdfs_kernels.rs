//! GDFS: its kernels by hand and by central differences, and whole steps in f64.

use crate::common::{self};
use crate::rig::{Random, Rig, assert_close, differences, toy, unpadded};
use querent::Engine;
use querent::data::Dataset;
use querent::engine::kernels as k;
use querent::engine::kernels::Params;
use querent::engine::kernels::words::{METRICS, NEVER, NO_LABEL, clock, losses, metrics as counted};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::methods::gdfs::kernels::{Concrete, ConcreteGrad, hyper, metrics, stream};
use querent::methods::gdfs::{Config, Stage, Stepper};
use querent::nn::{Stack, pitch};
use querent::policy::history::Means;
use querent::train::Method;

/// The largest of those that are open.
fn largest(values: &[f64], open: impl Fn(usize) -> bool) -> usize {
    let mut all = (0..values.len()).filter(|&i| open(i));
    let first = all.next().expect("one is open");
    all.fold(first, |best, i| if values[i] > values[best] { i } else { best })
}

/// A rollout of relaxed choices, forward as it is written down, backward by central differences.
#[test]
fn the_relaxed_choice() {
    for (rows, features, steps, temperature, gamma) in [
        (3, 1, 1, 2.0, 0.2),
        (5, 6, 4, 2.0, 0.2),
        (4, 9, 9, 0.5, 1.0),
        (5, 6, 3, 0.1, 0.2),
        (2, 19, 4, 1.0, 0.5),
    ] {
        let (p, all) = (pitch(features), rows * steps);
        let mut b = PlanBuilder::new(1);
        let acquired_at = b.buffer("acquired_at", Elem::U32, rows * features, Scope::Shared);
        let path = b.buffer("path", Elem::U32, all, Scope::Shared);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
        let (logits, gumbel, masks) =
            (reals("logits", all * p), reals("gumbel", 2 * all * p), reals("masks", all * p));
        let (settings, mask_grad) = (reals("settings", hyper::LEN), reals("mask_grad", all * p));
        let concrete = |step: usize, sample: u32| Concrete {
            rows: rows as u32,
            step: step as u32,
            features: features as u32,
            pitch: p as u32,
            first_row: (step * rows) as u32,
            fresh_row: ((steps + step) * rows) as u32,
            sample,
        };
        let buffers = [logits, gumbel, acquired_at, masks, path, settings];
        b.section("forward", |b| (0..steps).for_each(|step| b.call(concrete(step, 1), &buffers)));
        b.section("without a sample", |b| b.call(concrete(steps - 1, 0), &buffers));
        let back = ConcreteGrad {
            rows: rows as u32,
            steps: steps as u32,
            features: features as u32,
            pitch: p as u32,
        };
        b.section("backward", |b| b.call(back, &[logits, masks, mask_grad, acquired_at, settings]));

        let mut rig = Rig::new(b);
        let mut random = Random::new(features as u64);
        let [z, noise] = [all, 2 * all].map(|rows| random.padded(rows, features));
        let cotangent = random.padded(all, features);
        let mut words = [0.0; hyper::LEN];
        (words[hyper::TEMPERATURE], words[hyper::GAMMA]) = (temperature, gamma);
        rig.set("settings", &words).set("gumbel", &noise).set("mask_grad", &cotangent).set("logits", &z);
        // What the last rollout has left there is none of this one's business.
        rig.set_words("acquired_at", &vec![0; rows * features]);
        let (relaxed, chosen) = (rig.run("forward").get("masks"), rig.words("path"));
        for row in 0..rows {
            let mut seen = vec![false; features];
            for step in 0..steps {
                let at = (step * rows + row) * p;
                let fresh = ((steps + step) * rows + row) * p;
                let u: Vec<f64> =
                    (0..features).map(|i| (z[at + i] / gamma + noise[at + i]) / temperature).collect();
                let mass: f64 = (0..features).filter(|&i| !seen[i]).map(|i| u[i].exp()).sum();
                let by_hand: Vec<f64> =
                    (0..features).map(|i| if seen[i] { 1.0 } else { u[i].exp() / mass }).collect();
                assert_close("m̃", &relaxed[at..][..features], &by_hand);
                let noisy: Vec<f64> = (0..features).map(|i| z[at + i] / gamma + noise[fresh + i]).collect();
                let best = largest(&noisy, |i| !seen[i]);
                assert_eq!(chosen[step * rows + row] as usize, best, "step {step}");
                seen[best] = true;
            }
        }
        // When each was acquired.
        let mut when = vec![NEVER; rows * features];
        for (at, &feature) in chosen.iter().enumerate() {
            when[at % rows * features + feature as usize] = (at / rows) as u32;
        }
        assert_eq!(rig.words("acquired_at"), when);

        let got = rig.run("backward").get("logits");
        let numeric = differences(&z, |v| {
            let masks = rig.set("logits", v).run("forward").get("masks");
            assert_eq!(rig.words("path"), chosen, "the path must not move");
            masks.iter().zip(&cotangent).map(|(m, c)| m * c).sum()
        });
        assert_close(
            &format!("d = {features}, τ = {temperature}, γ = {gamma}"),
            &unpadded(&got, features),
            &unpadded(&numeric, features),
        );
        assert!(features == 1 || got.iter().any(|&g| g != 0.0), "nothing was tested");

        // Without a sample nothing is chosen; all that was chosen before is blocked. Step 0 begins anew.
        if steps > 1 {
            let before = (rig.words("path"), rig.words("acquired_at"));
            let last = rig.set("logits", &z).run("without a sample").get("masks");
            assert_eq!((rig.words("path"), rig.words("acquired_at")), before);
            let last = unpadded(&last[(steps - 1) * rows * p..], features);
            for (mask, when) in last.chunks_exact(features).zip(when.chunks_exact(features)) {
                let of =
                    |wanted: bool| mask.iter().zip(when).filter(move |(_, at)| (**at == NEVER) == wanted);
                assert!(of(false).all(|(mask, _)| *mask == 1.0));
                let open: f64 = of(true).map(|(mask, _)| mask).sum();
                assert!(steps == features || (open - 1.0).abs() < 1e-12, "{open}");
            }
        }
    }
}

/// Runs a section up to its update. Gives the means, and the gradient summed over its lanes.
pub fn before_the_update<M: Method>(
    stepper: &mut querent::train::Stepper<M>,
    section: &str,
) -> (Means, Vec<f64>) {
    let means = up_to_the_update(stepper, section);
    (means, gradient(stepper, M::NAME))
}

/// The same, without the gradient.
pub fn up_to_the_update<M: Method>(stepper: &mut querent::train::Stepper<M>, section: &str) -> Means {
    let plan = stepper.program().plan();
    let calls = common::section(plan, section);
    let is_adam = |call: &usize| plan.calls()[*call].kernel.is(k::Adam::KERNEL);
    let end = calls.clone().find(is_adam).expect("there is an update");
    stepper.program_mut().run(calls.start..end, 1);
    let means = stepper.means_blocking().expect("finite");
    assert_eq!(means["instances"], stepper.batch() as f64);
    means
}

/// The gradient of an optimiser group, summed over its lanes.
pub fn gradient<M: Method>(stepper: &querent::train::Stepper<M>, group: &str) -> Vec<f64> {
    let plan = stepper.program().plan();
    let grad = plan.find(&format!("{group}.grad")).expect("declared");
    let len = plan.buffer(grad).len;
    let lanes = stepper.program().read_blocking(grad).expect("reads");
    (0..len).map(|i| lanes.iter().skip(i).step_by(len).sum()).collect()
}

/// The objective by all weights of both networks, at odd sizes, with groups, class weights, dropout, several lanes, and
/// several micro-batches a lane. The path is sampled by noise of its own: it does not move with the weights.
#[test]
fn whole_steps() {
    for (features, steps, batch, hidden, dropout, tight) in [
        (1, 1, 3, vec![3], 0.0, false),
        (4, 4, 5, vec![5, 6], 0.3, false),
        (6, 3, 40, vec![4, 5], 0.3, false),
        (5, 3, 45, vec![4, 3, 5], 0.0, true),
    ] {
        let data = toy(features, batch);
        let mut config = Config {
            horizon: Some(steps),
            hidden,
            dropout,
            batch,
            gamma: 0.4,
            seed: 11,
            ..Config::default()
        };
        let engine = Engine::cpu_f64();
        if tight {
            let whole = Stepper::memory(&engine, &data, &config).expect("fits");
            config.memory_budget = whole.working / 3;
            let lanes = Stepper::new(&engine, &data, config.clone()).expect("fits").program().plan().lanes();
            let split = Stepper::memory(&engine, &data, &config).expect("fits").micro_batches;
            assert!(split > lanes, "{split} micro-batches on {lanes} lanes: nothing is added up");
        }
        let mut stepper = Stepper::new(&engine, &data, config.clone()).expect("fits");
        stepper.set_stage(Stage { temperature: 0.6, rate: 1e-3 }).expect("valid");
        let plan = stepper.program().plan();
        let (id, path) = (plan.find("gdfs.values").expect("declared"), plan.find("path").expect("declared"));
        let weights = stepper.program().read_blocking(id).expect("reads");
        // Where the predictor's weights start.
        let selector = Stack::new(0, &widths(&data, &config, features)).end();
        for section in ["warm_up", "step"] {
            let mut run = |v: &[f64]| {
                stepper.program_mut().write(id, 0, v);
                let (means, gradient) = before_the_update(&mut stepper, section);
                assert_eq!(means["objective"], means["prediction_loss"]);
                (means["objective"], gradient, stepper.program().read_words_blocking(path).expect("reads"))
            };
            let (_, gradient, taken) = run(&weights);
            let numeric = differences(&weights, |v| {
                let (objective, _, path) = run(v);
                assert_eq!(path, taken, "the path must not move");
                objective
            });
            // Padding is no part of the networks: its derivative is not the engine's business.
            let live: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).collect();
            let pick = |values: &[f64]| live.iter().map(|&i| values[i]).collect::<Vec<_>>();
            assert_close(&format!("{section}, d = {features}"), &pick(&gradient), &pick(&numeric));
            let has_gradient = |part: &[f64]| part.iter().any(|&g| g != 0.0);
            assert!(has_gradient(&gradient[selector..]), "the predictor's gradient is all zero");
            // The pretraining has no selector, and of one feature there is nothing to choose.
            let expected = section == "step" && features > 1;
            assert_eq!(has_gradient(&gradient[..selector]), expected, "{section}: the selector's gradient");
        }
    }
}

/// Inputs, hidden units and outputs of a network.
pub fn widths(data: &Dataset, config: &Config, outputs: usize) -> Vec<usize> {
    let inputs = data.problem().columns() + data.problem().features().len();
    [&[inputs][..], &config.hidden, &[outputs]].concat()
}

/// The pretraining's masks: as many of each cardinality, each feature as often as any other.
#[test]
fn masks_of_uniform_cardinality() {
    let (rows, features) = (4000usize, 7usize);
    let p = pitch(features);
    let mut b = PlanBuilder::new(1);
    let clock_id = b.buffer("clock", Elem::U32, clock::LEN, Scope::Shared);
    let masks = b.buffer("masks", Elem::F32, rows * p, Scope::Shared);
    for (name, first, most) in [("draw", 0, 1 << 16), ("from 100", 100, 1 << 16), ("few", 0, 1 << 14)] {
        let [rows, features, mask_stride] = [rows, features, p].map(|n| n as u32);
        let call = k::UniformMask { rows, features, mask_stride, first, most, stream: stream::CARDINALITY };
        b.section(name, |b| b.call(call, &[clock_id, masks]));
    }
    let mut rig = Rig::new(b);
    let mut draw = |step: u32, section: &str| {
        let mut words = [0; clock::LEN];
        (words[clock::SEED_LO], words[clock::STEP]) = (7, step);
        rig.set_words("clock", &words).set("masks", &vec![5.0; rows * p]).run(section);
        rig.get("masks")
    };
    let drawn = draw(1, "draw");
    assert!(
        drawn.chunks_exact(p).all(|row| row[features..].iter().all(|&v| v == 5.0)),
        "padding is left alone"
    );
    let drawn = unpadded(&drawn, features);
    assert!(drawn.iter().all(|&seen| seen == 0.0 || seen == 1.0));
    let (mut counts, mut shares) = (vec![0.0; features + 1], vec![0.0; features]);
    for row in drawn.chunks_exact(features) {
        counts[row.iter().sum::<f64>() as usize] += 1.0;
        shares.iter_mut().zip(row).for_each(|(share, seen)| *share += seen / rows as f64);
    }
    let expected = rows as f64 / (features + 1) as f64;
    let chi: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
    // Of seven degrees of freedom: one in a thousand seeds is above 24.3. With coins it would be thousands.
    assert!(chi < 24.3, "χ² = {chi:.1}, {counts:?}");
    assert!(shares.iter().all(|share| (share - 0.5).abs() < 0.03), "{shares:?}");
    // A quarter of them at most: an eighth on average.
    let few = unpadded(&draw(1, "few"), features);
    let share = few.iter().sum::<f64>() / few.len() as f64;
    assert!((share - 0.125).abs() < 0.01, "{share}");
    // Other masks at another step; the same ones for an instance, whichever micro-batch it is in.
    assert_ne!(unpadded(&draw(2, "draw"), features), drawn);
    let later = unpadded(&draw(1, "from 100"), features);
    assert_eq!(later[..(rows - 100) * features], drawn[100 * features..]);
}

#[test]
fn losses_are_added_up_by_hand() {
    let (batch, steps) = (3, 2);
    let mut b = PlanBuilder::new(1);
    let y = b.buffer("y", Elem::U32, batch, Scope::Shared);
    let tape = b.buffer("losses", Elem::F32, steps * batch * losses::LEN, Scope::Shared);
    let sums = b.buffer("metrics", Elem::F32, METRICS, Scope::Shared);
    for (name, word, training) in [("training", counted::OBJECTIVE, 1), ("soft", metrics::SOFT, 0)] {
        let call = k::MeanLoss {
            rows: (steps * batch) as u32,
            batch: batch as u32,
            divisor: steps as u32,
            stride: losses::LEN as u32,
            at: losses::LOSS as u32,
            word: word as u32,
            training,
        };
        b.section(name, |b| b.call(call, &[tape, y, sums]));
    }
    let mut rig = Rig::new(b);
    let values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let of_rows: Vec<f64> = (0..values.len() * losses::LEN)
        .map(|i| if i % losses::LEN == losses::LOSS { values[i / losses::LEN] } else { 99.0 })
        .collect();
    rig.set("losses", &of_rows).set_words("y", &[0, 1, 0]);
    let expect = |rig: &Rig, expected: &[(usize, f64)]| {
        let mut all = vec![0.0; METRICS];
        expected.iter().for_each(|&(word, sum)| all[word] = sum);
        assert_eq!(rig.get("metrics"), all);
    };
    let sums = |objective, instances| {
        [(counted::OBJECTIVE, objective), (counted::LOST, objective), (counted::INSTANCES, instances)]
    };
    rig.run("training");
    expect(&rig, &sums(31.5, 3.0));
    rig.run("training");
    expect(&rig, &sums(63.0, 6.0));
    // An instance that is not there counts for nothing, at no step; nor does an evaluation count instances.
    rig.set_words("y", &[0, NO_LABEL, 0]).set("metrics", &[0.0; METRICS]).run("soft");
    expect(&rig, &[(metrics::SOFT, 22.5)]);
}
