//! The reference: a predictor trained and evaluated on all features at no cost. What it scores is the
//! best that acquiring could reach if nothing had a price.

use super::Stepper;
use super::config::Config;
use crate::data::Dataset;
use crate::data::Part;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::policy::history::Evaluation;

/// Trains the reference with the configuration's predictor, for as many epochs as the warm-up and one
/// stage have, and evaluates the epoch with the best validation loss on the test rows.
///
/// # Errors
/// Settings that do not fit the problem, no validation or test rows, or a device that was lost.
pub fn reference_blocking(engine: &Engine, data: &Dataset, config: &Config) -> Result<Evaluation> {
    if data.sizes()[1] == 0 || data.sizes()[2] == 0 {
        return Err(Error::Data("the reference needs validation and test rows".into()));
    }
    let mut stepper = Stepper::new(engine, data, config.clone())?;
    let epochs = config.schedule.warm_up_epochs + config.schedule.stage_epochs;
    let pass = stepper.steps_per_epoch();
    let mut best: Option<(f64, Evaluation)> = None;
    let mut since_best = 0;
    for epoch in 0..epochs {
        // The warm-up's falling rate, stretched over all epochs.
        let stretched = config.clone().with(|c| c.schedule.warm_up_epochs = epochs);
        stepper.set_stage(stretched.warm_up_stage(epoch, pass))?;
        stepper.reference_steps(config.whole_passes(pass));
        stepper.metrics_blocking()?;
        let validation = stepper.evaluate_all_blocking(Part::Validation)?;
        if best.is_none_or(|(loss, _)| validation.loss < loss) {
            best = Some((validation.loss, stepper.evaluate_all_blocking(Part::Test)?));
            since_best = 0;
        } else {
            since_best += 1;
        }
        if since_best >= config.schedule.patience {
            break;
        }
    }
    best.map(|(_, test)| test).ok_or_else(|| Error::Config("the reference was given no epochs".into()))
}
