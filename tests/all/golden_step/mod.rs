//! Golden steps of methods that draw everything random from the seed: what a file has, how an engine takes the step, and
//! what is out of tolerance.

use crate::common::{self, assets, distance};
use crate::rig::unpadded;
use crate::spoil::File;
use querent::data::{Dataset, Split};
use querent::engine::kernels::words::clock;
use querent::engine::plan::Elem;
use querent::nn::{Stack, Tensors, pitch};
use querent::train::{Method, Settings, Stepper};
use querent::{Engine, Feature, Problem};
use safetensors::Dtype;
use std::collections::BTreeMap;

/// A file with a step: what is in it, and what it came to.
pub struct Golden {
    pub name: String,
    pub file: File,
}

pub type Named = BTreeMap<String, Vec<f64>>;

/// What must be equal, not close.
const EXACT: [&str; 3] = ["order", "path", "mask"];

/// How a method takes a step.
pub struct Way<M: Method> {
    pub config: M::Config,
    pub stage: M::Stage,
    /// Its optimiser groups, and the networks in each, by their names.
    pub groups: Vec<(&'static str, Vec<(&'static str, Stack)>)>,
    /// Means that are compared.
    pub means: &'static [&'static str],
    /// Widths of the layers that are dropped, and rows that a step has of an instance.
    pub hidden: Vec<usize>,
    pub dropped: usize,
    /// Whether choices are relaxed by noise.
    pub gumbel: bool,
}

impl Golden {
    pub fn all<const N: usize>(names: [&str; N]) -> Vec<Golden> {
        let golden = |name: &str| {
            let path = assets().join("golden").join(format!("{name}.safetensors"));
            Golden { name: name.into(), file: File::read(&path) }
        };
        names.map(golden).into()
    }

    pub fn find(&self, name: &str) -> Option<Vec<f64>> {
        let tensor = self.file.tensors.get(name)?;
        Some(match tensor.dtype {
            Dtype::I32 => tensor.words().map(|b| i32::from_le_bytes(b).into()).collect(),
            _ => tensor.words().map(|b| f32::from_le_bytes(b).into()).collect(),
        })
    }

    pub fn get(&self, name: &str) -> Vec<f64> {
        self.find(name).unwrap_or_else(|| panic!("{}: no `{name}`", self.name))
    }

    fn words(&self, name: &str) -> Vec<u32> {
        self.get(name).into_iter().map(|value| value as u32).collect()
    }

    pub fn number<N: std::str::FromStr>(&self, key: &str) -> N {
        let text = self.file.metadata.get(key).unwrap_or_else(|| panic!("{}: no `{key}`", self.name));
        text.parse().unwrap_or_else(|_| panic!("{}: `{key}` is {text}", self.name))
    }

    pub fn is_step(&self) -> bool {
        self.file.metadata["section"] == "step"
    }

    /// The widths of a network's layers.
    pub fn widths(&self, net: &str) -> Vec<usize> {
        (0..)
            .map_while(|i| self.file.tensors.get(&format!("{net}.{i}.bias")))
            .map(|bias| bias.shape[0])
            .collect()
    }

