//! What OL has trained, without a device: a network that predicts and says what each action is worth.

use super::config::Config;
use crate::data::Normalization;
use crate::error::{Error, Result};
use crate::nn::Tensors;
use crate::policy::history::Epoch;
use crate::policy::{
    Activations, Case, Model, Perceptron, Policy, Stored, Tensor, Trained, belief, storable,
};
use crate::problem::Problem;
use crate::train::Settings;

/// The network's name in a model's file.
const NETWORK: &str = "network";

/// Puts a model together from what training gave: the network's layers, in PyTorch's layout, rounded to f32. A hidden layer
/// has the predicting branch's units, then the value branch's; the outputs are the classes' logits, then Q of each feature
/// and Q of stopping.
///
/// # Errors
/// Settings, normalization or layers that do not fit the problem, or a number that is not finite.
pub fn model(
    problem: Problem,
    normalization: Normalization,
    config: Config,
    network: Vec<Tensors>,
    history: Vec<Epoch>,
) -> Result<Model> {
    config.check(&problem)?;
    let settings = storable("the configuration", &config)?;
    let policy = put_together(&problem, &config, &network)?;
    Model::new(Trained {
        method: super::NAME,
        settings,
        horizon: config.steps(&problem),
        alpha: config.price(),
        problem,
        normalization,
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
    let network = stored.take_network(NETWORK, &widths(&stored.problem, &config))?;
    put_together(&stored.problem, &config, &network)
}

/// Inputs, hidden units of both branches and outputs.
fn widths(problem: &Problem, config: &Config) -> Vec<usize> {
    let (features, classes) = (problem.features().len(), problem.classes().len());
    let hidden: Vec<usize> = config.hidden.iter().map(|width| 2 * width).collect();
    [&[problem.columns() + features][..], &hidden, &[classes + features + 1]].concat()
}

fn put_together(problem: &Problem, config: &Config, network: &[Tensors]) -> Result<Box<dyn Policy>> {
    Ok(Box::new(Values {
        network: Perceptron::new(NETWORK, &widths(problem, config), network)?,
        threshold: (!config.stops()).then_some(config.threshold as f32),
        columns: problem.columns(),
        features: problem.features().len(),
        classes: problem.classes().len(),
    }))
}

/// The network, and when to stop.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    network: Perceptron,
    /// The entropy of the belief, in nats, below which it stops; `None` where stopping has a value of its own.
    threshold: Option<f32>,
    columns: usize,
    features: usize,
    classes: usize,
}

/// Moves the threshold, where there is one.
fn moved(threshold: Option<f32>, at: f64) -> Result<Option<f32>> {
    match threshold {
        Some(_) => belief::threshold(at).map(Some),
        None => Err(Error::Config(
            "the model was trained for one α and has nothing to move: train it for another one".into(),
        )),
    }
}

impl Policy for Values {
    fn case(&self) -> Box<dyn Case + '_> {
        let mut case = Instance {
            of: self,
            threshold: self.threshold,
            network: Activations::new(&self.network),
            belief: vec![0.0; self.classes],
        };
        case.believe();
        Box::new(case)
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.threshold = moved(self.threshold, at)?;
        Ok(())
    }

    fn tensors(&self) -> Vec<Tensor> {
        self.network.tensors()
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// One instance.
#[derive(Clone, Debug)]
struct Instance<'p> {
    of: &'p Values,
    threshold: Option<f32>,
    network: Activations<'p>,
    belief: Vec<f32>,
}

impl Instance<'_> {
    fn believe(&mut self) {
        belief::believe(&self.network.output()[..self.of.classes], &mut self.belief);
    }

    /// Q of each feature, then Q of stopping.
    fn values(&self) -> &[f32] {
        &self.network.output()[self.of.classes..][..self.of.features + 1]
    }

    /// By how much acquiring a feature is better than stopping.
    fn lead(&self, feature: usize) -> f32 {
        self.values()[feature] - self.values()[self.of.features]
    }
}

impl<'p> Case for Instance<'p> {
    fn reset(&mut self) {
        self.network.reset();
        self.believe();
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.threshold = moved(self.threshold, at)?;
        self.reset();
        Ok(())
    }

    fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) -> bool {
        self.network.observe(columns, inputs, feature.map(|feature| self.of.columns + feature));
        let fits = self.is_finite();
        if !fits {
            self.network.undo();
        }
        self.believe();
        fits
    }

    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize> {
        belief::highest(&self.values()[..self.of.features], open)
    }

    fn stops(&self, best: usize) -> bool {
        self.stop_score(best) < self.threshold.unwrap_or(0.0)
    }

    /// What the best feature leads stopping by, if it is behind; or the entropy, where a threshold on it decides.
    fn stop_score(&self, best: usize) -> f32 {
        match self.threshold {
            // Of equal values, that of the feature counts.
            None => self.lead(best).min(0.0),
            Some(_) => belief::entropy(&self.belief),
        }
    }

    fn threshold(&self) -> Option<f32> {
        self.threshold
    }

    fn gain(&self, best: usize) -> Option<f32> {
        self.threshold.is_none().then(|| self.lead(best))
    }

    fn belief(&self) -> &[f32] {
        &self.belief
    }

    fn is_finite(&self) -> bool {
        self.network.is_finite()
    }

    fn boxed<'a>(&self) -> Box<dyn Case + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}
