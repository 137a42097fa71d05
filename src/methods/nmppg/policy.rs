//! What NM-PPG has trained, without a device: two networks, and a stop that has a logit of its own.

use super::config::Config;
use crate::data::Normalization;
use crate::error::{Error, Result};
use crate::nn::Tensors;
use crate::policy::history::Epoch;
use crate::policy::{
    Model, Networks, Perceptron, Policy, Stop, Stored, Tradeoffs, Trained, storable, tradeoff,
};
use crate::problem::Problem;

/// Puts a model together from what training gave: the networks' layers, in PyTorch's layout, rounded to f32.
///
/// # Errors
/// Settings, normalization or layers that do not fit the problem, or a number that is not finite.
pub fn model(
    problem: Problem,
    normalization: Normalization,
    config: Config,
    policy: Vec<Tensors>,
    predictor: Vec<Tensors>,
    history: Vec<Epoch>,
) -> Result<Model> {
    let tradeoffs = config.alpha.given();
    model_of(problem, normalization, (config, tradeoffs), [policy, predictor], history)
}

/// The same with the trade-offs that a run has found.
pub(super) fn model_of(
    problem: Problem,
    normalization: Normalization,
    (config, tradeoffs): (Config, Option<Tradeoffs>),
    [policy, predictor]: [Vec<Tensors>; 2],
    history: Vec<Epoch>,
) -> Result<Model> {
    config.check(&problem)?;
    if config.alpha.one().is_none() && tradeoffs.is_none() {
        return Err(Error::Config(
            "the run has not found its range of α yet: that is known after the warm-up".into(),
        ));
    }
    let settings = storable("the configuration", &config)?;
    let policy = networks(&problem, &config, tradeoffs, &policy, &predictor)?;
    let (horizon, alpha) = (config.steps(&problem), config.alpha.one().unwrap_or(0.0));
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
        tradeoffs,
    })
}

/// Reads a policy from its file.
///
/// # Errors
/// Settings or tensors that do not fit the problem.
pub(crate) fn load(stored: &mut Stored) -> Result<Box<dyn Policy>> {
    let config = Config::from_file(stored.settings.clone())
        .map_err(|error| Error::Config(format!("the model's `config` cannot be read: {error}")))?;
    config.check(&stored.problem)?;
    stored.settings = storable("the configuration", &config)?;
    if config.alpha.one().is_none() && stored.tradeoffs.is_none() {
        return Err(Error::Config("the model is one of a range of α, but has no `tradeoffs`".into()));
    }
    let tradeoffs = stored.tradeoffs.filter(|_| config.alpha.one().is_none());
    let [policy_widths, predictor_widths] = widths(&stored.problem, &config);
    let policy = stored.take_network("policy", &policy_widths)?;
    let predictor = stored.take_network("predictor", &predictor_widths)?;
    networks(&stored.problem, &config, tradeoffs, &policy, &predictor)
}

fn networks(
    problem: &Problem,
    config: &Config,
    tradeoffs: Option<Tradeoffs>,
    policy: &[Tensors],
    predictor: &[Tensors],
) -> Result<Box<dyn Policy>> {
    let [policy_widths, predictor_widths] = widths(problem, config);
    let policy = Perceptron::new("policy", &policy_widths, policy)?;
    let predictor = Perceptron::new("predictor", &predictor_widths, predictor)?;
    let mut networks = Networks::new(problem, policy, predictor, Stop::Logit);
    if let Some(tradeoffs) = tradeoffs {
        networks = networks.with_tradeoffs(tradeoffs);
    }
    if config.unavailable > 0.0 {
        networks = networks.with_availability();
    }
    Ok(Box::new(networks))
}

/// Inputs, hidden units and outputs of the policy and the predictor.
fn widths(problem: &Problem, config: &Config) -> [[usize; 4]; 2] {
    let (features, classes) = (problem.features().len(), problem.classes().len());
    let inputs = problem.columns() + features;
    let tradeoffs = if config.alpha.one().is_some() { 0 } else { tradeoff::COLUMNS };
    let told = tradeoffs + if config.unavailable > 0.0 { features } else { 0 };
    let [[a, b], [c, d]] = [config.networks.policy, config.networks.predictor];
    [[inputs + told, a, b, features + 1], [inputs, c, d, classes]]
}
