//! OL's kernels, the replay memory and the branches: by hand and by central differences, and whole steps in f64.

use crate::common;
use crate::gdfs_kernels::before_the_update;
use crate::rig::{Random, Rig, assert_close, differences, toy};
use querent::Engine;
use querent::engine::kernels as k;
use querent::engine::kernels::Params;
use querent::engine::kernels::words::{NEVER, clock, losses};
use querent::engine::kernels::{returns, taken};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::methods::ol::kernels::{Believe, Choose, Confidence, TdGrad, hyper};
use querent::methods::ol::{Config, Reward, Stage, Stepper};
use querent::nn::pitch;

const STREAM: u32 = 82;

// Choices

/// A rollout of choices over the same outputs at every step.
fn choices(rows: usize, features: usize, classes: usize, steps: usize, stop: u32) -> Rig {
    let mut b = PlanBuilder::new(1);
    let time = b.buffer("clock", Elem::U32, clock::LEN, Scope::Shared);
    let acquired_at = b.buffer("acquired_at", Elem::U32, rows * features, Scope::Shared);
    let path = b.buffer("path", Elem::U32, rows * steps, Scope::Shared);
    let width = pitch(classes + features + 1);
    let outputs = b.buffer("outputs", Elem::F32, rows * width, Scope::Shared);
    let settings = b.buffer("settings", Elem::F32, hyper::LEN, Scope::Shared);
    b.section("rollout", |b| {
        for step in 0..steps as u32 {
            let [rows, features, classes, pitch] = [rows, features, classes, width].map(|n| n as u32);
            let call = Choose { rows, step, features, classes, pitch, first: 3, explore: 1, stop };
            b.call(call, &[time, outputs, settings, acquired_at, path]);
        }
    });
    Rig::new(b)
}

#[test]
fn choices_by_hand() {
    for (rows, features, classes, steps, stop) in [(6, 1, 2, 1, 1), (9, 5, 3, 5, 1), (7, 6, 2, 4, 0)] {
        let mut rig = choices(rows, features, classes, steps, stop);
        let outputs = Random::new(features as u64).padded(rows, classes + features + 1);
        rig.set("outputs", &outputs).set_words("acquired_at", &vec![0; rows * features]);
        let path = rig.run("rollout").words("path");
        for row in 0..rows {
            let values = &outputs[row * pitch(classes + features + 1) + classes..][..features + 1];
            let mut order: Vec<usize> = (0..features).collect();
            order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
            // All that is better than stopping, the best first; then it stops, or nothing is left.
            let wanted = order.into_iter().filter(|&i| stop == 0 || values[i] >= values[features]);
            let expected: Vec<u32> =
                wanted.map(|i| i as u32).chain(std::iter::repeat(features as u32)).take(steps).collect();
            let got: Vec<u32> = (0..steps).map(|t| path[t * rows + row]).collect();
            assert_eq!(got, expected, "row {row}, stop {stop}");
            let when = &rig.words("acquired_at")[row * features..][..features];
            for (i, &at) in when.iter().enumerate() {
                let held = got.iter().position(|&a| a as usize == i).map_or(NEVER, |t| t as u32);
                assert_eq!(at, held);
            }
        }
    }
}

