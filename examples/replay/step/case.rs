//! A training step to replay: what it begins with, and how an engine takes it.

use super::file::{Reader, UPDATE};
use super::outcome::Outcome;
use querent::data::{Dataset, Split};
use querent::engine::Program;
use querent::engine::kernels::words::{clock, settings};
use querent::engine::plan::BufferId;
use querent::nmppg::{Config, Gradient, Networks, NmPpg, Rollout, Stage, Stepper};
use querent::nn::{Stack, Tensors, pitch};
use querent::train::{Method, Noise};
use querent::{Engine, Error, Feature, Problem, Result};
use std::path::Path;

/// A training step to replay.
#[derive(Clone, Debug)]
pub struct Case {
    data: Dataset,
    config: Config,
    stage: Stage,
    gumbel: Vec<f64>,
    dropout: Option<[Vec<f64>; 2]>,
    /// The layers of policy and predictor.
    networks: [Vec<Tensors>; 2],
    update: Option<Update>,
}

/// What an update goes on from: of the policy and of the predictor, the steps done; mean, variance and average.
#[derive(Clone, Debug)]
struct Update {
    steps: [u32; 2],
    state: [Vec<Vec<Tensors>>; 2],
}

/// The networks' names.
const NETWORKS: [&str; 2] = ["policy", "predictor"];

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
        let costs = r.take("cost", 1)?.values;
        let features = costs.len();
        let groups = groups(r, columns, features)?;
        let steps: usize = r.number("k")?;
        let tau_hard: f64 = r.number("tau_hard")?;
        let has_update = UPDATE.iter().any(|&key| r.has(key));
        let stage = r.stage(has_update)?;
        if stage.rollouts > batch.max(1) {
            return r.fail(format!("metadata `rollouts` is {}, but there are {batch} rows", stage.rollouts));
        }
        let rollout = rollout(r, &stage)?;
        let inputs = columns + features;
        let (policy_hidden, policy) = r.network("policy", inputs, Some(features + 1))?;
        let (predictor_hidden, predictor) = r.network("predictor", inputs, None)?;
        let classes = predictor[2].bias.len();
        let hidden = [policy_hidden, predictor_hidden];
        let update =
            if has_update { Some(Update::read(r, inputs, hidden, [features + 1, classes])?) } else { None };
        let problem = problem(r, &costs, groups, classes)?;
        let labels = r.shaped("y", &[batch])?;
        let train = Split {
            x: x.values.iter().map(|&value| value as f32).collect(),
            y: labels.into_iter().map(index).collect(),
        };
        let is_dropped = r.tensors.contains_key("dropout.0") || r.tensors.contains_key("dropout.1");
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
                dropout: if is_dropped { 0.5 } else { 0.0 },
            },
            gradient: Gradient {
                tau_hard,
                rollouts: stage.rollouts.max(2),
                through_policy: r.flag("through_policy", true)?,
                ..Gradient::default()
            },
            seed: r.option("seed", 0)?,
            memory_budget: u64::MAX,
            ..Config::default()
        };
        config.check(&problem)?;
        let gumbel = r.shaped("gumbel", &[steps, batch, features + 1])?;
        let [first, second] = predictor_hidden.map(|width| [steps + 1, batch, width]);
        let dropout = match is_dropped {
            true => Some([r.shaped("dropout.0", &first)?, r.shaped("dropout.1", &second)?]),
            false => None,
        };
        if let Some(name) = r.tensors.keys().next() {
            return r.fail(format!("unknown tensor `{name}`"));
        }
        let data = Dataset::new(problem, train, Split::default(), Split::default())?;
        Ok(Self { data, config, stage, gumbel, dropout, networks: [policy, predictor], update })
    }

    /// Puts the case on an engine, everything but the step done.
    ///
    /// # Errors
    /// The engine has too little memory, or refuses something.
    pub fn prepare(&self, engine: &Engine) -> Result<Stepper> {
        let mut stepper = Stepper::with_noise(engine, &self.data, self.config.clone(), Noise::Given)?;
        stepper.set_stage(self.stage)?;
        let stacks = self.stacks();
        let mut write = |name: &str, values: &[f64]| -> Result<()> {
            let id = find(&stepper, name)?;
            stepper.program_mut().write(id, 0, values);
            Ok(())
        };
        for ((name, stack), tensors) in NETWORKS.iter().zip(&stacks).zip(&self.networks) {
            write(&format!("{name}.values"), &stack.pack(tensors))?;
        }
        write("gumbel", &padded(&self.gumbel, self.data.problem().features().len() + 1))?;
        for (layer, multipliers) in self.dropout.iter().flatten().enumerate() {
            let width = self.config.networks.predictor[layer];
            write(&format!("dropout.{layer}"), &padded(multipliers, width))?;
        }
        if let Some(update) = &self.update {
            for ((name, stack), state) in NETWORKS.iter().zip(&stacks).zip(&update.state) {
                for (what, tensors) in ["mean", "variance", "average"].iter().zip(state) {
                    write(&format!("{name}.{what}"), &stack.pack(tensors))?;
                }
            }
            let values = NmPpg::settings(&self.config, &self.stage);
            let betas = [values[settings::BETA1], values[settings::BETA2]];
            let powers = update.steps.map(|steps| betas.map(|beta| beta.powf(steps.into())));
            write("powers", powers.as_flattened())?;
            // The clock counts every step: the predictor takes part in all of them.
            let id = find(&stepper, "clock")?;
            stepper.program_mut().write_words(id, clock::STEP, &[update.steps[1]]);
        }
        Ok(stepper)
    }

    /// Policy and predictor as the plan's buffers have them.
    fn stacks(&self) -> [Stack; 2] {
        let (problem, hidden) = (self.data.problem(), self.config.networks);
        let features = problem.features().len();
        let of = |[h0, h1]: [usize; 2], outputs: usize| {
            Stack::new(0, &[problem.columns() + features, h0, h1, outputs])
        };
        [of(hidden.policy, features + 1), of(hidden.predictor, problem.classes().len())]
    }

    /// Replays the step on an engine.
    ///
    /// # Errors
    /// The engine has too little memory or refuses something, or a result is not a finite number.
    pub fn run_blocking(&self, engine: &Engine) -> Result<Outcome> {
        let mut stepper = self.prepare(engine)?;
        let step = match self.stage.reinforce == 1.0 && self.stage.exact_stop {
            true => "step.reinforce",
            false => "step",
        };
        let parts = ["prepare", "micro.0", "update"];
        for part in &parts[..if self.update.is_some() { 3 } else { 2 }] {
            let name = format!("{step}.{part}");
            let section = stepper.program().plan().find_section(&name).ok_or_else(|| missing(&name))?;
            stepper.program_mut().run(section.calls(), 1);
        }
        let means = stepper.means_blocking()?;
        let stacks = self.stacks();
        let read = |what: &str| -> Result<[Vec<Tensors>; 2]> {
            let network = |at: usize| {
                let id = find(&stepper, &format!("{}.{what}", NETWORKS[at]))?;
                Ok::<_, Error>(stacks[at].unpack(&stepper.program().read_blocking(id)?))
            };
            Ok([network(0)?, network(1)?])
        };
        let updated = |what: &str| if self.update.is_some() { read(what) } else { Ok(Default::default()) };
        let [policy, predictor] = read("grad")?;
        let outcome = Outcome {
            objective: means["objective"],
            prediction_loss: means["prediction_loss"],
            loss_and_cost: means["loss_and_cost"],
            entropy: means["entropy"],
            path: stepper.program().read_words_blocking(find(&stepper, "path")?)?,
            policy,
            predictor,
            submask: self.submask_blocking(&stepper)?,
            after: updated("values")?,
            average: updated("average")?,
            steps: self.config.steps(self.data.problem()),
            batch: stepper.batch(),
            networks: stacks,
            is_f64: matches!(stepper.program(), Program::CpuF64(_)),
        };
        match outcome.tensors().into_iter().find(|(_, _, values)| values.iter().any(|v| !v.is_finite())) {
            Some((name, ..)) => Err(Error::Data(format!("the step's `{name}` is not a finite number"))),
            None => Ok(outcome),
        }
    }

    /// The sub-masks, if there are any: in the first rows of the relaxed masks, which nothing needs any more.
    fn submask_blocking(&self, stepper: &Stepper) -> Result<Vec<u32>> {
        if self.stage.submasks == 0.0 {
            return Ok(Vec::new());
        }
        let features = self.data.problem().features().len();
        let rows = stepper.program().read_blocking(find(stepper, "masks")?)?;
        let rows = rows.chunks_exact(2 * pitch(features)).take(stepper.batch());
        Ok(rows.flat_map(|row| row[..features].iter().map(|&seen| seen as u32)).collect())
    }
}

