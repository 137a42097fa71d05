//! What DiFA has trained, without a device.

use super::config::Config;
use crate::data::Normalization;
use crate::error::Result;
use crate::methods::myopic::policy::{self, Layers, Shape};
use crate::nn::Tensors;
use crate::policy::Model;
use crate::policy::history::Epoch;
use crate::problem::Problem;

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
    let layers = Layers { selector, predictor };
    policy::model(super::NAME, problem, normalization, &config, &layers, history)
}

impl Shape for Config {
    fn hidden(&self) -> &[usize] {
        &self.hidden
    }
    fn threshold(&self) -> f64 {
        self.threshold
    }
    fn horizon(&self, problem: &Problem) -> usize {
        self.steps(problem)
    }
}
