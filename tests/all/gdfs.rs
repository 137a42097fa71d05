//! GDFS: its kernels by hand and by central differences, whole steps in f64 and against PyTorch, and a run that is saved,
//! resumed, recorded into a host's frames, stored and asked.

use crate::common::{self, TempDir, assets, distance, engines, weights};
use crate::host::Host;
use crate::rig::{Random, Rig, assert_close, differences, toy, unpadded};
use crate::spoil::File;
use querent::data::{Dataset, Part, Split};
use querent::engine::kernels as k;
use querent::engine::kernels::Params;
use querent::engine::kernels::words::{METRICS, NEVER, NO_LABEL, clock, losses};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::methods::gdfs::kernels::{Concrete, ConcreteGrad, MeanLoss, UniformMask, hyper, metrics};
use querent::methods::gdfs::{Config, Stage, Stepper, Trainer};
use querent::methods::{Entry, find};
use querent::nn::{Stack, pitch};
use querent::policy::evaluate::{Rules, episodes};
use querent::policy::history::{Epoch, Phase};
use querent::train::{Settings, Training};
use querent::{Budget, Engine, Feature, Model, Problem, Step, wgpu};
use safetensors::Dtype;
use serde_json::{Value, json};
use std::collections::BTreeMap;

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

/// Runs a section up to its update. Gives the objective and the gradient summed over its lanes.
fn before_the_update(stepper: &mut Stepper, section: &str) -> (f64, Vec<f64>) {
    let plan = stepper.program().plan();
    let (calls, grad) = (common::section(plan, section), plan.find("gdfs.grad").expect("declared"));
    let len = plan.buffer(grad).len;
    let is_adam = |call: &usize| plan.calls()[*call].kernel.is(k::Adam::KERNEL);
    let end = calls.clone().find(is_adam).expect("there is an update");
    stepper.program_mut().run(calls.start..end, 1);
    let means = stepper.means_blocking().expect("finite");
    assert_eq!(means["objective"], means["prediction_loss"]);
    assert_eq!(means["instances"], stepper.batch() as f64);
    let lanes = stepper.program().read_blocking(grad).expect("reads");
    (means["objective"], (0..len).map(|i| lanes.iter().skip(i).step_by(len).sum()).collect())
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
                let (objective, gradient) = before_the_update(&mut stepper, section);
                (objective, gradient, stepper.program().read_words_blocking(path).expect("reads"))
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
fn widths(data: &Dataset, config: &Config, outputs: usize) -> Vec<usize> {
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
    for (name, first) in [("draw", 0), ("from 100", 100)] {
        let call = UniformMask { rows: rows as u32, features: features as u32, pitch: p as u32, first };
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
    for (name, word, training) in [("training", metrics::OBJECTIVE, 1), ("soft", metrics::SOFT, 0)] {
        let call = MeanLoss {
            rows: (steps * batch) as u32,
            batch: batch as u32,
            divisor: steps as u32,
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
        [(metrics::OBJECTIVE, objective), (metrics::LOST, objective), (metrics::INSTANCES, instances)]
    };
    rig.run("training");
    expect(&rig, &sums(31.5, 3.0));
    rig.run("training");
    expect(&rig, &sums(63.0, 6.0));
    // An instance that is not there counts for nothing, at no step; nor does an evaluation count instances.
    rig.set_words("y", &[0, NO_LABEL, 0]).set("metrics", &[0.0; METRICS]).run("soft");
    expect(&rig, &[(metrics::SOFT, 22.5)]);
}

// A golden step

/// A file with a step: what is in it, and what it came to.
struct Golden {
    name: String,
    file: File,
}

type Named = BTreeMap<String, Vec<f64>>;

/// What must be equal, not close.
const EXACT: [&str; 3] = ["order", "path", "mask"];

impl Golden {
    fn all() -> Vec<Golden> {
        let golden = |name: &str| {
            let path = assets().join("golden").join(format!("{name}.safetensors"));
            Golden { name: name.into(), file: File::read(&path) }
        };
        ["gdfs_step", "gdfs_plain", "gdfs_warm_up"].map(golden).into()
    }

    fn find(&self, name: &str) -> Option<Vec<f64>> {
        let tensor = self.file.tensors.get(name)?;
        Some(match tensor.dtype {
            Dtype::I32 => tensor.words().map(|b| i32::from_le_bytes(b).into()).collect(),
            _ => tensor.words().map(|b| f32::from_le_bytes(b).into()).collect(),
        })
    }

    fn get(&self, name: &str) -> Vec<f64> {
        self.find(name).unwrap_or_else(|| panic!("{}: no `{name}`", self.name))
    }

    fn words(&self, name: &str) -> Vec<u32> {
        self.get(name).into_iter().map(|value| value as u32).collect()
    }

    fn number<N: std::str::FromStr>(&self, key: &str) -> N {
        let text = self.file.metadata.get(key).unwrap_or_else(|| panic!("{}: no `{key}`", self.name));
        text.parse().unwrap_or_else(|_| panic!("{}: `{key}` is {text}", self.name))
    }

    /// How many layers its networks have.
    fn layers(&self) -> usize {
        (0..).take_while(|i| self.file.tensors.contains_key(&format!("selector.{i}.bias"))).count()
    }

    fn data(&self) -> Dataset {
        let last = self.layers() - 1;
        let [features, classes] =
            ["selector", "predictor"].map(|net| self.get(&format!("{net}.{last}.bias")).len());
        let mut groups = self.words("group_of_column");
        let known = groups.iter().filter(|&&group| group as usize == features).count();
        groups.truncate(groups.len() - known);
        let list = (0..features).map(|i| Feature { name: format!("f{i}"), cost: 1.0 });
        let names = (0..classes).map(|class| class.to_string());
        let mut problem =
            Problem::new(list.collect(), groups, names.collect()).expect("valid").with_known_columns(known);
        if let Some(weights) = self.find("class_weight") {
            problem = problem.with_class_weights(weights).expect("valid");
        }
        let x = self.get("x").into_iter().map(|value| value as f32).collect();
        Dataset::new(problem, Split { x, y: self.words("y") }, Split::default(), Split::default())
            .expect("valid")
    }

    /// The tensors `{prefix}{net}.{i}.weight` and `.bias` as the group's buffer has them.
    fn pack(&self, stacks: &[(&str, Stack); 2], prefix: &str) -> Vec<f64> {
        let pack = |(net, stack): &(&str, Stack)| {
            let of = |i: usize, what: &str| self.get(&format!("{prefix}{net}.{i}.{what}"));
            let layers = (0..stack.layers.len())
                .map(|i| querent::nn::Tensors { weight: of(i, "weight"), bias: of(i, "bias") });
            stack.pack(&layers.collect::<Vec<_>>())
        };
        stacks.iter().flat_map(pack).collect()
    }

    /// Takes the step on an engine.
    fn run(&self, engine: &Engine) -> Named {
        let data = self.data();
        let (features, classes) = (data.problem().features().len(), data.problem().classes().len());
        let batch: usize = self.number("batch");
        let layers = self.layers();
        let config = Config {
            horizon: Some(self.number("k")),
            hidden: (0..layers - 1).map(|i| self.get(&format!("selector.{i}.bias")).len()).collect(),
            dropout: self.number("dropout"),
            batch,
            gamma: self.number("gamma"),
            seed: self.number("seed"),
            ..Config::default()
        };
        let selector = Stack::new(0, &widths(&data, &config, features));
        let predictor = Stack::new(selector.end(), &widths(&data, &config, classes));
        let stacks = [("selector", selector), ("predictor", predictor)];
        let mut stepper =
            Stepper::new(engine, &data, config.clone()).unwrap_or_else(|error| panic!("{error}"));
        stepper
            .set_stage(Stage { temperature: self.number("temperature"), rate: self.number("rate") })
            .expect("valid");
        let id = |stepper: &Stepper, name: &str| stepper.program().plan().find(name).expect("declared");
        let steps: u32 = self.number("steps");
        for (buffer, prefix) in
            [("values", ""), ("average", ""), ("mean", "mean."), ("variance", "variance.")]
        {
            let to = id(&stepper, &format!("gdfs.{buffer}"));
            stepper.program_mut().write(to, 0, &self.pack(&stacks, prefix));
        }
        let to = id(&stepper, "powers");
        stepper.program_mut().write(to, 0, &[0.9f64, 0.999].map(|beta| beta.powf(steps.into())));
        let to = id(&stepper, "clock");
        stepper.program_mut().write_words(
            to,
            clock::STEP,
            &[steps, self.number("epoch"), self.number("turn")],
        );
        let section = self.file.metadata["section"].as_str();
        let calls = common::section(stepper.program().plan(), section);
        stepper.program_mut().run(calls, 1);

        let objective = stepper.means_blocking().expect("finite")["objective"];
        let reals = |name: &str| stepper.program().read_blocking(id(&stepper, name)).expect("reads");
        let mut got = BTreeMap::from([("objective".to_string(), vec![objective])]);
        // Which of the table's rows are in the batch: no two are equal.
        let columns = data.problem().columns();
        let rows = &data.splits()[0].x;
        let gathered = unpadded(&reals("x"), columns);
        let order = gathered.chunks_exact(columns).map(|row| {
            let is_it = |from: &[f32]| from.iter().zip(row).all(|(a, b)| f64::from(*a) == *b);
            rows.chunks_exact(columns).position(is_it).expect("a row of the table") as f64
        });
        got.insert("order".into(), order.collect());
        let labels = stepper.program().read_words_blocking(id(&stepper, "y")).expect("reads");
        let order = got["order"].iter().map(|&row| data.splits()[0].y[row as usize]);
        assert_eq!(labels, order.collect::<Vec<_>>(), "{}: the labels", self.name);
        // The tape has more rows than the pretraining needs.
        let rows = if section == "step" { batch * self.number::<usize>("k") } else { batch };
        for (i, &width) in config.hidden.iter().enumerate().filter(|_| config.dropout > 0.0) {
            let name = format!("dropout.{i}");
            got.insert(name.clone(), unpadded(&reals(&name)[..rows * pitch(width)], width));
        }
        if section == "step" {
            got.insert("gumbel".into(), unpadded(&reals("gumbel"), features));
            let path = stepper.program().read_words_blocking(id(&stepper, "path")).expect("reads");
            got.insert("path".into(), path.into_iter().map(f64::from).collect());
        } else {
            got.insert("mask".into(), unpadded(&reals("masks")[..rows * pitch(features)], features));
        }
        for (what, buffer) in [("grad", "gdfs.grad"), ("after", "gdfs.values")] {
            let values = reals(buffer);
            for (net, stack) in &stacks {
                for (i, layer) in stack.unpack(&values).into_iter().enumerate() {
                    got.insert(format!("{what}.{net}.{i}.weight"), layer.weight);
                    got.insert(format!("{what}.{net}.{i}.bias"), layer.bias);
                }
            }
        }
        // The weights themselves are evaluated.
        assert!(distance(&reals("gdfs.average"), &reals("gdfs.values")) < 1e-6);
        got
    }

    /// What is out of tolerance, and the largest errors of gradients and of all else.
    fn compare(&self, got: &Named, gradients: f64, others: f64) -> (Vec<String>, [f64; 2]) {
        let expected = self.file.tensors.keys().filter_map(|name| name.strip_prefix("expect."));
        assert_eq!(
            got.keys().map(String::as_str).collect::<Vec<_>>(),
            expected.collect::<Vec<_>>(),
            "{}",
            self.name
        );
        let (mut wrong, mut worst) = (Vec::new(), [0.0f64; 2]);
        for (name, values) in got {
            let error = distance(values, &self.get(&format!("expect.{name}")));
            let is_gradient = name.starts_with("grad.");
            let limit = match is_gradient {
                _ if EXACT.contains(&name.as_str()) => 0.0,
                true => gradients,
                false => others,
            };
            let worst = &mut worst[usize::from(!is_gradient)];
            *worst = worst.max(error);
            if error > limit {
                wrong.push(format!("{name}: {error:.1e} > {limit:.0e}"));
            }
        }
        (wrong, worst)
    }
}

#[test]
fn golden_steps() {
    let check = |name: &str, engine: &Engine, gradients: f64, others: f64| {
        for golden in Golden::all() {
            let (wrong, worst) = golden.compare(&golden.run(engine), gradients, others);
            println!("{name:8} {:14} largest errors {:.1e}, {:.1e}", golden.name, worst[0], worst[1]);
            assert!(wrong.is_empty(), "{name}, {}: {wrong:?}", golden.name);
        }
    };
    check("cpu f64", &Engine::cpu_f64(), 1e-6, 1e-6);
    for (name, engine) in engines() {
        check(name, &engine, 1e-4, 1e-5);
    }
}

/// The control: whatever is spoilt is seen, and every setting has its say.
#[test]
fn the_golden_comparator_can_fail() {
    for mut golden in Golden::all() {
        let right = golden.run(&Engine::cpu_f64());
        for name in right.keys() {
            let mut spoilt = right.clone();
            let values = spoilt.get_mut(name).expect("there");
            let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            values[0] += if EXACT.contains(&name.as_str()) { 1.0 } else { 2e-4 * largest.max(1e-6) };
            let wrong = golden.compare(&spoilt, 1e-4, 1e-5).0;
            assert!(wrong.len() == 1 && wrong[0].starts_with(name), "{}: {name}: {wrong:?}", golden.name);
        }
        let is_step = golden.file.metadata["section"] == "step";
        for (key, value, seen) in [
            ("temperature", "0.71", is_step.then_some("grad.selector")),
            ("gamma", "0.4", is_step.then_some("grad.selector")),
            ("dropout", "0.4", golden.file.metadata["dropout"].ne("0.0").then_some("dropout.0")),
            ("rate", "0.03", Some("after.predictor")),
            ("seed", "77", Some("order")),
            ("steps", "5", Some("after.predictor")),
            ("epoch", "9", Some("order")),
        ] {
            let Some(seen) = seen else { continue };
            let before = golden.file.metadata[key].clone();
            golden.file.set(key, value);
            let wrong = golden.compare(&golden.run(&Engine::cpu_f64()), 1e-4, 1e-5).0;
            assert!(wrong.iter().any(|name| name.starts_with(seen)), "{}: {key}: {wrong:?}", golden.name);
            golden.file.set(key, &before);
        }
    }
}

// A run

fn entry() -> &'static Entry {
    find("gdfs").expect("there is one")
}

/// A run of a second or two: a pretraining, two temperatures, rates that decay.
fn small(data: &Dataset) -> Value {
    let mut settings = (entry().defaults)(data);
    for (key, value) in [
        ("horizon", json!(3)),
        ("hidden", json!([12, 10])),
        ("batch", json!(20)),
        ("rate", json!(0.02)),
        ("patience", json!(1)),
        ("stage_epochs", json!(3)),
        ("warm_up_epochs", json!(2)),
        ("epoch_steps", json!(6)),
        ("temperatures", json!(2)),
        ("start_temperature", json!(1.0)),
        ("seed", json!(5)),
    ] {
        assert!(settings.get(key).is_some(), "no `{key}`");
        settings[key] = value;
    }
    settings
}

fn start(engine: &Engine, data: &Dataset) -> Box<dyn Training> {
    (entry().start)(engine, data, small(data)).unwrap_or_else(|error| panic!("{error}"))
}

/// What an epoch came to, but for the time it took.
fn timeless(history: &[Epoch]) -> Vec<Epoch> {
    history.iter().map(|epoch| Epoch { seconds: 0.0, ..epoch.clone() }).collect()
}

fn finish(training: &mut dyn Training) -> (Vec<Epoch>, Vec<f64>) {
    while training.epoch_blocking().expect("trains").is_some() {}
    (timeless(training.history()), weights(&training.finish_blocking().expect("reads")))
}

#[test]
fn equal_bits_after_a_resume() {
    let folder = TempDir::new("gdfs");
    let data = toy(5, 60);
    for (name, engine) in engines() {
        let mut whole = start(&engine, &data);
        let mut files = Vec::new();
        while whole.epoch_blocking().expect("trains").is_some() {
            let file = folder.0.join(format!("{name}-{}.safetensors", whole.history().len()));
            whole.save_blocking(&file).expect("saves");
            files.push(file);
        }
        let end = finish(&mut *whole);
        assert!(finish(&mut *start(&engine, &data)) == end, "{name}: the same seed");

        // In the pretraining, at its end, and in each temperature.
        let phase = |file: usize| end.0[file].phase;
        let of = |wanted: Phase| (0..files.len()).find(|&file| phase(file) == wanted).expect("such an epoch");
        for stopped in [0, 1, of(Phase::Stage(0)), of(Phase::Stage(1))] {
            let mut resumed = start(&engine, &data);
            resumed.resume(&files[stopped]).expect("resumes");
            assert_eq!(resumed.history().len(), stopped + 1);
            assert!(finish(&mut *resumed) == end, "{name}: resumed after epoch {stopped}");
            // Nothing is left of what a run was at when it went back.
            resumed.resume(&files[stopped]).expect("resumes");
            assert!(finish(&mut *resumed) == end, "{name}: once more after epoch {stopped}");
        }

        // The control: another seed gives other bits.
        let mut settings = small(&data);
        settings["seed"] = json!(6);
        let mut other = (entry().start)(&engine, &data, settings).expect("valid");
        assert!(finish(&mut *other).1 != end.1, "{name}: another seed");
    }
}

/// What the schedule went through: the pretraining, then each temperature with the full rate again, and the best weights
/// are those with the lowest loss under hard masks.
#[test]
fn the_schedule() {
    let data = toy(5, 60);
    let mut training = start(&Engine::cpu(), &data);
    let (history, _) = finish(&mut *training);
    let phases: Vec<Phase> = history.iter().map(|epoch| epoch.phase).collect();
    assert_eq!(phases.iter().filter(|phase| **phase == Phase::WarmUp).count(), 2);
    assert!(phases.is_sorted_by_key(|phase| match phase {
        Phase::WarmUp => 0,
        Phase::Stage(stage) => 1 + stage,
    }));
    assert!(history.len() <= training.epochs_at_most() && training.epochs_at_most() == 2 + 2 * 3);
    for (stage, temperature) in [1.0, 0.2].into_iter().enumerate() {
        let mut epochs = history.iter().filter(|epoch| epoch.phase == Phase::Stage(stage));
        let (mut best, mut rate) = (f64::INFINITY, 0.02);
        assert!(epochs.clone().count() > 0);
        epochs.all(|epoch| {
            assert!((epoch.settings["tau_soft"] - temperature).abs() < 1e-12);
            assert!((epoch.settings["rate"] - rate).abs() < 1e-12, "{history:?}");
            // A patience of one: whatever is not better decays.
            if epoch.validation.extra[1] >= best {
                rate *= 0.2;
            }
            best = best.min(epoch.validation.extra[1]);
            true
        });
    }
    let mut best = f64::INFINITY;
    for epoch in &history {
        let is_best = epoch.phase != Phase::WarmUp && epoch.validation.extra[0] < best;
        assert_eq!(epoch.best, is_best);
        best = if is_best { epoch.validation.extra[0] } else { best };
    }
    assert_eq!(training.best(), Some(best));
}

/// A host's frames, with slices that end inside steps.
#[test]
fn frames_give_the_plain_runs_bits() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let data = toy(5, 60);
    let expected = finish(&mut *start(&host.engine(), &data));
    let mut training = start(&host.engine(), &data);
    let step = common::section(training.program().expect("it has a plan").plan(), "step").len();
    assert!(!step.is_multiple_of(37), "the frames would end with the steps");
    let (mut frames, mut epochs) = (0, 0);
    loop {
        let mut encoder = host.encoder();
        let recorded = training.encode(&mut encoder, Budget::Dispatches(37)).expect("records");
        assert!(recorded.dispatches <= 37, "{recorded:?}");
        host.draw(&mut encoder);
        host.queue.submit([encoder.finish()]);
        host.poll();
        frames += 1;
        let seen = training.try_progress().expect("no error");
        epochs += usize::from(seen.epoch.is_some());
        if seen.finished {
            break;
        }
        assert!(frames < 20_000, "the run never ended");
    }
    assert_eq!((epochs, timeless(training.history())), (expected.0.len(), expected.0));
    let model = training.try_model().expect("no error").expect("the run is over");
    assert!(weights(&model) == expected.1, "other bits");
    assert_eq!(host.errors(), 0, "uncaptured errors");
}

// A model

/// A model that has learned a little, and the engine that it learned on.
fn trained(data: &Dataset) -> (Model, Trainer) {
    let config = serde_json::from_value(small(data)).expect("settings");
    let config = Config { epoch_steps: 60, ..config };
    let mut trainer = Trainer::new(&Engine::cpu(), data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    (trainer.finish_blocking().expect("finishes"), trainer)
}

/// Asked to the horizon, a model does what the engine evaluates; what the schedule goes by is what it says it is.
#[test]
fn the_engine_evaluates_what_a_model_does() {
    let data = toy(6, 200);
    let (model, mut trainer) = trained(&data);
    let traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
    let evaluation = trainer.stepper_mut().evaluate_blocking(Part::Test).expect("evaluates");
    let asked =
        episodes(&model, &data, Part::Test, &Rules { may_stop: false, ..Rules::default() }).expect("asks");
    let ended = asked.ended();
    assert_eq!((&ended.path, &ended.guess), (&traces.path, &traces.guess));
    assert!(
        traces.path.iter().all(|&feature| (feature as usize) < traces.features),
        "it went to the horizon"
    );
    // The loss after each acquisition, under hard masks.
    let labels = &data.splits()[2].y;
    let loss = |t: usize| asked.after(t).summary(data.problem(), labels, 0.0).loss;
    let steps = model.steps();
    let hard = (1..=steps).map(loss).sum::<f64>() / steps as f64;
    assert!((evaluation.extra[0] - hard).abs() < 1e-4 * hard, "{} {hard}", evaluation.extra[0]);
    assert!((evaluation.loss - loss(steps)).abs() < 1e-4 * hard);
    assert_eq!(evaluation.instances, labels.len() as f64);

    // With logits that no noise can overrule, a relaxed choice is the greedy one; with noise it is another.
    let average = |stepper: &Stepper| stepper.program().plan().find("gdfs.average").expect("declared");
    let values = trainer.stepper().program().read_blocking(average(trainer.stepper())).expect("reads");
    for (gamma, is_greedy) in [(1e-7, true), (1.0, false)] {
        let config = Config { gamma, ..trainer.config().clone() };
        for (name, engine) in engines() {
            let mut stepper = Stepper::new(&engine, &data, config.clone()).expect("fits");
            let to = average(&stepper);
            stepper.program_mut().write(to, 0, &values);
            let [hard, soft, _] = stepper.evaluate_blocking(Part::Test).expect("evaluates").extra;
            assert!((hard - evaluation.extra[0]).abs() < 1e-5 * hard, "{name}: {hard}");
            assert_eq!((hard - soft).abs() < 1e-5 * hard, is_greedy, "{name}: {hard} {soft}");
        }
    }
}

#[test]
fn a_model_comes_back_from_its_file_and_asks() {
    let folder = TempDir::new("gdfs-model");
    let file = folder.0.join("model.safetensors");
    let data = toy(6, 200);
    let (model, _) = trained(&data);
    model.save(&file).expect("saves");
    let loaded = Model::load(&file).expect("loads");
    assert_eq!(loaded, model);
    assert_eq!((loaded.method(), loaded.steps(), loaded.alpha()), ("gdfs", 3, 0.0));
    let names = |net: &str| loaded.network(net).len();
    assert_eq!((names("selector"), names("predictor"), names("policy")), (3, 3, 0));

    let ask = |model: &Model| {
        let row = &data.splits()[2].x[..data.problem().columns()];
        let groups = data.problem().group_of_column();
        let of = |feature: usize| -> Vec<f32> {
            let columns = groups.iter().zip(row).filter(|(group, _)| **group as usize == feature);
            columns.map(|(_, &value)| value).collect()
        };
        let mut session = model.session();
        session.given(of(data.problem().features().len())).expect("given");
        let mut asked = Vec::new();
        while let Step::Acquire(feature) = session.next() {
            session.observe(feature, of(feature)).expect("observes");
            asked.push(feature);
        }
        (asked, session.predict().to_vec())
    };
    let certain = |model: Model| model.with_tradeoff(0.0).expect("valid");
    assert_eq!(ask(&loaded), ask(&model));
    let (asked, belief) = ask(&certain(loaded));
    assert_eq!(asked.len(), 3, "it is never that certain");
    assert!(asked.iter().all(|feature| asked.iter().filter(|other| *other == feature).count() == 1));
    assert_eq!((asked, belief), ask(&certain(model)));
}

/// A higher threshold on the entropy never asks more, and what it asks is the beginning of what a lower one asks.
#[test]
fn a_threshold_for_every_trade_off() {
    let data = toy(6, 200);
    let (model, _) = trained(&data);
    let at = |threshold: f64| model.clone().with_tradeoff(threshold).expect("valid");
    let run = |model: &Model, rules: &Rules| episodes(model, &data, Part::Test, rules).expect("asks");
    let whole = run(&model, &Rules { may_stop: false, ..Rules::default() });
    // Some of the entropies that it looks at, and what is below and above all of them: from 0 to ln 3.
    let moments = whole.episodes.iter().flat_map(|episode| &episode.moments);
    let mut scores: Vec<f32> = moments.filter_map(|moment| moment.stop_score).collect();
    scores.sort_by(f32::total_cmp);
    let mut thresholds = vec![0.0, 1.1];
    thresholds.splice(1..1, (1..10).map(|tenth| scores[scores.len() * tenth / 10].into()));
    let all: Vec<_> = thresholds.iter().map(|&threshold| run(&at(threshold), &Rules::default())).collect();
    for (threshold, episodes) in thresholds.iter().zip(&all) {
        // One rollout to the horizon has all of them in it.
        assert_eq!(episodes.ended(), whole.below(*threshold as f32), "{threshold}");
        for episode in &episodes.episodes {
            let entropy: f32 = episode.belief.iter().map(|p| -p * p.ln()).sum();
            let is_certain = entropy < *threshold as f32 + 1e-6;
            assert!(
                is_certain || episode.path.len() == model.steps(),
                "{threshold}: it stopped at {entropy}"
            );
        }
    }
    for pair in all.windows(2) {
        for (low, high) in pair[0].episodes.iter().zip(&pair[1].episodes) {
            assert!(low.path.starts_with(&high.path), "{low:?} {high:?}");
        }
    }
    let asked: Vec<usize> =
        all.iter().map(|all| all.episodes.iter().map(|episode| episode.path.len()).sum()).collect();
    println!("{asked:?} questions at {thresholds:?}");
    assert_eq!((asked[0], asked[10]), (100 * model.steps(), 0));
    assert!(asked.windows(2).filter(|pair| pair[1] < pair[0]).count() >= 5, "{asked:?}");
    // The settings' own.
    assert_eq!(run(&model, &Rules::default()), run(&at(Config::default().threshold), &Rules::default()));
}

#[test]
fn bad_thresholds_are_refused() {
    let data = toy(4, 30);
    let config = Config { hidden: vec![4], ..Config::default() };
    let mut trainer = Trainer::new(&Engine::cpu(), &data, config.clone()).expect("fits");
    let model = trainer.finish_blocking().expect("finishes");
    for threshold in [-0.1, f64::NAN, f64::INFINITY] {
        let error = model.clone().with_tradeoff(threshold).expect_err("out of range").to_string();
        assert!(error.contains("zero or more") && error.contains(&threshold.to_string()), "{error}");
        let error = Config { threshold, ..config.clone() }.check(data.problem()).expect_err("out of range");
        assert!(error.to_string().contains("threshold"), "{error}");
    }
    let mut settings = (entry().defaults)(&data);
    (entry().check)(&data, &settings).expect("the defaults are valid");
    for (key, value) in [
        ("threshold", json!(-1.0)),
        ("gamma", json!(0.0)),
        ("end_temperature", json!(-0.2)),
        ("hidden", json!([])),
        ("dropout", json!(1.0)),
        ("temperatures", json!(0)),
        ("horizon", json!(5)),
        ("thresold", json!(0.1)),
    ] {
        let before = settings.get(key).cloned();
        settings[key] = value;
        let error = (entry().check)(&data, &settings).expect_err(key).to_string();
        assert!(error.contains(key), "{error}");
        match before {
            Some(before) => settings[key] = before,
            None => drop(settings.as_object_mut().expect("an object").remove(key)),
        }
    }
}