    pub fn data(&self, costs: &[f64], classes: usize) -> Dataset {
        let features = costs.len();
        let mut groups = self.words("group_of_column");
        let known = groups.iter().filter(|&&group| group as usize == features).count();
        groups.truncate(groups.len() - known);
        let list = costs.iter().enumerate().map(|(i, &cost)| Feature { name: format!("f{i}"), cost });
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
    fn pack(&self, stacks: &[(&str, Stack)], prefix: &str) -> Vec<f64> {
        let pack = |(net, stack): &(&str, Stack)| {
            let of = |i: usize, what: &str| self.get(&format!("{prefix}{net}.{i}.{what}"));
            let layers =
                (0..stack.layers.len()).map(|i| Tensors { weight: of(i, "weight"), bias: of(i, "bias") });
            stack.pack(&layers.collect::<Vec<_>>())
        };
        stacks.iter().flat_map(pack).collect()
    }

    /// Takes the step on an engine.
    pub fn run<M: Method>(&self, engine: &Engine, data: &Dataset, way: Way<M>) -> Named {
        let mut stepper =
            Stepper::<M>::new(engine, data, way.config.clone()).unwrap_or_else(|error| panic!("{error}"));
        stepper.set_stage(way.stage.clone()).expect("valid");
        let id = |stepper: &Stepper<M>, name: &str| stepper.program().plan().find(name).expect("declared");
        let steps: u32 = self.number("steps");
        // Slow weights begin where the file says; else they are the weights.
        let slow = self.file.tensors.keys().any(|name| name.starts_with("average."));
        let average = if slow { "average." } else { "" };
        for (group, stacks) in &way.groups {
            for (buffer, prefix) in
                [("values", ""), ("average", average), ("mean", "mean."), ("variance", "variance.")]
            {
                let to = id(&stepper, &format!("{group}.{buffer}"));
                stepper.program_mut().write(to, 0, &self.pack(stacks, prefix));
            }
        }
        // What earlier steps have left.
        for name in self.file.tensors.keys().filter_map(|name| name.strip_prefix("buffer.")) {
            let (to, values) = (id(&stepper, name), self.get(&format!("buffer.{name}")));
            match stepper.program().plan().buffer(to).elem {
                Elem::F32 => stepper.program_mut().write(to, 0, &values),
                Elem::U32 => {
                    let words: Vec<u32> = values.into_iter().map(|value| value as u32).collect();
                    stepper.program_mut().write_words(to, 0, &words);
                }
            }
        }
        let to = id(&stepper, "powers");
        let powers = [0.9f64, 0.999].map(|beta| beta.powf(steps.into()));
        stepper.program_mut().write(to, 0, &powers.repeat(way.groups.len()));
        let to = id(&stepper, "clock");
        let at = [steps, self.number("epoch"), self.number("turn")];
        stepper.program_mut().write_words(to, clock::STEP, &at);
        let calls = common::section(stepper.program().plan(), &self.file.metadata["section"]);
        stepper.program_mut().run(calls, 1);

        let means = stepper.means_blocking().expect("finite");
        let mut got: Named = way.means.iter().map(|&name| (name.to_string(), vec![means[name]])).collect();
        let reals = |name: &str| stepper.program().read_blocking(id(&stepper, name)).expect("reads");
        let words = |name: &str| stepper.program().read_words_blocking(id(&stepper, name)).expect("reads");
        got.insert("order".into(), self.order(data, &reals("x"), &words("y")));
        let (batch, features) = (way.config.batch(), data.problem().features().len());
        // The tape has more rows than the pretraining needs.
        let rows = if self.is_step() { batch * way.dropped } else { batch };
        for (i, &width) in way.hidden.iter().enumerate() {
            let name = format!("dropout.{i}");
            got.insert(name.clone(), unpadded(&reals(&name)[..rows * pitch(width)], width));
        }
        if self.is_step() {
            got.insert("path".into(), words("path").into_iter().map(f64::from).collect());
            if way.gumbel {
                got.insert("gumbel".into(), unpadded(&reals("gumbel"), features));
            }
        } else {
            got.insert("mask".into(), unpadded(&reals("masks")[..batch * pitch(features)], features));
        }
        for (group, stacks) in &way.groups {
            for (what, buffer) in [("grad", "grad"), ("after", "values"), ("slow", "average")] {
                if what == "slow" && !slow {
                    continue;
                }
                let values = reals(&format!("{group}.{buffer}"));
                for (net, stack) in stacks {
                    for (i, layer) in stack.unpack(&values).into_iter().enumerate() {
                        got.insert(format!("{what}.{net}.{i}.weight"), layer.weight);
                        got.insert(format!("{what}.{net}.{i}.bias"), layer.bias);
                    }
                }
            }
            // Without slow ones, the weights themselves are evaluated.
            let [average, values] = ["average", "values"].map(|what| reals(&format!("{group}.{what}")));
            assert!(slow || distance(&average, &values) < 1e-6);
        }
        got
    }

    /// Which of the table's rows are in the batch: no two are equal.
    fn order(&self, data: &Dataset, x: &[f64], y: &[u32]) -> Vec<f64> {
        let (columns, split) = (data.problem().columns(), &data.splits()[0]);
        let gathered = unpadded(x, columns);
        let order = gathered.chunks_exact(columns).map(|row| {
            let is_it = |from: &[f32]| from.iter().zip(row).all(|(a, b)| f64::from(*a) == *b);
            split.x.chunks_exact(columns).position(is_it).expect("a row of the table")
        });
        let order: Vec<usize> = order.collect();
        let labels: Vec<u32> = order.iter().map(|&row| split.y[row]).collect();
        assert_eq!(y, labels, "{}: the labels", self.name);
        order.into_iter().map(|row| row as f64).collect()
    }

    /// What is out of tolerance, and the largest errors of gradients and of all else.
    pub fn compare(&self, got: &Named, gradients: f64, others: f64) -> (Vec<String>, [f64; 2]) {
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

    /// Both engines, and the first one in f64, take the steps as PyTorch does.
    pub fn check(all: &[Golden], run: impl Fn(&Golden, &Engine) -> Named) {
        let check = |name: &str, engine: &Engine, gradients: f64, others: f64| {
            for golden in all {
                let (wrong, worst) = golden.compare(&run(golden, engine), gradients, others);
                println!("{name:8} {:14} largest errors {:.1e}, {:.1e}", golden.name, worst[0], worst[1]);
                assert!(wrong.is_empty(), "{name}, {}: {wrong:?}", golden.name);
            }
        };
        check("cpu f64", &Engine::cpu_f64(), 1e-6, 1e-6);
        let fused = common::fused().map(|engine| ("fused", engine));
        for (name, engine) in common::engines().into_iter().chain(fused) {
            check(name, &engine, 1e-4, 1e-5);
        }
    }

    /// The control: whatever is spoilt is seen, and every setting has its say, where `seen` says by what.
    pub fn check_control(
        all: Vec<Golden>,
        run: impl Fn(&Golden, &Engine) -> Named,
        settings: &[(&str, &str)],
        seen: impl Fn(&Golden, &str) -> Option<&'static str>,
    ) {
        for mut golden in all {
            let right = run(&golden, &Engine::cpu_f64());
            for name in right.keys() {
                let mut spoilt = right.clone();
                let values = spoilt.get_mut(name).expect("there");
                let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
                values[0] += if EXACT.contains(&name.as_str()) { 1.0 } else { 2e-4 * largest.max(1e-6) };
                let wrong = golden.compare(&spoilt, 1e-4, 1e-5).0;
                assert!(wrong.len() == 1 && wrong[0].starts_with(name), "{}: {name}: {wrong:?}", golden.name);
            }
            for &(key, value) in settings {
                let Some(seen) = seen(&golden, key) else { continue };
                let before = golden.file.metadata[key].clone();
                golden.file.set(key, value);
                let wrong = golden.compare(&run(&golden, &Engine::cpu_f64()), 1e-4, 1e-5).0;
                assert!(wrong.iter().any(|name| name.starts_with(seen)), "{}: {key}: {wrong:?}", golden.name);
                golden.file.set(key, &before);
            }
        }
    }
}
