//! What training gives and deployment needs.

use super::curve::CurvePoint;
use super::history::Epoch;
use super::policy::{Policy, Tensor};
use super::session::Session;
use super::tradeoff::{AlphaRange, Tradeoffs};
use crate::data::Normalization;
use crate::data::encoding::Encoding;
use crate::engine::groups::{self, Groups};
use crate::error::{Error, Result};
use crate::nn::Tensors;
use crate::problem::Problem;
use serde::{Serialize, de::DeserializeOwned};

/// A trained policy and predictor, with all that is needed to use them.
///
/// A model is always usable: the shapes fit the problem, and every number is finite.
///
/// # Its file
/// A safetensors file with the tensors of its method, all f32; those of NM-PPG are `policy.{0,1,2}.weight` (`[outputs,
/// inputs]`, as PyTorch's linear layers), `policy.{0,1,2}.bias` and the same for `predictor`. Its metadata has three
/// entries: `format` (`querent model 2`), `querent` (the version that trained it), and `model`, a JSON text like this,
/// with the method's settings under `config`, an entry for each epoch under `history`, for a model of many trade-offs what
/// they are under `tradeoffs` and what it does at some of them under `curve`, and, for a model of a table, an
/// [`Encoding`] under `encoding`:
///
/// ```json
/// {
///   "method": "nmppg",
///   "problem": {
///     "features": [{ "name": "x1", "cost": 1.0, "columns": [0] }],
///     "classes": ["0", "1"],
///     "class_weights": [1.0, 1.0]
///   },
///   "normalization": { "mean": [0.0], "scale": [1.0] },
///   "horizon": 1,
///   "alpha": 0.02,
///   "config": {},
///   "history": []
/// }
/// ```
///
/// Files of older versions (`querent model 1`, always of NM-PPG) are read as well. Networks read `(x ⊙ m, m)`: the
/// normalized columns, zero where unknown, then 1 for each feature that is known and 0 for the others. NM-PPG's policy is told
/// more between the two: of a range of α which one counts (eight hat functions of ln α), and, unless its setting
/// `unavailable` is 0, 1 for each feature that cannot be had.
#[derive(Debug)]
pub struct Model {
    pub(super) problem: Problem,
    pub(super) normalization: Normalization,
    pub(super) steps: usize,
    pub(super) method: String,
    pub(super) settings: serde_json::Value,
    pub(super) alpha: f64,
    /// Where the stop rule was moved to since training.
    pub(super) tradeoff: Option<f64>,
    pub(super) tradeoffs: Option<Tradeoffs>,
    pub(super) curve: Vec<CurvePoint>,
    pub(super) policy: Box<dyn Policy>,
    pub(super) history: Vec<Epoch>,
    pub(super) version: String,
    pub(super) groups: Vec<u32>,
    pub(super) encoding: Option<Encoding>,
}

/// What a method has trained.
pub struct Trained {
    /// The method's name.
    pub method: &'static str,
    /// Its settings.
    pub settings: serde_json::Value,
    /// What is asked, and what it costs.
    pub problem: Problem,
    /// How values in the user's units become the policy's inputs.
    pub normalization: Normalization,
    /// Acquisitions at most.
    pub horizon: usize,
    /// What a unit of cost was worth in training; 0 if training did not know.
    pub alpha: f64,
    /// The policy.
    pub policy: Box<dyn Policy>,
    /// What training went through.
    pub history: Vec<Epoch>,
    /// The trade-offs it was trained for, if there are several.
    pub tradeoffs: Option<Tradeoffs>,
}

