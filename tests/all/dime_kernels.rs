//! DIME: its kernels by hand and by central differences, and whole steps in f64.

use crate::common;
use crate::gdfs_kernels::before_the_update;
use crate::rig::{Random, Rig, assert_close, differences, toy};
use querent::Engine;
use querent::engine::kernels as k;
use querent::engine::kernels::Params;
use querent::engine::kernels::words::{NEVER, clock, losses};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::methods::dime::kernels::{Choose, ValueGrad, bounds, hyper};
use querent::methods::dime::{Config, Stage, Stepper};
use querent::nn::pitch;

/// Sizes of a rollout of choices.
#[derive(Clone, Copy)]
struct Shape {
    rows: usize,
    features: usize,
    classes: usize,
    steps: usize,
}

impl Shape {
    fn pitch(&self) -> usize {
        pitch(self.classes + self.features)
    }

    /// A plan with a rollout of choices, and what they are told.
    fn rig(&self, explore: u32) -> Rig {
        let Shape { rows, features, classes, steps } = *self;
        let mut b = PlanBuilder::new(1);
        let clock_id = b.buffer("clock", Elem::U32, clock::LEN, Scope::Shared);
        let acquired_at = b.buffer("acquired_at", Elem::U32, rows * features, Scope::Shared);
        let path = b.buffer("path", Elem::U32, rows * steps, Scope::Shared);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
        let outputs = reals("outputs", rows * (steps + 1) * self.pitch());
        let (costs, settings) = (reals("costs", features + classes), reals("settings", hyper::LEN));
        let kept = reals("bounds", rows * (steps + 1) * bounds::LEN);
        let tape = reals("losses", rows * (steps + 1) * losses::LEN);
        let sizes = [rows, features, classes, self.pitch()].map(|n| n as u32);
        b.section("rollout", |b| {
            for step in 0..steps as u32 {
                let [rows, features, classes, pitch] = sizes;
                let first_row = step * rows;
                let call = Choose { rows, step, features, classes, pitch, first_row, first: 3, explore };
                b.call(call, &[clock_id, outputs, costs, settings, acquired_at, path, kept]);
            }
        });
        b.section("grad", |b| {
            let [rows, features, classes, pitch] = sizes;
            let call = ValueGrad { rows, steps: steps as u32, features, classes, pitch };
            b.call(call, &[outputs, path, tape, kept]);
        });
        Rig::new(b)
    }
}

fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

/// What a row is expected to lose: the mean of w_y (−ln f_y) over the labels as they occur, p ∝ f/w.
fn expected_loss(logits: &[f64], weights: &[f64]) -> f64 {
    let mass: f64 = logits.iter().map(|z| z.exp()).sum();
    let f: Vec<f64> = logits.iter().map(|z| z.exp() / mass).collect();
    let total: f64 = f.iter().zip(weights).map(|(f, w)| f / w).sum();
    f.iter().zip(weights).map(|(f, w)| f / w / total * w * -f.ln()).sum()
}

fn largest(values: &[f64], open: impl Fn(usize) -> bool) -> usize {
    let mut all = (0..values.len()).filter(|&i| open(i));
    let first = all.next().expect("one is open");
    all.fold(first, |best, i| if values[i] > values[best] { i } else { best })
}

