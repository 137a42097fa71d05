//! One training step from a file: the door through which ports, and our own tests, check that a step
//! is exact. A case holds the batch, the noise and the weights, the step's options and Adam's state if it
//! has any; the outcome holds the objective, its parts, the path, every gradient, and what the update makes
//! of the weights. `assets/golden/README.md` describes both files.

use super::Stepper;
use super::config::{Config, Gradient, Networks, Rollout};
use super::stage::Stage;
use crate::data::{Dataset, Split};
use crate::engine::Engine;
use crate::engine::kernels::words::{clock, settings};
use crate::engine::plan::BufferId;
use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::nn::{Network, Stack, Tensors, Weights, pitch};
use crate::problem::{Feature, Problem};
use crate::train::Method;
use crate::train::Noise;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// A tensor of a case file.
#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    shape: Vec<usize>,
    values: Vec<f64>,
}

/// A training step to replay.
#[derive(Clone, Debug)]
pub struct Case {
    data: Dataset,
    config: Config,
    stage: Stage,
    gumbel: Vec<f64>,
    dropout: Option<[Vec<f64>; 2]>,
    policy: Vec<Tensors>,
    predictor: Vec<Tensors>,
    update: Option<Update>,
}

/// What an update goes on from: of the policy and of the predictor, the steps done and [`STATE`].
#[derive(Clone, Debug)]
struct Update {
    steps: [u32; 2],
    state: [Vec<Vec<Tensors>>; 2],
}

/// What a replayed step gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// J, entropy bonus included: batch mean, like the others.
    pub objective: f64,
    /// The predictor's loss.
    pub prediction_loss: f64,
    /// Expected loss and cost.
    pub loss_and_cost: f64,
    /// Entropy over the surviving steps.
    pub entropy: f64,
    /// The feature acquired at each step: `[k][B]`.
    pub path: Vec<u32>,
    /// ∇J: the policy's gradients, in PyTorch's layout.
    pub policy: Vec<Tensors>,
    /// ∇L_pred: the predictor's.
    pub predictor: Vec<Tensors>,
    /// The sub-masks of what was asked that the predictor also learned on: `[B][d]`. Empty if it did not.
    pub submask: Vec<u32>,
    /// The weights of policy and predictor after the update. Empty, like the next, if the case has none.
    pub after: [Vec<Tensors>; 2],
    /// Their moving averages.
    pub average: [Vec<Tensors>; 2],
    steps: usize,
    batch: usize,
    networks: [Stack; 2],
    is_f64: bool,
}

/// The metadata keys of a case.
const KEYS: [&str; 6] = ["alpha", "k", "tau_hard", "tau_soft", "lambda_ent", "rollout"];
/// Those of the step's options, each as published if it is missing.
const OPTIONS: [&str; 9] =
    ["exact_stop", "hazard", "reinforce", "rollouts", "lure", "guard", "focus", "submasks", "seed"];
/// Those of the update: all of them or none.
const UPDATE: [&str; 5] = ["policy_rate", "predictor_rate", "policy_steps", "predictor_steps", "ema"];
/// What options were called in earlier versions: such files are still read.
const OLDER: [(&str, &str); 4] =
    [("score", "reinforce"), ("twins", "rollouts"), ("parts", "submasks"), ("average", "ema")];
/// What an update keeps of each weight: Adam's moments, and the moving average.
const STATE: [&str; 3] = ["mean", "variance", "average"];

/// All metadata keys.
fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.into_iter().chain(OPTIONS).chain(UPDATE)
}

/// Reads a case piece by piece and remembers what was asked for.
struct Reader {
    path: PathBuf,
    tensors: BTreeMap<String, Tensor>,
    metadata: HashMap<String, String>,
}

impl Reader {
    fn fail<T>(&self, what: String) -> Result<T> {
        Err(Error::file(&self.path, what))
    }

