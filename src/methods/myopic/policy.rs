//! What was trained, without a device: a selector without a stop, and a predictor whose certainty decides.

use crate::data::Normalization;
use crate::error::Result;
use crate::nn::Tensors;
use crate::policy::history::Epoch;
use crate::policy::{Model, Networks, Perceptron, Policy, Stop, Stored, Trained, storable};
use crate::problem::Problem;
use crate::train::Settings;

/// What a policy's two networks need of a method's settings.
pub trait Shape: Settings {
    /// Widths of the hidden layers of both networks.
    fn hidden(&self) -> &[usize];
    /// The entropy, in nats, below which it stops.
    fn threshold(&self) -> f64;
    /// Acquisitions at most.
    fn horizon(&self, problem: &Problem) -> usize;
}

/// What training gave besides its settings: the networks' layers, in PyTorch's layout.
#[derive(Clone, Debug)]
pub struct Layers {
    /// The selector's.
    pub selector: Vec<Tensors>,
    /// The predictor's.
    pub predictor: Vec<Tensors>,
}

/// Puts a model together, its numbers rounded to f32.
///
/// # Errors
/// Settings, normalization or layers that do not fit the problem, or a number that is not finite.
pub fn model<C: Shape>(
    method: &'static str,
    problem: Problem,
    normalization: Normalization,
    config: &C,
    layers: &Layers,
    history: Vec<Epoch>,
) -> Result<Model> {
    config.check(&problem)?;
    let settings = storable("the configuration", config)?;
    let policy = networks(&problem, config, layers)?;
    let horizon = config.horizon(&problem);
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
pub fn load<C: Shape>(stored: &mut Stored) -> Result<Box<dyn Policy>> {
    let config: C = stored.config()?;
    config.check(&stored.problem)?;
    let [selector_widths, predictor_widths] = widths(&stored.problem, &config);
    let selector = stored.take_network("selector", &selector_widths)?;
    let predictor = stored.take_network("predictor", &predictor_widths)?;
    networks(&stored.problem, &config, &Layers { selector, predictor })
}

fn networks<C: Shape>(problem: &Problem, config: &C, layers: &Layers) -> Result<Box<dyn Policy>> {
    let [selector_widths, predictor_widths] = widths(problem, config);
    let selector = Perceptron::new("selector", &selector_widths, &layers.selector)?;
    let predictor = Perceptron::new("predictor", &predictor_widths, &layers.predictor)?;
    Ok(Box::new(Networks::new(problem, selector, predictor, Stop::Entropy(config.threshold() as f32))))
}

/// Inputs, hidden units and outputs of the selector and the predictor.
fn widths<C: Shape>(problem: &Problem, config: &C) -> [Vec<usize>; 2] {
    let (features, classes) = (problem.features().len(), problem.classes().len());
    let inputs = problem.columns() + features;
    [features, classes].map(|outputs| [&[inputs][..], config.hidden(), &[outputs]].concat())
}