impl Update {
    fn read(
        r: &mut Reader,
        inputs: usize,
        [[p0, p1], [q0, q1]]: [[usize; 2]; 2],
        [actions, classes]: [usize; 2],
    ) -> Result<Self> {
        Ok(Self {
            steps: [r.number("policy_steps")?, r.number("predictor_steps")?],
            state: [
                r.state("policy", [inputs, p0, p1, actions])?,
                r.state("predictor", [inputs, q0, q1, classes])?,
            ],
        })
    }
}

/// The feature of each column.
fn groups(r: &mut Reader, columns: usize, features: usize) -> Result<Vec<u32>> {
    match r.maybe("group_of_column", 1)? {
        Some(groups) => {
            Ok(r.of_shape("group_of_column", groups, &[columns])?.into_iter().map(index).collect())
        }
        None if columns == features => Ok((0..columns as u32).collect()),
        None => r.fail(format!(
            "`x` has {columns} columns but `cost` {features} features: \
             `group_of_column` must say which column belongs to which feature"
        )),
    }
}

fn rollout(r: &Reader, stage: &Stage) -> Result<Rollout> {
    match r.text("rollout")? {
        "st" => Ok(Rollout::StraightThrough),
        "soft" if stage.reinforce > 0.0 => {
            r.fail("metadata `reinforce` is above 0, but a soft rollout makes no choices to reinforce".into())
        }
        "soft" => Ok(Rollout::Soft),
        other => r.fail(format!("metadata `rollout` is `{other}`, but it must be `st` or `soft`")),
    }
}