    fn open(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
        let bad = |error: safetensors::SafeTensorError| {
            Error::file(path, format!("not a safetensors file, or cut off: {error}")).because(error)
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(bad)?;
        let mut reader = Self {
            path: path.to_path_buf(),
            tensors: BTreeMap::new(),
            metadata: header.metadata().clone().unwrap_or_default(),
        };
        for (old, new) in OLDER {
            if !reader.metadata.contains_key(new)
                && let Some(value) = reader.metadata.remove(old)
            {
                reader.metadata.insert(new.into(), value);
            }
        }
        for (name, view) in SafeTensors::deserialize(&bytes).map_err(bad)?.iter() {
            if name.starts_with("expect.") {
                continue;
            }
            let values = match numbers(&view) {
                Some(values) => values,
                None => {
                    return reader.fail(format!(
                        "tensor `{name}` has type {:?}; f32, f64, i32 and i64 are read",
                        view.dtype()
                    ));
                }
            };
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                let value = values[at];
                return reader.fail(format!("tensor `{name}`: element {at} is {value}, not a finite number"));
            }
            reader.tensors.insert(name.to_string(), Tensor { shape: view.shape().to_vec(), values });
        }
        if let Some(key) = reader.metadata.keys().find(|key| keys().all(|known| known != key.as_str())) {
            let known: Vec<&str> = keys().collect();
            return reader.fail(format!("unknown metadata `{key}`; known are {}", known.join(", ")));
        }
        Ok(reader)
    }

    fn text(&self, key: &str) -> Result<&str> {
        match self.metadata.get(key) {
            Some(text) => Ok(text),
            None => self.fail(format!("metadata `{key}` is missing")),
        }
    }

    fn number<N: std::str::FromStr>(&self, key: &str) -> Result<N> {
        let text = self.text(key)?;
        text.parse().or_else(|_| self.fail(format!("metadata `{key}` is `{text}`, not a number that fits")))
    }

    /// A number that may be missing.
    fn option<N: std::str::FromStr>(&self, key: &str, usual: N) -> Result<N> {
        if self.metadata.contains_key(key) { self.number(key) } else { Ok(usual) }
    }

    /// The options and rates of a stage.
    fn stage(&self, has_update: bool) -> Result<Stage> {
        let usual = Stage::default();
        let exact_stop = match self.metadata.get("exact_stop").map(String::as_str) {
            None => usual.exact_stop,
            Some("true") => true,
            Some("false") => false,
            Some(other) => {
                return self
                    .fail(format!("metadata `exact_stop` is `{other}`, but it must be `true` or `false`"));
            }
        };
        let stage = Stage {
            alpha: self.number("alpha")?,
            tradeoffs: None,
            tau_soft: self.number("tau_soft")?,
            lambda: self.number("lambda_ent")?,
            lure: self.option("lure", usual.lure)?,
            guard: self.option("guard", usual.guard)?,
            exact_stop,
            hazard: self.option("hazard", usual.hazard)?,
            reinforce: self.option("reinforce", usual.reinforce)?,
            rollouts: self.option("rollouts", usual.rollouts)?,
            focus: self.option("focus", usual.focus)?,
            submasks: self.option("submasks", usual.submasks)?,
            input_noise: 0.0,
            unavailable: 0.0,
            policy_rate: if has_update { self.number("policy_rate")? } else { usual.policy_rate },
            predictor_rate: if has_update { self.number("predictor_rate")? } else { usual.predictor_rate },
            ema: if has_update { self.number("ema")? } else { usual.ema },
        };
        stage.check()?;
        Ok(stage)
    }