/// By chance: as often as ε says, each open action, stopping included, as often as any other.
#[test]
fn choices_by_chance() {
    let (rows, features, steps) = (4000, 5, 3);
    let mut rig = choices(rows, features, 2, steps, 1);
    // The values want features 4, 3 and 2, in this order, and never to stop.
    let row = [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, -1.0];
    rig.set("outputs", &row.repeat(rows));
    let mut choose = |epsilon: f64, step: u32| {
        let mut words = [0.0; hyper::LEN];
        words[hyper::EXPLORE] = epsilon;
        let mut time = [0; clock::LEN];
        (time[clock::SEED_LO], time[clock::STEP]) = (9, step);
        rig.set("settings", &words).set_words("clock", &time).run("rollout").words("path")
    };
    let greedy = choose(0.0, 1);
    assert!(greedy.chunks_exact(rows).zip([4, 3, 2]).all(|(all, best)| all.iter().all(|&a| a == best)));
    let all = choose(1.0, 1);
    let mut counts = [0.0f64; 6];
    all[..rows].iter().for_each(|&action| counts[action as usize] += 1.0);
    let chi: f64 = counts.iter().map(|count| (count - rows as f64 / 6.0).powi(2) / (rows as f64 / 6.0)).sum();
    // Of five degrees of freedom: one in a thousand seeds is above 20.5.
    assert!(chi < 20.5, "χ² = {chi:.1}, {counts:?}");
    for row in 0..rows {
        let of: Vec<u32> = (0..steps).map(|t| all[t * rows + row]).collect();
        let end = of.iter().position(|&a| a == 5).unwrap_or(steps);
        assert!(of[end..].iter().all(|&a| a == 5), "who has stopped goes on stopping: {of:?}");
        assert!((1..end).all(|t| !of[..t].contains(&of[t])), "something twice: {of:?}");
    }
    let some = choose(0.3, 1);
    let others = some[..rows].iter().filter(|&&action| action != 4).count() as f64;
    // Of those by chance, one in six is the best all the same.
    assert!((others / rows as f64 - 0.3 * 5.0 / 6.0).abs() < 0.03, "{others}");
    assert_ne!(some, choose(0.3, 2), "another step draws others");
    assert_eq!(some, choose(0.3, 1));
}

// The error of values

#[test]
fn errors_of_values() {
    for stop in [1, 0] {
        let (rows, features, classes, steps) = (40, 5, 3, 4);
        let (width, mask_pitch) = (pitch(classes + features + 1), pitch(features));
        let mut b = PlanBuilder::new(1);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
        let (outputs, slow) = (reals("outputs", 2 * rows * width), reals("slow", rows * width));
        let masks = reals("masks", 2 * rows * mask_pitch);
        let (costs, settings) = (reals("costs", features + classes), reals("settings", hyper::LEN));
        let (lost, back) = (reals("losses", rows * losses::LEN), reals("returns", rows * returns::LEN));
        let done = b.buffer("taken", Elem::U32, rows * taken::LEN, Scope::Shared);
        b.section("grad", |b| {
            let [rows, steps, features, classes, pitch, mask_pitch] =
                [rows, steps, features, classes, width, mask_pitch].map(|n| n as u32);
            let call = TdGrad { rows, steps, features, classes, pitch, mask_pitch, stop };
            b.call(call, &[outputs, slow, done, masks, costs, settings, lost, back]);
        });
        let mut rig = Rig::new(b);
        let mut random = Random::new(7 + u64::from(stop));
        let values = random.padded(2 * rows, classes + features + 1);
        let target = random.padded(rows, classes + features + 1);
        let (price, loss) = (random.positives(features + classes), random.positives(rows * losses::LEN));
        let reward = random.positives(rows * returns::LEN);
        let mut words = [0.0; hyper::LEN];
        (words[hyper::ALPHA], words[hyper::GAMMA]) = (0.3, 0.8);
        // What is held before the action and after it; every kind of action.
        let mut held = vec![0.0; 2 * rows * mask_pitch];
        let mut acts = vec![0; rows * taken::LEN];
        for row in 0..rows {
            let count = row % (steps + stop as usize);
            let stops = stop == 1 && (count == steps || row % 7 == 0);
            let action = if stops { features } else { (row + count) % features };
            for i in 0..count {
                held[(rows + row) * mask_pitch + (row + i) % features] = 1.0;
            }
            if action < features {
                held[(rows + row) * mask_pitch + action] = 1.0;
            }
            acts[row * taken::LEN + taken::ACTION] = action as u32;
            acts[row * taken::LEN + taken::HELD] = count as u32 + 1;
        }
        rig.set("outputs", &values).set("slow", &target).set("masks", &held).set("costs", &price);
        rig.set("settings", &words).set("losses", &loss).set("returns", &reward).set_words("taken", &acts);
        rig.run("grad");
        let error = |outputs: &[f64], row: usize| {
            let [action, count] = [taken::ACTION, taken::HELD].map(|at| acts[row * taken::LEN + at] as usize);
            let next = &values[(rows + row) * width + classes..];
            let open = |i: &usize| {
                *i == features && stop == 1
                    || *i < features && count < steps && held[(rows + row) * mask_pitch + i] == 0.0
            };
            let best = (0..=features).filter(open).max_by(|&a, &b| next[a].total_cmp(&next[b]));
            let later = best.map_or(0.0, |best| 0.8 * target[row * width + classes + best]);
            let value = match (action == features, stop) {
                (true, _) => -loss[row * losses::LEN],
                (_, 1) => later - 0.3 * price[action],
                _ => later + reward[row * returns::LEN],
            };
            (outputs[row * width + classes + action] - value).powi(2)
        };
        let all = |outputs: &[f64]| (0..rows).map(|row| error(outputs, row)).sum();
        let numeric = differences(&values[..rows * width], all);
        let q = |outputs: &[f64]| -> Vec<f64> {
            outputs
                .chunks_exact(width)
                .take(rows)
                .flat_map(|row| row[classes..=classes + features].to_vec())
                .collect()
        };
        assert_close("the gradient", &q(&rig.get("outputs")), &q(&numeric));
        let errors: Vec<f64> =
            rig.get("returns").chunks_exact(returns::LEN).map(|row| row[returns::ERROR]).collect();
        assert_close("the errors", &errors, &(0..rows).map(|row| error(&values, row)).collect::<Vec<_>>());
        // The classes' outputs and the next states are nobody's business here.
        let untouched = rig.get("outputs");
        assert_eq!(untouched[rows * width..], values[rows * width..]);
        assert!((0..rows).all(|row| untouched[row * width..][..classes] == values[row * width..][..classes]));
    }
}