impl Model {
    /// Puts a model together.
    ///
    /// # Errors
    /// A normalization or a horizon that does not fit the problem, a number that is not finite, or a policy whose
    /// outputs overflow.
    pub fn new(trained: Trained) -> Result<Self> {
        let Trained { method, settings, problem, normalization, horizon, alpha, policy, history, tradeoffs } =
            trained;
        for (index, epoch) in history.iter().enumerate() {
            storable(format_args!("entry {index} of the training history"), epoch)?;
        }
        check_normalization(&problem, &normalization)?;
        // Until it is measured more finely: what the epoch that was kept did.
        let kept = history.iter().rfind(|epoch| epoch.best).filter(|_| tradeoffs.is_some());
        let curve = kept.map_or(Vec::new(), |epoch| epoch.passes.iter().map(CurvePoint::from).collect());
        // The range may have been narrowed since.
        let is_known = |point: &CurvePoint| tradeoffs.is_some_and(|of| of.trained.contains(point.alpha));
        let curve: Vec<CurvePoint> = curve.into_iter().filter(is_known).collect();
        let features = problem.features().len();
        if horizon == 0 || horizon > features {
            return fail(format!("the horizon is {horizon}, but there are {features} features"));
        }
        let model = Self {
            steps: horizon,
            version: env!("CARGO_PKG_VERSION").into(),
            groups: groups::words(features, problem.group_of_column()),
            problem,
            normalization,
            method: method.into(),
            settings,
            alpha,
            tradeoff: None,
            tradeoffs,
            curve,
            policy,
            history,
            encoding: None,
        };
        // Finite weights may still add up to something infinite.
        if !model.session().is_finite() {
            return fail("the networks' weights are so large that their outputs overflow".into());
        }
        Ok(model)
    }

    /// The same model with how the cells of its table become columns: it can then be asked in the table's
    /// own words and units.
    ///
    /// # Errors
    /// The encoding does not make the problem's columns.
    pub fn with_encoding(mut self, encoding: Encoding) -> Result<Self> {
        encoding.check(&self.problem)?;
        self.encoding = Some(encoding);
        Ok(self)
    }

    /// The same model that asks more or less: an α that it was trained for, or a threshold of its stop rule, where its
    /// method has one.
    ///
    /// # Errors
    /// The method was trained for one trade-off, or the value is out of range.
    pub fn with_tradeoff(mut self, at: f64) -> Result<Self> {
        self.policy.set_tradeoff(at)?;
        self.tradeoff = Some(at);
        Ok(self)
    }

    /// The same model without the record of its training, which asking does not need.
    pub fn without_history(mut self) -> Self {
        self.history.clear();
        self
    }

    /// How the cells of its table become columns; `None` if it was trained on numbers as they are.
    pub fn encoding(&self) -> Option<&Encoding> {
        self.encoding.as_ref()
    }

    /// Asks one instance through. See [`Session`].
    pub fn session(&self) -> Session<'_> {
        Session::new(self)
    }

    /// What can be asked, what it costs, and what is predicted.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// How values in the user's units become the policy's inputs.
    pub fn normalization(&self) -> &Normalization {
        &self.normalization
    }

    /// Acquisitions at most.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The name of the method that trained it.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The method's settings.
    pub fn settings(&self) -> &serde_json::Value {
        &self.settings
    }

    /// What a unit of cost is worth to it, in nats of loss: what it was in training; of a model of many trade-offs
    /// what [`Model::with_tradeoff`] has said, else the knee of its curve; 0 if training did not know. Where α is a setting
    /// of the policy and not of its training, what it is now.
    pub fn alpha(&self) -> f64 {
        match (self.tradeoffs, self.tradeoff) {
            (Some(_), Some(alpha)) => alpha,
            (Some(tradeoffs), None) => {
                self.choices().map_or(tradeoffs.trained.middle(), |choices| choices.knee.alpha)
            }
            (None, _) => self.policy.alpha().unwrap_or(self.alpha),
        }
    }

    /// What it knows about trade-offs; `None` for a single one, or if training did not know.
    pub fn tradeoffs(&self) -> Option<Tradeoffs> {
        self.tradeoffs
    }

    /// The trade-offs it was trained for; `None` for a single one, or if training did not know.
    pub fn alphas(&self) -> Option<AlphaRange> {
        self.tradeoffs.map(|tradeoffs| tradeoffs.trained)
    }

    /// The seed it was trained with; 0 if its method has none.
    pub fn seed(&self) -> u64 {
        self.settings.get("seed").and_then(serde_json::Value::as_u64).unwrap_or(0)
    }

    /// What was trained.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// What training went through.
    pub fn history(&self) -> &[Epoch] {
        &self.history
    }

    /// The version of querent that trained it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All tensors of its policy, which are exactly those of its file.
    pub fn tensors(&self) -> Vec<Tensor> {
        self.policy.tensors()
    }

    /// The layers of one of its networks, in PyTorch's layout; none if it has no network of that name.
    pub fn network(&self, name: &str) -> Vec<Tensors> {
        let tensors = self.tensors();
        let find = |index: usize, what: &str| {
            let name = format!("{name}.{index}.{what}");
            let tensor = tensors.iter().find(|tensor| tensor.name == name)?;
            Some(tensor.values.iter().map(|&value| f64::from(value)).collect())
        };
        let layer = |index| Some(Tensors { weight: find(index, "weight")?, bias: find(index, "bias")? });
        (0..).map_while(layer).collect()
    }

    /// The columns a feature reveals, in ascending order.
    pub(crate) fn columns_of(&self, feature: usize) -> &[u32] {
        let (features, columns) = (self.problem.features().len(), self.problem.columns());
        Groups::new(&self.groups, features as u32, columns as u32).columns_of(feature)
    }

    /// The columns that are known from the start.
    pub(crate) fn known_columns(&self) -> &[u32] {
        let (features, columns) = (self.problem.features().len(), self.problem.columns());
        Groups::new(&self.groups, features as u32, columns as u32).known()
    }
}