    /// What an update keeps of a network with these inputs, hidden layers and outputs.
    fn state(&mut self, net: &str, [inputs, h0, h1, outputs]: [usize; 4]) -> Result<Vec<Vec<Tensors>>> {
        let mut state = Vec::new();
        for what in STATE {
            let name = format!("{what}.{net}");
            let (hidden, tensors) = self.network(&name, inputs, Some(outputs))?;
            if hidden != [h0, h1] {
                return self
                    .fail(format!("`{name}` has hidden layers of {hidden:?}, but `{net}` {:?}", [h0, h1]));
            }
            let mut values = tensors.iter().flat_map(|layer| layer.weight.iter().chain(&layer.bias));
            if what == "variance" && values.any(|&value| value < 0.0) {
                return self.fail(format!("`{name}` has a value below 0"));
            }
            state.push(tensors);
        }
        Ok(state)
    }

    /// Takes an optional tensor with so many dimensions.
    fn maybe(&mut self, name: &str, dimensions: usize) -> Result<Option<Tensor>> {
        match self.tensors.remove(name) {
            Some(tensor) if tensor.shape.len() != dimensions => self.fail(format!(
                "tensor `{name}` has shape {:?}, but {dimensions} dimension(s) are needed",
                tensor.shape
            )),
            other => Ok(other),
        }
    }

    fn take(&mut self, name: &str, dimensions: usize) -> Result<Tensor> {
        match self.maybe(name, dimensions)? {
            Some(tensor) => Ok(tensor),
            None => self.fail(format!("tensor `{name}` is missing")),
        }
    }

    /// A tensor's values, if it has this shape.
    fn of_shape(&self, name: &str, tensor: Tensor, shape: &[usize]) -> Result<Vec<f64>> {
        if tensor.shape != shape {
            return self.fail(format!("tensor `{name}` has shape {:?}, expected {shape:?}", tensor.shape));
        }
        Ok(tensor.values)
    }