/// The mean belief over samples, and what answers change in it, by hand.
#[test]
fn confidence_by_hand() {
    let (rows, steps, classes, features) = (3, 2, 4, 3);
    let (all, width) = (rows * (steps + 1), pitch(classes));
    let mut b = PlanBuilder::new(1);
    let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let samples = [reals("first", all * width), reals("second", all * width)];
    let (beliefs, costs) = (reals("beliefs", all * classes), reals("costs", features));
    let rewards = reals("rewards", rows * steps);
    let path = b.buffer("path", Elem::U32, rows * steps, Scope::Shared);
    b.section("confidence", |b| {
        let [rows, steps, classes, features, width] =
            [rows, steps, classes, features, width].map(|n| n as u32);
        for (anew, sample) in [(1, samples[0]), (0, samples[1])] {
            let call = Believe { rows: rows * (steps + 1), classes, pitch: width, samples: 2, anew };
            b.call(call, &[sample, beliefs]);
        }
        b.call(Confidence { rows, steps, classes, features }, &[beliefs, path, costs, rewards]);
    });
    let mut rig = Rig::new(b);
    let mut random = Random::new(4);
    let drawn = [random.padded(all, classes), random.padded(all, classes)];
    let price = [0.0, 0.5, 2.0];
    let acts = [0, 1, 2, 1, 2, 0];
    // What an earlier step has left is none of this one's business.
    rig.set("first", &drawn[0]).set("second", &drawn[1]).set("beliefs", &vec![7.0; all * classes]);
    rig.set("costs", &price).set_words("path", &acts).run("confidence");
    let belief = |row: usize, class: usize| -> f64 {
        let of = |logits: &[f64]| {
            let row = &logits[row * width..][..classes];
            row[class].exp() / row.iter().map(|z| z.exp()).sum::<f64>()
        };
        (of(&drawn[0]) + of(&drawn[1])) / 2.0
    };
    let expected: Vec<f64> = (0..rows * steps)
        .map(|at| {
            let change: f64 = (0..classes).map(|c| (belief(at + rows, c) - belief(at, c)).abs()).sum();
            change / price[acts[at] as usize].max(1e-3)
        })
        .collect();
    assert_close("the rewards", &rig.get("rewards"), &expected);
}

// The replay memory

