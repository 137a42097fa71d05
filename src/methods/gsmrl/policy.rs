//! What GSMRL has trained, without a device: the surrogate, the policy that reads it, and the predictor.

use super::config::{Acquire, Config};
use super::host::{Surrogate, Thought};
use super::plan::{policy_width, surrogate};
use crate::data::Normalization;
use crate::error::{Error, Result};
use crate::nn::{Stack, Tensors};
use crate::policy::history::Epoch;
use crate::policy::{
    Activations, Case, Model, Perceptron, Policy, Stored, Tensor, Trained, belief, storable,
};
use crate::problem::Problem;
use crate::train::Settings;

/// Layers of its networks, in PyTorch's layout.
pub(super) struct Layers {
    pub couplings: Vec<Vec<Tensors>>,
    pub prior: Vec<Tensors>,
    pub predictor: Vec<Tensors>,
    pub policy: Vec<Tensors>,
}

/// Puts a model together from what training gave, rounded to f32.
///
/// # Errors
/// Settings, normalization or layers that do not fit the problem, or a number that is not finite.
pub(super) fn model(
    problem: Problem,
    normalization: Normalization,
    config: Config,
    layers: Layers,
    history: Vec<Epoch>,
) -> Result<Model> {
    config.check(&problem)?;
    let settings = storable("the configuration", &config)?;
    let policy = put_together(&problem, &config, layers)?;
    let (horizon, alpha) = (config.steps(&problem), config.one_alpha());
    let method = super::NAME;
    Model::new(Trained {
        method,
        settings,
        problem,
        normalization,
        horizon,
        alpha,
        policy,
        history,
        tradeoffs: None,
    })
}

/// Reads a policy from its file.
///
/// # Errors
/// Settings or tensors that do not fit the problem.
pub(super) fn load(stored: &mut Stored) -> Result<Box<dyn Policy>> {
    let config: Config = stored.config()?;
    config.check(&stored.problem)?;
    let widths = Widths::of(&stored.problem, &config);
    let couplings = widths.couplings.iter().enumerate();
    let layers = Layers {
        couplings: couplings
            .map(|(index, widths)| stored.take_network(&coupling(index), widths))
            .collect::<Result<_>>()?,
        prior: stored.take_network(PRIOR, &widths.prior)?,
        predictor: stored.take_network(PREDICTOR, &widths.predictor)?,
        policy: stored.take_network(POLICY, &widths.policy)?,
    };
    put_together(&stored.problem, &config, layers)
}

/// The networks' names in a model's file.
const PRIOR: &str = "prior";
const PREDICTOR: &str = "predictor";
const POLICY: &str = "policy";

fn coupling(index: usize) -> String {
    format!("flow.{index}")
}

/// Inputs, hidden units and outputs of each network.
struct Widths {
    couplings: Vec<Vec<usize>>,
    prior: Vec<usize>,
    predictor: Vec<usize>,
    policy: Vec<usize>,
}

impl Widths {
    fn of(problem: &Problem, config: &Config) -> Self {
        let sizes = [problem.columns(), problem.features().len(), problem.classes().len()];
        let [columns, features, classes] = sizes;
        let (couplings, prior) = surrogate(sizes, config);
        let widths = |stack: &Stack| -> Vec<usize> {
            let outputs = stack.layers.iter().map(|layer| layer.outputs);
            stack.layers.first().map(|layer| layer.inputs).into_iter().chain(outputs).collect()
        };
        let of = |inputs: usize, outputs: usize| [&[inputs][..], &config.hidden, &[outputs]].concat();
        Self {
            couplings: couplings.iter().map(widths).collect(),
            prior: widths(&prior),
            predictor: of(columns + features, classes),
            policy: of(policy_width(sizes), features + 1),
        }
    }
}

fn put_together(problem: &Problem, config: &Config, layers: Layers) -> Result<Box<dyn Policy>> {
    let widths = Widths::of(problem, config);
    let couplings = layers.couplings.iter().zip(&widths.couplings).enumerate();
    let couplings: Result<Vec<Perceptron>> =
        couplings.map(|(i, (layers, widths))| Perceptron::new(coupling(i), widths, layers)).collect();
    let prior = Perceptron::new(PRIOR, &widths.prior, &layers.prior)?;
    Ok(Box::new(Acquirer {
        surrogate: Surrogate::new(problem, couplings?, prior),
        predictor: Perceptron::new(PREDICTOR, &widths.predictor, &layers.predictor)?,
        policy: Perceptron::new(POLICY, &widths.policy, &layers.policy)?,
        columns: problem.columns(),
        features: problem.features().len(),
        classes: problem.classes().len(),
        prices: (config.acquire == Acquire::Information).then(|| {
            let costs = problem.features().iter().map(|feature| feature.cost);
            costs.map(|cost| (config.one_alpha() * cost) as f32).collect()
        }),
    }))
}