    fn shaped(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f64>> {
        let tensor = self.take(name, shape.len())?;
        self.of_shape(name, tensor, shape)
    }

    /// A network's tensors and the widths of its hidden layers. `outputs`: `None` if its own last
    /// bias decides.
    fn network(
        &mut self,
        name: &str,
        inputs: usize,
        outputs: Option<usize>,
    ) -> Result<([usize; 2], Vec<Tensors>)> {
        let mut widths = vec![inputs];
        let mut tensors = Vec::new();
        for layer in 0..3 {
            let bias_name = format!("{name}.{layer}.bias");
            let bias = self.take(&bias_name, 1)?;
            let width = outputs.filter(|_| layer == 2).unwrap_or(bias.values.len());
            if width == 0 {
                return self.fail(format!("tensor `{bias_name}` is empty"));
            }
            let bias = self.of_shape(&bias_name, bias, &[width])?;
            let weight = self.shaped(&format!("{name}.{layer}.weight"), &[width, widths[layer]])?;
            widths.push(width);
            tensors.push(Tensors { weight, bias });
        }
        Ok(([widths[1], widths[2]], tensors))
    }
}

fn numbers(view: &TensorView<'_>) -> Option<Vec<f64>> {
    let data = view.data();
    let four = data.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
    let eight = data.chunks_exact(8).map(|b| [b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    match view.dtype() {
        Dtype::F32 => Some(four.map(|b| f32::from_le_bytes(b).into()).collect()),
        Dtype::I32 => Some(four.map(|b| i32::from_le_bytes(b).into()).collect()),
        Dtype::F64 => Some(eight.map(f64::from_le_bytes).collect()),
        Dtype::I64 => Some(eight.map(|b| i64::from_le_bytes(b) as f64).collect()),
        _ => None,
    }
}

/// An index. What is none (negative, too large, not whole) becomes one that no check accepts; small
/// negative ones keep their value for the message.
fn index(value: f64) -> u32 {
    if value.fract() != 0.0 || value.abs() > f64::from(i32::MAX) { u32::MAX } else { value as i32 as u32 }
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// A file that is not one, a tensor or metadata that is missing, unknown or of a wrong shape, a
    /// value that is not finite, a label, group, cost or horizon out of range.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut reader = Reader::open(path)?;
        Self::read(&mut reader).map_err(|error| match error {
            Error::File { .. } => error,
            other => Error::file(path, other.to_string()),
        })
    }

    fn read(r: &mut Reader) -> Result<Self> {
        let x = r.take("x", 2)?;
        let (batch, columns) = (x.shape[0], x.shape[1]);
        let cost = r.take("cost", 1)?.values;
        let features = cost.len();
        let group_of_column: Vec<u32> = match r.maybe("group_of_column", 1)? {
            Some(groups) => {
                r.of_shape("group_of_column", groups, &[columns])?.into_iter().map(index).collect()
            }
            None if columns == features => (0..columns as u32).collect(),
            None => {
                return r.fail(format!(
                    "`x` has {columns} columns but `cost` {features} features: \
                     `group_of_column` must say which column belongs to which feature"
                ));
            }
        };
        let steps: usize = r.number("k")?;
        let tau_hard: f64 = r.number("tau_hard")?;
        let has_update = UPDATE.iter().any(|&key| r.metadata.contains_key(key));
        let stage = r.stage(has_update)?;
        if stage.rollouts > batch.max(1) {
            return r.fail(format!("metadata `rollouts` is {}, but there are {batch} rows", stage.rollouts));
        }
        let rollout = match r.text("rollout")? {
            "st" => Rollout::StraightThrough,
            "soft" => Rollout::Soft,
            other => {
                return r.fail(format!("metadata `rollout` is `{other}`, but it must be `st` or `soft`"));
            }
        };
        if rollout == Rollout::Soft && stage.reinforce > 0.0 {
            return r.fail(
                "metadata `reinforce` is above 0, but a soft rollout makes no choices to reinforce".into(),
            );
        }
        let inputs = columns + features;
        let (policy_hidden, policy) = r.network("policy", inputs, Some(features + 1))?;
        let (predictor_hidden, predictor) = r.network("predictor", inputs, None)?;
        let classes = predictor[2].bias.len();
        let update = if has_update {
            let [p0, p1] = policy_hidden;
            let [q0, q1] = predictor_hidden;
            Some(Update {
                steps: [r.number("policy_steps")?, r.number("predictor_steps")?],
                state: [
                    r.state("policy", [inputs, p0, p1, features + 1])?,
                    r.state("predictor", [inputs, q0, q1, classes])?,
                ],
            })
        } else {
            None
        };

        let features_list =
            cost.iter().enumerate().map(|(i, &cost)| Feature { name: format!("x{}", i + 1), cost });
        let class_names = (0..classes).map(|class| class.to_string()).collect();
        let mut problem = Problem::new(features_list.collect(), group_of_column, class_names)?;
        if let Some(weights) = r.maybe("class_weight", 1)? {
            problem = problem.with_class_weights(weights.values)?;
        }
        let labels = r.shaped("y", &[batch])?;
        let train = Split {
            x: x.values.iter().map(|&value| value as f32).collect(),
            y: labels.into_iter().map(index).collect(),
        };
        let config = Config {
            alpha: stage.alpha.into(),
            horizon: Some(steps),
            unavailable: 0.0,
            batch,
            rollout,
            networks: Networks {
                policy: policy_hidden,
                predictor: predictor_hidden,
                // The multipliers are the file's; the rate only says that there are some.
                dropout: if r.tensors.contains_key("dropout.0") || r.tensors.contains_key("dropout.1") {
                    0.5
                } else {
                    0.0
                },
            },
            gradient: Gradient { tau_hard, rollouts: stage.rollouts.max(2), ..Gradient::default() },
            seed: r.option("seed", 0)?,
            memory_budget: u64::MAX,
            ..Config::default()
        };
        config.check(&problem)?;
        let gumbel = r.shaped("gumbel", &[steps, batch, features + 1])?;
        let dropout = if config.networks.dropout > 0.0 {
            Some([
                r.shaped("dropout.0", &[steps + 1, batch, predictor_hidden[0]])?,
                r.shaped("dropout.1", &[steps + 1, batch, predictor_hidden[1]])?,
            ])
        } else {
            None
        };
        if let Some(name) = r.tensors.keys().next() {
            return r.fail(format!("unknown tensor `{name}`"));
        }
        let data = Dataset::new(problem, train, Split::default(), Split::default())?;
        Ok(Self { data, config, stage, gumbel, dropout, policy, predictor, update })
    }

    /// Puts the case on an engine, everything but the step done.
    ///
    /// # Errors
    /// The engine has too little memory, or refuses something.
    pub fn prepare(&self, engine: &Engine) -> Result<Stepper> {
        let mut trainer = Stepper::with_noise(engine, &self.data, self.config.clone(), Noise::Given)?;
        trainer.set_stage(self.stage)?;
        let layout = trainer.method.layout.clone();
        let actions = layout.batches.sizes.features + 1;
        let betas = super::NmPpg::settings(&self.config, &self.stage);
        let program = trainer.program_mut();
        program.write(layout.policy.weights.values, 0, &layout.policy.stack.pack(&self.policy));
        program.write(layout.predictor.weights.values, 0, &layout.predictor.stack.pack(&self.predictor));
        program.write(layout.gumbel, 0, &padded(&self.gumbel, actions));
        for (layer, multipliers) in self.dropout.iter().flatten().enumerate() {
            program.write(
                layout.dropout[layer],
                0,
                &padded(multipliers, self.config.networks.predictor[layer]),
            );
        }
        if let Some(update) = &self.update {
            let nets = [&layout.policy, &layout.predictor];
            for (at, (net, state)) in nets.iter().zip(&update.state).enumerate() {
                for (id, tensors) in
                    [net.weights.mean, net.weights.variance, net.weights.average].into_iter().zip(state)
                {
                    program.write(id, 0, &net.stack.pack(tensors));
                }
                let power = |beta: usize| betas[beta].powf(update.steps[at].into());
                program.write(
                    layout.batches.powers,
                    2 * at,
                    &[power(settings::BETA1), power(settings::BETA2)],
                );
            }
            // The clock counts every step: the predictor takes part in all of them.
            program.write_words(layout.batches.clock, clock::STEP, &[update.steps[1]]);
        }
        Ok(trainer)
    }

    /// Replays the step on an engine.
    ///
    /// # Errors
    /// The engine has too little memory or refuses something, or a result is not a finite number.
    pub fn run_blocking(&self, engine: &Engine) -> Result<Outcome> {
        let mut trainer = self.prepare(engine)?;
        let step = trainer.training_step(&self.stage);
        trainer.run(step.prepare, 1);
        trainer.run(step.first, 1);
        if self.update.is_some() {
            trainer.run(step.update, 1);
        }
        let layout = trainer.method.layout.clone();
        let metrics = trainer.metrics_blocking()?;
        let program = trainer.program();
        let (policy, predictor) = (&layout.policy, &layout.predictor);
        let weights = |of: fn(&Weights) -> BufferId| -> Result<[Vec<Tensors>; 2]> {
            let net = |net: &Network| match self.update {
                Some(_) => Ok(net.stack.unpack(&program.read_blocking(of(&net.weights))?)),
                None => Ok(Vec::new()),
            };
            Ok([net(policy)?, net(predictor)?])
        };
        // The sub-masks are in the first rows of the relaxed masks, which nothing needs any more.
        let features = layout.batches.sizes.features;
        let submask = if self.stage.submasks > 0.0 {
            let rows = program.read_blocking(layout.masks)?;
            let rows = rows.chunks_exact(2 * pitch(features)).take(layout.batches.sizes.batch);
            rows.flat_map(|row| row[..features].iter().map(|&seen| seen as u32)).collect()
        } else {
            Vec::new()
        };
        let outcome = Outcome {
            objective: metrics.objective,
            prediction_loss: metrics.prediction_loss,
            loss_and_cost: metrics.loss_and_cost,
            entropy: metrics.entropy,
            path: program.read_words_blocking(layout.path)?,
            policy: policy.stack.unpack(&program.read_blocking(policy.weights.grad)?),
            predictor: predictor.stack.unpack(&program.read_blocking(predictor.weights.grad)?),
            submask,
            after: weights(|weights| weights.values)?,
            average: weights(|weights| weights.average)?,
            steps: layout.shape.steps,
            batch: layout.batches.sizes.batch,
            networks: [policy.stack.clone(), predictor.stack.clone()],
            is_f64: engine.real_bytes() == 8,
        };
        match outcome.tensors().into_iter().find(|(_, _, values)| values.iter().any(|v| !v.is_finite())) {
            Some((name, ..)) => Err(Error::Data(format!("the step's `{name}` is not a finite number"))),
            None => Ok(outcome),
        }
    }
}

/// Rows of a width, padded with zeros to its pitch.
fn padded(values: &[f64], width: usize) -> Vec<f64> {
    let padding = pitch(width) - width;
    values
        .chunks_exact(width)
        .flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(0.0, padding)))
        .collect()
}