/// A memory of three batches on the device, and draws out of it.
fn memory(stops: u32) -> Rig {
    let mut b = PlanBuilder::new(1);
    let mut words = |name: &str, len| b.buffer(name, Elem::U32, len, Scope::Shared);
    let time = words("clock", clock::LEN);
    let (path, kept, episodes) = (words("path", 4 * 3), words("kept", 1), words("episodes", 12 * 4));
    let (places, done) = (words("places", 6000), words("taken", 6000 * taken::LEN));
    let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let (rewards, earned) = (reals("rewards", 4 * 3), reals("earned", 12 * 3));
    let (back, masks) = (reals("returns", 6000 * returns::LEN), reals("masks", 2 * 6000 * 8));
    b.section("keep", |b| {
        let call = k::ReplayStore {
            rows: 4,
            steps: 3,
            first: 0,
            batch: 4,
            split_start: 5,
            split_len: 9,
            shuffled: 1,
            chunks: 1,
            lane_at: 0,
            rounds: 3,
            rewarded: 1,
        };
        b.call(call, &[time, path, rewards, kept, episodes, earned]);
        b.call(k::ReplayTurn { batches: 1 }, &[kept]);
    });
    b.section("draw", |b| {
        let call = k::ReplayDraw {
            rows: 6000,
            steps: 3,
            features: 6,
            first: 0,
            batch: 4,
            rounds: 3,
            pitch: 8,
            update: 2,
            stream: STREAM,
            stops,
            rewarded: 1,
        };
        b.call(call, &[time, kept, episodes, earned, places, done, back, masks]);
    });
    Rig::new(b)
}

#[test]
fn the_memory_goes_round_and_gives_what_was_done() {
    let mut rig = memory(1);
    let mut all: Vec<(u32, Vec<u32>, Vec<f64>)> = Vec::new();
    for batch in 0..4u32 {
        let mut time = [0; clock::LEN];
        (time[clock::SEED_LO], time[clock::STEP], time[clock::EPOCH]) = (5, batch, batch);
        // Episodes of all lengths: 6 is the end.
        let paths = [[0, 1, 2], [3, 6, 6], [6, 6, 6], [4, 5, 6]]
            .map(|path| path.map(|a: u32| if a == 6 { 6 } else { (a + batch) % 6 }));
        let path: Vec<u32> = (0..12).map(|at| paths[at % 4][at / 4]).collect();
        let rewards: Vec<f64> = (0..12).map(|at| f64::from(batch) + at as f64 / 16.0).collect();
        rig.set_words("clock", &time).set_words("path", &path).set("rewards", &rewards).run("keep");
        let shuffle = querent::random::Shuffle::new(5, batch, 9);
        for row in 0..4 {
            let reward = (0..3).map(|t| rewards[t * 4 + row]).collect();
            all.push((5 + shuffle.index(row as u32), paths[row].to_vec(), reward));
        }
        rig.run("draw");
        // Only what is kept: never the oldest of four.
        let known = &all[all.len().saturating_sub(12)..];
        let (places, done) = (rig.words("places"), rig.words("taken"));
        let (back, masks) = (rig.get("returns"), rig.get("masks"));
        let mut counts = std::collections::BTreeMap::new();
        for row in 0..6000 {
            let [action, held] = [taken::ACTION, taken::HELD].map(|at| done[row * taken::LEN + at]);
            let t = held as usize - 1;
            let mask =
                |row: usize| -> Vec<u32> { (0..6).filter(|i| masks[row * 8 + *i as usize] == 1.0).collect() };
            let reward = back[row * returns::LEN + returns::REWARD];
            let is_it = |(place, path, rewards): &&(u32, Vec<u32>, Vec<f64>)| {
                let mut before = path[..t].to_vec();
                before.sort_unstable();
                *place == places[row]
                    && path.get(t).copied().unwrap_or(6) == action
                    && rewards[t.min(2)] == reward
                    && before == mask(row)
            };
            let from = known.iter().find(is_it).unwrap_or_else(|| panic!("row {row} was never kept"));
            let mut after = from.1[..t].to_vec();
            after.extend((action < 6).then_some(action));
            after.sort_unstable();
            assert_eq!(mask(6000 + row), after);
            // Every episode has rewards of its own.
            counts.entry(((16.0 * from.2[0]) as u32, t)).or_insert((0, from.1.clone())).0 += 1;
        }
        // Of the four episodes of a batch: 4, 2, 1 and 3 transitions. Every one occurs, and episodes equally often.
        let episodes = 4 * (batch as usize + 1).min(3);
        assert_eq!(counts.len(), episodes / 4 * 10, "{counts:?}");
        for (count, path) in counts.into_values() {
            let length = path.iter().position(|&a| a == 6).map_or(4, |end| end + 1);
            let expected = 6000.0 / (episodes * length) as f64;
            assert!(
                (f64::from(count) - expected).abs() < 6.0 * expected.sqrt(),
                "{path:?}: {count}, {expected}"
            );
        }
    }
    assert_eq!(rig.words("kept"), [4]);
    // Without an end of its own, an episode has as many transitions as steps.
    let mut rig = memory(0);
    rig.set_words("path", &(0..12).map(|at| at / 4).collect::<Vec<u32>>()).run("keep").run("draw");
    let held: Vec<u32> = rig.words("taken").chunks_exact(taken::LEN).map(|row| row[taken::HELD]).collect();
    assert!((1..=3).all(|count| held.contains(&count)) && held.iter().all(|&count| count <= 3));
}

