//! Settings that every method has, and what follows from them.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::problem::Problem;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The horizon where none is given: at most so many acquisitions.
pub(crate) const HORIZON: usize = 30;
/// What a feature counts as costing at least where something is divided by costs: the gain of a free one is still to be
/// compared. Shaders have the same number.
pub(crate) const CHEAPEST: f64 = 1e-3;
/// Thresholds on the belief's entropy that are worth a look, as shares of what knowing nothing has.
const DOUBTS: [f64; 6] = [0.05, 0.15, 0.3, 0.5, 0.7, 0.9];
/// A table of fewer training rows gets dropout.
pub(crate) const FEW_ROWS: usize = 5_000;
/// More passes over the rows an epoch only teach a small table by heart.
const MOST_PASSES: usize = 20;

/// A method's settings, from JSON.
///
/// # Errors
/// They are not this method's.
pub(crate) fn read<C: DeserializeOwned>(method: &str, settings: &Value) -> Result<C> {
    serde_json::from_value(settings.clone())
        .map_err(|error| Error::Config(format!("settings of {method}: {error}")))
}

/// The acquisitions of a path, at most.
pub(crate) fn steps(horizon: Option<usize>, problem: &Problem) -> usize {
    horizon.unwrap_or(problem.features().len().min(HORIZON))
}

/// Checks the acquisitions of a path.
///
/// # Errors
/// None, or more than there are features.
pub(crate) fn check_steps(steps: usize, problem: &Problem) -> Result<()> {
    let features = problem.features().len();
    if (1..=features).contains(&steps) {
        return Ok(());
    }
    Err(Error::Config(format!(
        "the horizon is {steps}, but it must be 1 to {features}, the number of features"
    )))
}

/// Checks the widths of hidden layers, where there may be any number of them.
///
/// # Errors
/// There are none, or one has no units.
pub(crate) fn check_hidden(hidden: &[usize]) -> Result<()> {
    check_widths("hidden", hidden)
}

/// The same for a setting of another name.
///
/// # Errors
/// As there.
pub(crate) fn check_widths(name: &str, widths: &[usize]) -> Result<()> {
    if !widths.is_empty() && !widths.contains(&0) {
        return Ok(());
    }
    Err(Error::Config(format!("{name} is {widths:?}, but at least one layer is needed, none of width 0")))
}

/// Training steps of an epoch for a table: fewer for a small one.
pub(crate) fn epoch_steps(most: usize, batch: usize, data: &Dataset) -> usize {
    let rows = data.sizes()[0];
    most.min(MOST_PASSES * pass(rows, batch))
}

/// Training steps of a pass over so many rows, of so many instances each: at least one.
pub fn pass(rows: usize, batch: usize) -> usize {
    (rows / batch.clamp(1, rows.max(1))).max(1)
}

/// Training steps of an epoch, for passes over the data of so many: whole passes, as many as fit, and at least one.
pub fn whole_passes(epoch_steps: usize, pass: usize) -> usize {
    pass * (epoch_steps / pass).max(1)
}

/// From 1 down to `least` along a half cosine, for an angle from 0 to π.
pub(crate) fn falling(angle: f64, least: f64) -> f64 {
    least + (1.0 - least) * 0.5 * (1.0 + angle.cos())
}

/// Thresholds on the belief's entropy that are worth a look.
pub(crate) fn doubts(problem: &Problem) -> Vec<f64> {
    let most = (problem.classes().len() as f64).ln();
    DOUBTS.map(|share| (share * most * 1e3).round() / 1e3).to_vec()
}

/// Of what knowing nothing loses, the share that an answer of mean cost has to be worth where nobody says so.
const WORTH: f64 = 0.03;

/// What a unit of cost is worth where nobody says so.
pub(crate) fn alpha(problem: &Problem) -> f64 {
    share(WORTH, problem)
}

/// A share of what knowing nothing loses, for a mean cost: two digits of it.
pub(crate) fn share(of: f64, problem: &Problem) -> f64 {
    let costs = problem.features().iter().map(|feature| feature.cost);
    let mean = costs.sum::<f64>() / problem.features().len().max(1) as f64;
    let exact = of * (problem.classes().len() as f64).ln() / mean.max(CHEAPEST);
    format!("{exact:.1e}").parse().unwrap_or(exact)
}
