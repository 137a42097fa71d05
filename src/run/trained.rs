//! A model whose training is over: where it is tested, and what comes of it.

use super::{Point, Run};
use crate::data::encoding::{Encoding, Metric};
use crate::data::{Dataset, Part};
use crate::digest::Digest;
use crate::error::Result;
use crate::methods::{Tradeoff, reader};
use crate::policy::Model;
use crate::policy::evaluate;

/// Points of the curve that travels with a model of a range.
pub const CURVE: usize = 13;
/// Points of its range that are tested and drawn.
pub const TESTED: usize = 7;

/// A model with what its training took.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The model.
    pub model: Model,
    /// Its file, relative to the run's folder.
    pub file: String,
    /// Its seed.
    pub seed: u64,
    /// How long training took.
    pub seconds: f64,
    /// Epochs trained, and at most.
    pub epochs: [usize; 2],
}

/// A model at a trade-off, if it has several.
///
/// # Errors
/// It was not trained for that one.
pub fn at(model: Model, tradeoff: f64) -> Result<Model> {
    let by_threshold = reader(model.method())?.tradeoff == Tradeoff::Threshold;
    if by_threshold || model.alphas().is_some() { model.with_tradeoff(tradeoff) } else { Ok(model) }
}

impl Trained {
    /// The trade-offs that it is tested at unless somebody says others: some of its range, the usual thresholds, or its own.
    ///
    /// # Errors
    /// There is no such method.
    pub fn tradeoffs(&self) -> Result<Vec<f64>> {
        let method = reader(self.model.method())?;
        Ok(match (self.model.alphas(), method.tradeoff) {
            (Some(range), _) => range.grid(TESTED).into_iter().map(|alpha| range.shown(alpha)).collect(),
            (None, Tradeoff::Threshold) => (method.thresholds)(self.model.problem()),
            (None, _) => vec![self.model.alpha()],
        })
    }

    /// Tests it at a trade-off on the test rows, or on the validation rows if there are none.
    ///
    /// # Errors
    /// It was not trained for that trade-off, or on another problem.
    pub fn test(&self, tradeoff: f64, data: &Dataset, encoding: &Encoding) -> Result<Point> {
        let model = at(self.model.clone(), tradeoff)?;
        let part = if data.sizes()[2] > 0 { Part::Test } else { Part::Validation };
        let outcomes = evaluate::outcomes(&model, data, part, f64::INFINITY)?;
        let labels = &data.splits()[part as usize].y;
        Ok(Point {
            method: model.method().into(),
            alpha: tradeoff,
            range: model.alphas().map(Into::into),
            seed: self.seed,
            model: self.file.clone(),
            seconds: self.seconds,
            epochs: self.epochs,
            test: outcomes.traces.summary(data.problem(), labels, model.alpha()),
            validation: Some(validation(&model, data, encoding.metric)?),
            digest: Digest::of(data, Some(encoding), part, &outcomes),
            subsets: Vec::new(),
        })
    }

    /// A run of this model alone, tested where it knows to be; `problem` and `engine` are what it was trained on.
    ///
    /// # Errors
    /// It was trained on another problem.
    pub fn run(&self, problem: &str, engine: &str, data: &Dataset, encoding: &Encoding) -> Result<Run> {
        let mut run = Run::new(problem, engine, data, encoding);
        let test = |tradeoff| self.test(tradeoff, data, encoding);
        run.points = self.tradeoffs()?.into_iter().map(test).collect::<Result<_>>()?;
        Ok(run)
    }
}

/// What a model is judged by, on the validation rows: at its trade-off, or along its range.
fn validation(model: &Model, data: &Dataset, metric: Metric) -> Result<f64> {
    if !model.curve().is_empty() {
        let scores: f64 = model.curve().iter().map(|point| point.score(metric)).sum();
        return Ok(scores / model.curve().len() as f64);
    }
    let outcomes = evaluate::outcomes(model, data, Part::Validation, f64::INFINITY)?;
    let labels = &data.splits()[Part::Validation as usize].y;
    Ok(outcomes.traces.summary(data.problem(), labels, model.alpha()).score(metric))
}