// Whole steps

fn config(steps: usize, batch: usize, hidden: Vec<usize>, dropout: f64) -> Config {
    Config {
        horizon: Some(steps),
        hidden,
        dropout,
        batch,
        alpha: 0.1,
        gamma: 0.9,
        samples: 2,
        updates: 1,
        replay: batch,
        seed: 11,
        ..Config::default()
    }
}

/// The predictor's loss by the predicting branch's weights, the values' error by the value branch's: nothing goes back from
/// one to the other. Computed here from the outputs of the way forward.
#[test]
fn whole_steps() {
    for (features, steps, batch, hidden, dropout, reward) in [
        (1, 1, 3, vec![3], 0.0, Reward::Loss),
        (4, 4, 6, vec![5, 6], 0.3, Reward::Loss),
        (6, 3, 7, vec![4, 5, 3], 0.3, Reward::Confidence),
    ] {
        let data = toy(features, batch);
        let (d, classes) = (features, data.problem().classes().len());
        let config = Config { reward, ..config(steps, batch, hidden.clone(), dropout) };
        let mut stepper = Stepper::new(&Engine::cpu_f64(), &data, config).expect("fits");
        stepper.set_stage(Stage { epsilon: 0.5, rate: 1e-3, polyak: 0.1 }).expect("valid");
        assert_eq!(stepper.program().plan().lanes(), 1, "the tape is in one piece");
        let find = |stepper: &Stepper, name: &str| stepper.program().plan().find(name).expect("declared");
        let id = find(&stepper, "ol.values");
        let weights = stepper.program().read_blocking(id).expect("reads");
        let (means, gradient) = before_the_update(&mut stepper, "step");
        let reals = |stepper: &Stepper, name: &str| {
            stepper.program().read_blocking(find(stepper, name)).expect("reads")
        };
        let words = |stepper: &Stepper, name: &str| {
            stepper.program().read_words_blocking(find(stepper, name)).expect("reads")
        };
        let (labels, acts) = (words(&stepper, "replay.y"), words(&stepper, "replay.taken"));
        // The outputs have become the gradient: twice what each value is wrong by.
        let (p, grads) = (pitch(classes + d + 1), reals(&stepper, "network.logits"));
        let act = |row: usize| acts[row * taken::LEN + taken::ACTION] as usize;
        let wrong: Vec<f64> = (0..batch).map(|row| grads[row * p + classes + act(row)] / 2.0).collect();
        // From the draw on: the memory stays as it is.
        let calls = common::section(stepper.program().plan(), "step");
        let is = |kernel: &'static k::Kernel| {
            let plan = stepper.program().plan();
            calls.clone().find(|&call| plan.calls()[call].kernel.is(kernel)).expect("it is there")
        };
        let forward = is(k::ReplayDraw::KERNEL)..is(k::Loss::KERNEL);
        let mut run = |weights: &[f64]| {
            stepper.program_mut().write(id, 0, weights);
            stepper.program_mut().run(forward.clone(), 1);
            let outputs = reals(&stepper, "network.logits");
            let lost: f64 = (0..batch)
                .map(|row| {
                    let logits = &outputs[row * p..][..classes];
                    let mass: f64 = logits.iter().map(|z| z.exp()).sum();
                    let label = labels[row] as usize;
                    data.problem().class_weights()[label] * (mass.ln() - logits[label])
                })
                .sum();
            let q: Vec<f64> = (0..batch).map(|row| outputs[row * p + classes + act(row)]).collect();
            (lost / batch as f64, q)
        };
        // The values' targets are constants: those of the weights as they are.
        let (lost, before) = run(&weights);
        let total: f64 = wrong.iter().map(|wrong| wrong * wrong).sum::<f64>() / batch as f64;
        assert_close("the objective", &[means["objective"]], &[lost + total]);
        assert_close("its parts", &[means["prediction_loss"], means["value_error"]], &[lost, total]);
        let mut error = |weights: &[f64]| -> f64 {
            let after = run(weights).1;
            let of = |row: usize| (wrong[row] + after[row] - before[row]).powi(2);
            (0..batch).map(of).sum::<f64>() / batch as f64
        };
        let by_error = differences(&weights, &mut error);
        let by_loss = differences(&weights, |weights| run(weights).0);
        let main = main_weights(&stepper, &hidden, classes);
        let expected: Vec<f64> =
            (0..weights.len()).map(|i| if main[i] { by_loss[i] } else { by_error[i] }).collect();
        let live: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).collect();
        let pick = |values: &[f64]| live.iter().map(|&i| values[i]).collect::<Vec<_>>();
        assert_close(&format!("d = {features}"), &pick(&gradient), &pick(&expected));
        // It is detached: values would pull at the predictor if they could, and the predictor reads no values.
        let of_main = |values: &[f64], is: bool| {
            live.iter().filter(|&&i| main[i] == is).map(|&i| values[i].abs()).fold(0.0, f64::max)
        };
        assert!(of_main(&by_error, true) > 1e-4 && of_main(&by_loss, false) < 1e-12);
        assert!((0..weights.len()).all(|i| weights[i] != 0.0 || gradient[i] == 0.0), "what is zero stays so");
    }
}