/// A rollout by hand, by quotients and with a price; the gradient of what values are wrong by against differences.
#[test]
fn choices_and_their_error() {
    for (rows, features, classes, steps, price) in [
        (3, 1, 2, 1, None),
        (5, 6, 3, 4, None),
        (4, 9, 2, 9, None),
        (5, 6, 4, 3, Some(0.2)),
        (2, 19, 3, 4, Some(0.05)),
    ] {
        let shape = Shape { rows, features, classes, steps };
        let mut rig = shape.rig(0);
        let mut random = Random::new(features as u64);
        let (p, all) = (shape.pitch(), rows * (steps + 1));
        let outputs = random.padded(all, classes + features);
        let mut costs = random.positives(features);
        costs[0] = 0.0;
        let weights = if features % 2 == 0 { random.positives(classes) } else { vec![1.0; classes] };
        let lost = random.positives(all * losses::LEN);
        let mut words = [0.0; hyper::LEN];
        (words[hyper::RATIO], words[hyper::PRICE]) =
            (f64::from(u8::from(price.is_none())), price.unwrap_or(0.0));
        rig.set("settings", &words).set("costs", &[costs.clone(), weights.clone()].concat());
        rig.set("outputs", &outputs).set("losses", &lost);
        // What the last rollout has left there is none of this one's business.
        rig.set_words("acquired_at", &vec![0; rows * features]);
        let (path, kept) = (rig.run("rollout").words("path"), rig.get("bounds"));
        let mut when = vec![NEVER; rows * features];
        for (at, &chosen) in path.iter().enumerate() {
            let (logits, values) = outputs[at * p..][..classes + features].split_at(classes);
            let bound = expected_loss(logits, &weights);
            assert_close("the bound", &[kept[at * bounds::LEN + bounds::BOUND]], &[bound]);
            let score = |i: usize| match price {
                None => sigmoid(values[i]) * bound / costs[i].max(1e-3),
                Some(price) => sigmoid(values[i]) * bound - price * costs[i],
            };
            let scores: Vec<f64> = (0..features).map(score).collect();
            let seen = &mut when[at % rows * features..][..features];
            assert_eq!(chosen as usize, largest(&scores, |i| seen[i] == NEVER), "tape row {at}");
            seen[chosen as usize] = (at / rows) as u32;
        }
        assert_eq!(rig.words("acquired_at"), when);

        // δ and the bound are constants; the classes' outputs are the loss's business.
        let error = |outputs: &[f64], at: usize| {
            let value = sigmoid(outputs[at * p + classes + path[at] as usize]);
            let less = lost[at * losses::LEN] - lost[(at + rows) * losses::LEN];
            (value * kept[at * bounds::LEN + bounds::BOUND] - less).powi(2)
        };
        let mut kept = kept.clone();
        kept.chunks_exact_mut(bounds::LEN).for_each(|row| row[bounds::ERROR] = 7.0);
        rig.set("bounds", &kept).run("grad");
        let (got, kept) = (rig.get("outputs"), rig.get("bounds"));
        let numeric = differences(&outputs, |v| (0..path.len()).map(|at| error(v, at)).sum());
        let values = |outputs: &[f64]| -> Vec<f64> {
            let rows = outputs.chunks_exact(p);
            rows.flat_map(|row| row[classes..classes + features].to_vec()).collect()
        };
        assert_close(&format!("d = {features}"), &values(&got), &values(&numeric));
        assert!(values(&got).iter().filter(|&&g| g != 0.0).count() == path.len(), "one a step");
        let errors: Vec<f64> = kept.chunks_exact(bounds::LEN).map(|row| row[bounds::ERROR]).collect();
        let by_hand = (0..all).map(|at| if at < path.len() { error(&outputs, at) } else { 0.0 });
        assert_close("the errors", &errors, &by_hand.collect::<Vec<_>>());
        let classes_of = |outputs: &[f64]| -> Vec<f64> {
            outputs.chunks_exact(p).flat_map(|row| row[..classes].to_vec()).collect()
        };
        assert_eq!(classes_of(&got), classes_of(&outputs));
    }
}

/// By chance: as often as ε says, each open feature as often as any other, nothing twice.
#[test]
fn choices_by_chance() {
    let shape = Shape { rows: 4000, features: 7, classes: 2, steps: 3 };
    let mut rig = shape.rig(1);
    // The values want features 6, 5 and 4, in this order.
    let row: Vec<f64> = [vec![0.0; 2], (0..7).map(f64::from).collect()].concat();
    let padded: Vec<f64> = row.iter().copied().chain(std::iter::repeat(0.0)).take(shape.pitch()).collect();
    rig.set("outputs", &padded.repeat(shape.rows * 4)).set("costs", &[1.0; 9]);
    let mut choose = |epsilon: f64, step: u32| {
        let mut words = [0.0; hyper::LEN];
        (words[hyper::RATIO], words[hyper::EXPLORE]) = (1.0, epsilon);
        let mut time = [0; clock::LEN];
        (time[clock::SEED_LO], time[clock::STEP]) = (9, step);
        rig.set("settings", &words).set_words("clock", &time).run("rollout").words("path")
    };
    let greedy = choose(0.0, 1);
    assert!(greedy.chunks_exact(shape.rows).zip([6, 5, 4]).all(|(all, best)| all.iter().all(|&a| a == best)));
    let all = choose(1.0, 1);
    for row in 0..shape.rows {
        let of = |step: usize| all[step * shape.rows + row];
        assert!(of(0) != of(1) && of(1) != of(2) && of(0) != of(2), "something twice");
    }
    for step in all.chunks_exact(shape.rows) {
        let mut counts = [0.0f64; 7];
        step.iter().for_each(|&feature| counts[feature as usize] += 1.0);
        let expected = shape.rows as f64 / 7.0;
        let chi: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        // Of six degrees of freedom: one in a thousand seeds is above 22.5.
        assert!(chi < 22.5, "χ² = {chi:.1}, {counts:?}");
    }
    let some = choose(0.3, 1);
    let others = some[..shape.rows].iter().filter(|&&feature| feature != 6).count() as f64;
    // Of those by chance, one in seven is the best all the same.
    assert!((others / shape.rows as f64 - 0.3 * 6.0 / 7.0).abs() < 0.03, "{others}");
    assert_ne!(some, choose(0.3, 2), "another step draws others");
    assert_eq!(some, choose(0.3, 1));
}