impl Clone for Model {
    fn clone(&self) -> Self {
        Self {
            problem: self.problem.clone(),
            normalization: self.normalization.clone(),
            steps: self.steps,
            method: self.method.clone(),
            settings: self.settings.clone(),
            alpha: self.alpha,
            tradeoff: self.tradeoff,
            tradeoffs: self.tradeoffs,
            curve: self.curve.clone(),
            policy: self.policy.boxed(),
            history: self.history.clone(),
            version: self.version.clone(),
            groups: self.groups.clone(),
            encoding: self.encoding.clone(),
        }
    }
}

/// Everything that a file holds.
impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        let key = |m: &Self| (m.steps, m.alpha.to_bits(), m.method.clone(), m.version.clone());
        key(self) == key(other)
            && self.problem == other.problem
            && self.normalization == other.normalization
            && self.settings == other.settings
            && self.history == other.history
            && self.encoding == other.encoding
            && self.tradeoff == other.tradeoff
            && self.tradeoffs == other.tradeoffs
            && self.curve == other.curve
            && self.tensors() == other.tensors()
    }
}

pub(super) fn fail<T>(what: String) -> Result<T> {
    Err(Error::Config(what))
}

fn check_normalization(problem: &Problem, normalization: &Normalization) -> Result<()> {
    let (columns, means, scales) = (problem.columns(), &normalization.mean, &normalization.scale);
    if means.len() != columns || scales.len() != columns {
        return fail(format!(
            "the normalization has {} means and {} scales for {columns} columns",
            means.len(),
            scales.len()
        ));
    }
    for (column, (mean, scale)) in means.iter().zip(scales).enumerate() {
        if !mean.is_finite() || !scale.is_finite() || *scale == 0.0 {
            return fail(format!(
                "the normalization of column {column} has mean {mean} and scale {scale}, but both must be \
                 finite and the scale not zero"
            ));
        }
    }
    Ok(())
}

/// Makes sure that a value comes back from its JSON text: numbers that are not finite would not.
///
/// # Errors
/// It would not.
pub(crate) fn storable<T: Serialize + DeserializeOwned>(
    what: impl std::fmt::Display,
    value: &T,
) -> Result<serde_json::Value> {
    let text = serde_json::to_string(value);
    match text.and_then(|text| serde_json::from_str::<T>(&text)).and_then(|_| serde_json::to_value(value)) {
        Ok(value) => Ok(value),
        Err(error) => fail(format!("{what} cannot be stored, is a number in it not finite? {error}")),
    }
}