/// Which numbers of the group lead to units of the predicting branch.
fn main_weights(stepper: &Stepper, hidden: &[usize], classes: usize) -> Vec<bool> {
    let stack = querent::nn::Lateral::new(
        0,
        stepper.problem().columns() + stepper.problem().features().len(),
        hidden,
        [classes, stepper.problem().features().len() + 1],
    )
    .stack;
    let mut main = vec![false; stack.end()];
    for (layer, &width) in stack.layers.iter().zip(hidden.iter().chain([&classes])) {
        for input in 0..=pitch(layer.inputs) {
            // The bias lies where one more input would.
            let row = &mut main[layer.weight + input * pitch(layer.outputs)..][..pitch(layer.outputs)];
            row[..width].fill(true);
        }
    }
    main
}

/// Several micro-batches on several lanes add up to the same gradient, whatever is kept on the way.
#[test]
fn a_batch_in_pieces() {
    let data = toy(5, 90);
    let engine = Engine::cpu_f64();
    for reward in [Reward::Loss, Reward::Confidence] {
        let config = Config { reward, ..config(3, 90, vec![6, 5], 0.3) };
        let memory = Stepper::memory(&engine, &data, &config).expect("fits");
        let tight = Config { memory_budget: memory.working / 10, ..config.clone() };
        let pieces = Stepper::memory(&engine, &data, &tight).expect("fits").micro_batches;
        assert!(pieces > memory.micro_batches, "{pieces}");
        let of = |config: &Config| {
            let mut stepper = Stepper::new(&engine, &data, config.clone()).expect("fits");
            let found = before_the_update(&mut stepper, "step");
            let memory = stepper.program().plan().find("replay.episodes").expect("declared");
            (found, stepper.program().read_words_blocking(memory).expect("reads"))
        };
        let (whole, split) = (of(&config), of(&tight));
        assert_eq!(whole.1, split.1, "the memory");
        assert_close("the gradient", &split.0.1, &whole.0.1);
        assert_close("the objective", &[split.0.0["objective"]], &[whole.0.0["objective"]]);
    }
}

/// Several updates of a step: Adam's decays move on with each, and the clock once.
#[test]
fn every_update_has_its_powers() {
    let data = toy(4, 20);
    let config = Config { updates: 3, ..config(3, 20, vec![4], 0.0) };
    let mut stepper = Stepper::new(&Engine::cpu_f64(), &data, config).expect("fits");
    stepper.steps(2);
    let find = |name: &str| stepper.program().plan().find(name).expect("declared");
    let powers = stepper.program().read_blocking(find("powers")).expect("reads");
    assert_close("the powers", &powers, &[0.9f64.powi(6), 0.999f64.powi(6)]);
    let time = stepper.program().read_words_blocking(find("clock")).expect("reads");
    assert_eq!((time[clock::STEP], time[clock::EPOCH]), (2, 2));
}