/// The objective by all weights, with δ and the bounds kept as they are: computed here from the outputs of the way forward.
#[test]
fn whole_steps() {
    for (features, steps, batch, hidden, dropout, price) in [
        (1, 1, 3, vec![3], 0.0, None),
        (4, 4, 5, vec![5, 6], 0.3, None),
        (6, 3, 7, vec![4, 5, 3], 0.3, Some(0.1)),
    ] {
        let data = toy(features, batch);
        let (costs, classes) = (data.problem().features(), data.problem().classes().len());
        let config =
            Config { horizon: Some(steps), hidden, dropout, batch, price, seed: 11, ..Config::default() };
        let mut stepper = Stepper::new(&Engine::cpu_f64(), &data, config).expect("fits");
        stepper.set_stage(Stage { epsilon: 0.3, rate: 1e-3 }).expect("valid");
        assert_eq!(stepper.program().plan().lanes(), 1, "the tape is in one piece");
        let find = |stepper: &Stepper, name: &str| stepper.program().plan().find(name).expect("declared");
        let values = find(&stepper, "dime.values");
        let weights = stepper.program().read_blocking(values).expect("reads");
        let (means, gradient) = before_the_update(&mut stepper, "step");
        let read = |stepper: &Stepper, name: &str| {
            stepper.program().read_blocking(find(stepper, name)).expect("reads")
        };
        let kept = read(&stepper, "bounds");
        let taken = stepper.program().read_words_blocking(find(&stepper, "path")).expect("reads");
        let labels = stepper.program().read_words_blocking(find(&stepper, "y")).expect("reads");
        let calls = common::section(stepper.program().plan(), "step");
        let is_loss = |call: &usize| stepper.program().plan().calls()[*call].kernel.is(k::Loss::KERNEL);
        let forward = calls.start..calls.clone().find(is_loss).expect("there is a loss");
        let p = pitch(classes + costs.len());
        // The losses of all tape rows, and σ(v) of what was acquired.
        let mut run = |weights: &[f64]| {
            stepper.program_mut().write(values, 0, weights);
            stepper.program_mut().run(forward.clone(), 1);
            let path = stepper.program().read_words_blocking(find(&stepper, "path")).expect("reads");
            assert_eq!(path, taken, "the path must not move");
            let outputs = read(&stepper, "network.logits");
            let loss = |(at, row): (usize, &[f64])| {
                let mass: f64 = row[..classes].iter().map(|z| z.exp()).sum();
                let label = labels[at % batch] as usize;
                data.problem().class_weights()[label] * (mass.ln() - row[label])
            };
            let lost: Vec<f64> = outputs.chunks_exact(p).enumerate().map(loss).collect();
            let share = |(at, &feature): (usize, &u32)| sigmoid(outputs[at * p + classes + feature as usize]);
            let shares: Vec<f64> = taken.iter().enumerate().map(share).collect();
            (lost, shares)
        };
        let before = run(&weights).0;
        let mut objective = |weights: &[f64]| {
            let (lost, shares) = run(weights);
            let error = |(at, share): (usize, &f64)| {
                let less = before[at] - before[at + batch];
                (share * kept[at * bounds::LEN + bounds::BOUND] - less).powi(2)
            };
            let errors: f64 = shares.iter().enumerate().map(error).sum();
            (lost.iter().sum::<f64>() + errors) / ((steps + 1) * batch) as f64
        };
        assert_close("the objective", &[means["objective"]], &[objective(&weights)]);
        assert!((means["objective"] - means["prediction_loss"] - means["value_error"]).abs() < 1e-12);
        let numeric = differences(&weights, &mut objective);
        // Padding is no part of the networks: its derivative is not the engine's business.
        let live: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).collect();
        let pick = |values: &[f64]| live.iter().map(|&i| values[i]).collect::<Vec<_>>();
        assert_close(&format!("d = {features}"), &pick(&gradient), &pick(&numeric));

        // The pretraining has no values.
        stepper.program_mut().write(values, 0, &weights);
        let (means, gradient) = before_the_update(&mut stepper, "warm_up");
        assert_eq!((means["value_error"], means["objective"]), (0.0, means["prediction_loss"]));
        let bias = gradient.len() - p;
        assert!(gradient[bias..bias + classes].iter().all(|&g| g != 0.0));
        assert!(gradient[bias + classes..].iter().all(|&g| g == 0.0), "{:?}", &gradient[bias..]);
    }
}

/// Several micro-batches on several lanes add up to the same gradient, and explore alike.
#[test]
fn a_batch_in_pieces() {
    let data = toy(5, 45);
    let engine = Engine::cpu_f64();
    let config = Config {
        horizon: Some(3),
        hidden: vec![6, 5],
        batch: 45,
        dropout: 0.3,
        epsilon: 0.4,
        seed: 11,
        ..Config::default()
    };
    let memory = Stepper::memory(&engine, &data, &config).expect("fits");
    let tight = Config { memory_budget: memory.working / 3, ..config.clone() };
    let pieces = Stepper::memory(&engine, &data, &tight).expect("fits").micro_batches;
    assert!(pieces > memory.micro_batches, "{pieces}");
    let of = |config: &Config| {
        let mut stepper = Stepper::new(&engine, &data, config.clone()).expect("fits");
        before_the_update(&mut stepper, "step")
    };
    let (whole, split) = (of(&config), of(&tight));
    assert_close("the gradient", &split.1, &whole.1);
    assert_close("the objective", &[split.0["objective"]], &[whole.0["objective"]]);
    let other = of(&Config { epsilon: 0.0, ..config });
    assert!(common::distance(&other.1, &whole.1) > 1e-3, "exploration makes no difference");
}