/// The networks together.
#[derive(Clone, Debug, PartialEq)]
struct Acquirer {
    surrogate: Surrogate,
    predictor: Perceptron,
    policy: Perceptron,
    columns: usize,
    features: usize,
    classes: usize,
    /// Where the surrogate chooses: what each feature has to lower its doubt by.
    prices: Option<Vec<f32>>,
}

fn fixed() -> Error {
    Error::Config(
        "the model was trained for one α and has nothing to move: train another one, or NM-PPG for a range of α"
            .into(),
    )
}

impl Policy for Acquirer {
    fn case(&self) -> Box<dyn Case + '_> {
        let mut case = Instance {
            of: self,
            thought: Thought::new(&self.surrogate),
            predictor: Activations::new(&self.predictor),
            policy: Activations::new(&self.policy),
            belief: vec![0.0; self.classes],
            wanted: vec![0.0; self.features + 1],
        };
        case.reset();
        Box::new(case)
    }

    fn set_tradeoff(&mut self, _: f64) -> Result<()> {
        Err(fixed())
    }

    fn tensors(&self) -> Vec<Tensor> {
        let mut tensors = self.surrogate.tensors();
        tensors.extend(self.predictor.tensors());
        tensors.extend(self.policy.tensors());
        tensors
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// One instance.
#[derive(Clone, Debug)]
struct Instance<'p> {
    of: &'p Acquirer,
    thought: Thought<'p>,
    predictor: Activations<'p>,
    policy: Activations<'p>,
    belief: Vec<f32>,
    /// How much each feature is wanted, and stopping.
    wanted: Vec<f32>,
}

impl Instance<'_> {
    /// What the policy and the predictor make of what is known.
    fn think(&mut self) {
        let (columns, inputs) = self.thought.think();
        self.policy.read(columns, inputs);
        match &self.of.prices {
            None => self.wanted.copy_from_slice(&self.policy.output()[..self.of.features + 1]),
            Some(prices) => {
                let gains = &mut self.wanted[..self.of.features];
                self.thought.inform(gains);
                gains.iter_mut().zip(prices).for_each(|(gain, price)| *gain -= price);
            }
        }
        belief::believe(&self.predictor.output()[..self.of.classes], &mut self.belief);
    }
}

impl<'p> Case for Instance<'p> {
    fn reset(&mut self) {
        self.thought.reset();
        self.predictor.reset();
        self.think();
    }

    fn set_tradeoff(&mut self, _: f64) -> Result<()> {
        Err(fixed())
    }

    fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) -> bool {
        self.predictor.observe(columns, inputs, feature.map(|feature| self.of.columns + feature));
        self.thought.observe(feature, columns, inputs);
        self.think();
        let fits = self.is_finite();
        if !fits {
            self.predictor.undo();
            self.thought.forget(feature, columns);
            self.think();
        }
        fits
    }

    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize> {
        belief::highest(&self.wanted[..self.of.features], open)
    }

    fn stops(&self, best: usize) -> bool {
        self.stop_score(best) < 0.0
    }

    /// Of equal ones, the feature counts.
    fn stop_score(&self, best: usize) -> f32 {
        let ahead = self.wanted[best] - self.wanted[self.of.features];
        if ahead >= 0.0 { 0.0 } else { ahead }
    }

    fn logits(&self) -> Option<&[f32]> {
        // Nats are no logits.
        self.of.prices.is_none().then_some(&self.wanted[..])
    }

    fn gain(&self, best: usize) -> Option<f32> {
        self.of.prices.is_some().then(|| self.wanted[best])
    }

    fn belief(&self) -> &[f32] {
        &self.belief
    }

    fn is_finite(&self) -> bool {
        self.predictor.is_finite() && self.wanted.iter().all(|wanted| wanted.is_finite())
    }

    fn boxed<'a>(&self) -> Box<dyn Case + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}