fn problem(r: &mut Reader, costs: &[f64], groups: Vec<u32>, classes: usize) -> Result<Problem> {
    let features = costs.iter().enumerate().map(|(i, &cost)| Feature { name: format!("x{}", i + 1), cost });
    let names = (0..classes).map(|class| class.to_string()).collect();
    let problem = Problem::new(features.collect(), groups, names)?;
    match r.maybe("class_weight", 1)? {
        Some(weights) => problem.with_class_weights(weights.values),
        None => Ok(problem),
    }
}

/// An index. What is none (negative, too large, not whole) becomes one that no check accepts; small
/// negative ones keep their value for the message.
fn index(value: f64) -> u32 {
    if value.fract() != 0.0 || value.abs() > f64::from(i32::MAX) { u32::MAX } else { value as i32 as u32 }
}

/// A buffer of the step's plan.
fn find(stepper: &Stepper, name: &str) -> Result<BufferId> {
    stepper.program().plan().find(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::Internal(format!("the step's plan has no `{name}`"))
}

/// Rows of a width, padded with zeros to its pitch.
fn padded(values: &[f64], width: usize) -> Vec<f64> {
    let padding = pitch(width) - width;
    values
        .chunks_exact(width)
        .flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(0.0, padding)))
        .collect()
}