impl Outcome {
    /// Every real tensor: name, shape, values.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>, Vec<f64>)> {
        let scalar = |name: &str, value| (name.to_string(), vec![1], vec![value]);
        let mut tensors = vec![
            scalar("J_ent", self.objective),
            scalar("L_pred", self.prediction_loss),
            scalar("G", self.loss_and_cost),
            scalar("H", self.entropy),
        ];
        let ([policy, predictor], [after, average]) = (&self.networks, [&self.after, &self.average]);
        let networks = [
            ("grad.policy", &self.policy, policy),
            ("grad.predictor", &self.predictor, predictor),
            ("after.policy", &after[0], policy),
            ("after.predictor", &after[1], predictor),
            ("average.policy", &average[0], policy),
            ("average.predictor", &average[1], predictor),
        ];
        for (name, values, stack) in networks {
            for ((i, values), layer) in values.iter().enumerate().zip(&stack.layers) {
                let weight = format!("{name}.{i}.weight");
                tensors.push((weight, vec![layer.outputs, layer.inputs], values.weight.clone()));
                tensors.push((format!("{name}.{i}.bias"), vec![layer.outputs], values.bias.clone()));
            }
        }
        tensors
    }

    /// The tensors of whole numbers: name, shape, values.
    pub fn words(&self) -> Vec<(String, Vec<usize>, Vec<u32>)> {
        let mut tensors = vec![("path".into(), vec![self.steps, self.batch], self.path.clone())];
        if !self.submask.is_empty() {
            let shape = vec![self.batch, self.submask.len() / self.batch];
            tensors.push(("submask".into(), shape, self.submask.clone()));
        }
        tensors
    }

    /// Writes the outcome to a file, under a temporary name first. Reals are f64 if the engine was.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bad = |error: safetensors::SafeTensorError| Error::file(path, error.to_string()).because(error);
        let dtype = if self.is_f64 { Dtype::F64 } else { Dtype::F32 };
        let mut buffers: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = self
            .tensors()
            .into_iter()
            .map(|(name, shape, values)| {
                let bytes = if self.is_f64 {
                    values.iter().flat_map(|value| value.to_le_bytes()).collect()
                } else {
                    values.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect()
                };
                (name, dtype, shape, bytes)
            })
            .collect();
        buffers.extend(self.words().into_iter().map(|(name, shape, values)| {
            let bytes = values.iter().flat_map(|&value| (value as i32).to_le_bytes()).collect();
            (name, Dtype::I32, shape, bytes)
        }));
        let views = buffers
            .iter()
            .map(|(name, dtype, shape, bytes)| {
                Ok((name, TensorView::new(*dtype, shape.clone(), bytes).map_err(bad)?))
            })
            .collect::<Result<Vec<_>>>()?;
        write_atomically(path, &safetensors::serialize(views, None).map_err(bad)?)
    }
}
