//! What GDFS has trained, without a device: a selector without a stop, and a predictor whose certainty decides.

use super::config::Config;
use crate::data::Normalization;
use crate::error::Result;
use crate::nn::Tensors;
use crate::policy::history::Epoch;
use crate::policy::{Model, Networks, Perceptron, Policy, Stop, Stored, Trained, storable};
use crate::problem::Problem;
use crate::train::Settings;

/// Puts a model together from what training gave: the networks' layers, in PyTorch's layout, rounded to f32.
///
/// # Errors
/// Settings, normalization or layers that do not fit the problem, or a number that is not finite.
pub fn model(
    problem: Problem,
    normalization: Normalization,
    config: Config,
    selector: Vec<Tensors>,
    predictor: Vec<Tensors>,
    history: Vec<Epoch>,
) -> Result<Model> {
    config.check(&problem)?;
    let settings = storable("the configuration", &config)?;
    let policy = networks(&problem, &config, &selector, &predictor)?;
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
    let [selector_widths, predictor_widths] = widths(&stored.problem, &config);
    let selector = stored.take_network("selector", &selector_widths)?;
    let predictor = stored.take_network("predictor", &predictor_widths)?;
    networks(&stored.problem, &config, &selector, &predictor)
}

fn networks(
    problem: &Problem,
    config: &Config,
    selector: &[Tensors],
    predictor: &[Tensors],
) -> Result<Box<dyn Policy>> {
    let [selector_widths, predictor_widths] = widths(problem, config);
    let selector = Perceptron::new("selector", &selector_widths, selector)?;
    let predictor = Perceptron::new("predictor", &predictor_widths, predictor)?;
    Ok(Box::new(Networks::new(problem, selector, predictor, Stop::Entropy(config.threshold as f32))))
}

/// Inputs, hidden units and outputs of the selector and the predictor.
fn widths(problem: &Problem, config: &Config) -> [Vec<usize>; 2] {
    let (features, classes) = (problem.features().len(), problem.classes().len());
    let inputs = problem.columns() + features;
    [features, classes].map(|outputs| [&[inputs][..], &config.hidden, &[outputs]].concat())
}
