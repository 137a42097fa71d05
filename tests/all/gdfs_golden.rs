//! GDFS: whole steps against PyTorch.

use crate::common::{self, assets, distance, engines};
use crate::gdfs_kernels::widths;
use crate::rig::unpadded;
use crate::spoil::File;
use querent::data::{Dataset, Split};
use querent::engine::kernels::words::clock;
use querent::methods::gdfs::{Config, Stage, Stepper};
use querent::nn::{Stack, pitch};
use querent::{Engine, Feature, Problem};
use safetensors::Dtype;
use std::collections::BTreeMap;

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
