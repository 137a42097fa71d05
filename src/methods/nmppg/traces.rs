//! A model's greedy policy on an engine.

use super::{Config, Stage, Stepper};
use crate::data::{Dataset, Part, Split};
use crate::engine::Engine;
use crate::error::Result;
use crate::policy::evaluate::Traces;
use crate::policy::{AlphaRange, Model, Tradeoffs};

/// Runs a model's greedy policy on rows in raw units, on an engine; a model of many trade-offs at its own
/// ([`Model::alpha`]).
///
/// # Errors
/// Rows that do not fit the problem, or a device that was lost or has too little memory.
pub fn traces_blocking(engine: &Engine, model: &Model, rows: &Split) -> Result<Traces> {
    let mut rows = rows.clone();
    model.normalization().apply(&mut rows.x);
    let data = Dataset::new(model.problem().clone(), rows, Split::default(), Split::default())?;
    // Nothing is trained: the smallest tape will do.
    let config = Config::from_file(model.settings().clone())
        .map_err(|error| crate::Error::Config(format!("not a model of NM-PPG: {error}")))?;
    let config = Config { batch: 32, ..config };
    let mut stepper = Stepper::new(engine, &data, config)?;
    if let Some(Tradeoffs { scale, .. }) = model.tradeoffs() {
        // Evaluations begin at the smallest α of the stage's range.
        let trained = AlphaRange::from_here(model.alpha());
        let stage = Stage { tradeoffs: Some(Tradeoffs { scale, trained }), ..*stepper.stage() };
        stepper.set_stage(stage)?;
    }
    stepper.set_weights(&model.network("policy"), &model.network("predictor"));
    stepper.traces_blocking(Part::Train)
}
