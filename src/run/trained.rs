//! A model whose training is over: where it is tested, and what comes of it.

use super::{Point, Run};
use crate::data::encoding::{Encoding, Metric};
use crate::data::{Dataset, Part};
use crate::digest::Digest;
use crate::error::Result;
use crate::methods::{Tradeoff, reader};
use crate::policy::evaluate::{self, Outcomes, Summary};
use crate::policy::{Model, mean_score};

/// Points that the curve that travels with a model of a range begins with.
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

    /// Tests it at some trade-offs on the test rows, or on the validation rows if there are none.
    ///
    /// # Errors
    /// It was not trained for one of them, or on another problem.
    pub fn test(&self, tradeoffs: &[f64], data: &Dataset, encoding: &Encoding) -> Result<Vec<Point>> {
        let part = if data.sizes()[2] > 0 { Part::Test } else { Part::Validation };
        let labels = &data.splits()[part as usize].y;
        let tested = self.outcomes(tradeoffs, data, part)?;
        let validated = self.validation(tradeoffs, data, encoding.metric)?;
        let point = |((&tradeoff, outcomes), validation): ((&f64, &Outcomes), f64)| {
            Ok(Point {
                method: self.model.method().into(),
                alpha: tradeoff,
                range: self.model.alphas().map(Into::into),
                seed: self.seed,
                model: self.file.clone(),
                seconds: self.seconds,
                epochs: self.epochs,
                test: self.summary(tradeoff, outcomes, data, labels)?,
                validation: Some(validation),
                digest: Digest::of(data, Some(encoding), part, outcomes),
                subsets: Vec::new(),
            })
        };
        tradeoffs.iter().zip(&tested).zip(validated).map(point).collect()
    }

    /// What it does at each of some trade-offs. Of a stop rule, one way through a row has all thresholds in it.
    fn outcomes(&self, tradeoffs: &[f64], data: &Dataset, part: Part) -> Result<Vec<Outcomes>> {
        if reader(self.model.method())?.tradeoff == Tradeoff::Threshold {
            return evaluate::outcomes_below(&self.model, data, part, tradeoffs);
        }
        let one = |&tradeoff: &f64| {
            evaluate::outcomes(&at(self.model.clone(), tradeoff)?, data, part, f64::INFINITY)
        };
        tradeoffs.iter().map(one).collect()
    }

    fn summary(&self, tradeoff: f64, outcomes: &Outcomes, data: &Dataset, labels: &[u32]) -> Result<Summary> {
        let alpha = at(self.model.clone(), tradeoff)?.alpha();
        Ok(outcomes.traces.summary(data.problem(), labels, alpha))
    }

    /// What it is judged by, on the validation rows: along its range, or at each trade-off.
    fn validation(&self, tradeoffs: &[f64], data: &Dataset, metric: Metric) -> Result<Vec<f64>> {
        let curve = self.model.curve();
        if !curve.is_empty() {
            return Ok(vec![mean_score(curve, metric); tradeoffs.len()]);
        }
        let labels = &data.splits()[Part::Validation as usize].y;
        let score = |(&tradeoff, outcomes): (&f64, &Outcomes)| {
            Ok(self.summary(tradeoff, outcomes, data, labels)?.score(metric))
        };
        let outcomes = self.outcomes(tradeoffs, data, Part::Validation)?;
        tradeoffs.iter().zip(&outcomes).map(score).collect()
    }

    /// A run of this model alone, tested where it knows to be; `problem` and `engine` are what it was trained on.
    ///
    /// # Errors
    /// It was trained on another problem.
    pub fn run(&self, problem: &str, engine: &str, data: &Dataset, encoding: &Encoding) -> Result<Run> {
        let mut run = Run::new(problem, engine, data, encoding);
        run.points = self.test(&self.tradeoffs()?, data, encoding)?;
        Ok(run)
    }
}
