//! What DIME has trained, without a device: a network that predicts and says what each feature is worth.

use super::config::Config;
use crate::data::Normalization;
use crate::error::Result;
use crate::methods::usual::CHEAPEST;
use crate::nn::Tensors;
use crate::policy::history::Epoch;
use crate::policy::{
    Activations, Case, Measure, Model, Perceptron, Policy, Stored, Tensor, Trained, belief, storable,
};
use crate::problem::Problem;
use crate::train::Settings;

/// The network's name in a model's file.
const NETWORK: &str = "network";

/// Puts a model together from what training gave: the network's layers, in PyTorch's layout, rounded to f32. Its outputs
/// are the classes' logits, then v of each feature.
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
    let horizon = config.steps(&problem);
    let method = super::NAME;
    Model::new(Trained {
        method,
        settings,
        problem,
        normalization,
        horizon,
        alpha: 0.0,
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

/// Inputs, hidden units and outputs.
fn widths(problem: &Problem, config: &Config) -> Vec<usize> {
    let (features, classes) = (problem.features().len(), problem.classes().len());
    [&[problem.columns() + features][..], &config.hidden, &[classes + features]].concat()
}

fn put_together(problem: &Problem, config: &Config, network: &[Tensors]) -> Result<Box<dyn Policy>> {
    Ok(Box::new(Values {
        network: Perceptron::new(NETWORK, &widths(problem, config), network)?,
        costs: problem.features().iter().map(|feature| feature.cost as f32).collect(),
        weights: problem.class_weights().iter().map(|&w| if w > 0.0 { w as f32 } else { 1.0 }).collect(),
        price: config.price.map(|price| price as f32),
        threshold: config.threshold as f32,
        columns: problem.columns(),
    }))
}

/// The network, and what its values are weighed by.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    network: Perceptron,
    costs: Vec<f32>,
    /// Of the classes; 1 for those of none, as in `choose`.
    weights: Vec<f32>,
    price: Option<f32>,
    threshold: f32,
    columns: usize,
}

impl Policy for Values {
    fn case(&self) -> Box<dyn Case + '_> {
        let mut case = Instance {
            of: self,
            threshold: self.threshold,
            network: Activations::new(&self.network),
            belief: vec![0.0; self.weights.len()],
            bound: 0.0,
            scores: vec![0.0; self.costs.len()],
            logits: vec![0.0; self.costs.len()],
        };
        case.weigh();
        Box::new(case)
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.threshold = belief::threshold(at)?;
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
    threshold: f32,
    network: Activations<'p>,
    belief: Vec<f32>,
    /// What the instance is expected to lose now: no feature is worth more.
    bound: f32,
    /// What features are chosen by. Quotients are without the bound, which does not change their order.
    scores: Vec<f32>,
    /// Their logarithms.
    logits: Vec<f32>,
}

impl Instance<'_> {
    /// What is believed, and what each feature is worth.
    fn weigh(&mut self) {
        let (logits, values) = self.network.output().split_at(self.belief.len());
        belief::believe(logits, &mut self.belief);
        let weighed = self.belief.iter().zip(&self.of.weights).map(|(f, weight)| f / weight);
        self.bound = belief::entropy(&self.belief) / weighed.sum::<f32>();
        for ((score, &v), &cost) in self.scores.iter_mut().zip(values).zip(&self.of.costs) {
            let share = 1.0 / (1.0 + (-v).exp());
            *score = match self.of.price {
                None => share / cost.max(CHEAPEST as f32),
                Some(price) => share * self.bound - price * cost,
            };
        }
        for (logit, score) in self.logits.iter_mut().zip(&self.scores) {
            *logit = score.max(f32::MIN_POSITIVE).ln();
        }
    }
}

impl<'p> Case for Instance<'p> {
    fn reset(&mut self) {
        self.network.reset();
        self.weigh();
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.threshold = belief::threshold(at)?;
        self.reset();
        Ok(())
    }

    fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) -> bool {
        self.network.observe(columns, inputs, feature.map(|feature| self.of.columns + feature));
        let fits = self.is_finite();
        if !fits {
            self.network.undo();
        }
        self.weigh();
        fits
    }

    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize> {
        belief::highest(&self.scores, open)
    }

    fn stops(&self, best: usize) -> bool {
        self.stop_score(best) < self.threshold
    }

    /// What the best feature is worth, for its cost.
    fn stop_score(&self, best: usize) -> f32 {
        match self.of.price {
            None => self.scores[best] * self.bound,
            Some(_) => self.scores[best],
        }
    }

    fn logits(&self) -> Option<&[f32]> {
        Some(&self.logits)
    }

    fn threshold(&self) -> Option<f32> {
        Some(self.threshold)
    }

    fn measure(&self) -> Measure {
        Measure::Worth
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
