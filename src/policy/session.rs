//! One instance, asked through: ask, observe, ask again, predict. On the CPU, without wgpu.
//!
//! A session keeps costs, the budget, records and the table's own words around a policy's [`Case`]. All buffers are
//! made with the session: observing, asking, predicting and starting over allocate nothing.

use super::model::Model;
use super::policy::Case;
use crate::data::encoding::{Encoding, Notice};
use crate::error::{Error, Result};
use crate::problem::Feature;

/// What a session wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The value of this feature.
    Acquire(usize),
    /// Nothing: no further feature is worth its cost, or none can be had.
    Stop,
}

/// A feature that a session asks for, with what a person needs to answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question<'a> {
    /// Its index.
    pub feature: usize,
    /// Its name.
    pub name: &'a str,
    /// What it costs.
    pub cost: f64,
    /// How many values it has.
    pub values: usize,
    /// What is believed before the answer: the probability of each class.
    pub probabilities: &'a [f32],
}

/// How a session came to know about a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was known at no cost.
    Known,
    /// It was observed, as the session had asked.
    Asked,
    /// It was observed although the session had not asked for it.
    Offered,
    /// It cannot be had.
    Unavailable,
}

/// Something that happened in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// The feature it is about.
    pub feature: usize,
    /// How the session came to know.
    pub answer: Answer,
    /// What it cost.
    pub cost: f64,
    /// The feature's values in the user's units; none if it is unavailable.
    pub values: &'a [f32],
    /// What was believed after it: the probability of each class.
    pub probabilities: &'a [f32],
}

/// The values of a feature's columns: an `f32` where there is one column, a slice, an array or a vector
/// of as many values as columns elsewhere.
pub trait Values {
    /// The values, in the order of the columns.
    fn values(&self) -> &[f32];
}

impl Values for f32 {
    fn values(&self) -> &[f32] {
        std::slice::from_ref(self)
    }
}

impl Values for [f32] {
    fn values(&self) -> &[f32] {
        self
    }
}

impl<const N: usize> Values for [f32; N] {
    fn values(&self) -> &[f32] {
        self
    }
}

impl Values for Vec<f32> {
    fn values(&self) -> &[f32] {
        self
    }
}

impl<V: Values + ?Sized> Values for &V {
    fn values(&self) -> &[f32] {
        (**self).values()
    }
}

/// A feature's name in a complaint, put into words only if there is one.
#[derive(Clone, Copy)]
struct Whose<'m>(&'m Model, usize);

impl std::fmt::Display for Whose<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "feature {} (`{}`)", self.1, self.0.problem().features()[self.1].name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Open,
    Seen,
    Unavailable,
}

/// An event as it is kept: its values and probabilities lie in the session's flat buffers.
#[derive(Clone, Copy, Debug)]
struct Record {
    feature: usize,
    answer: Answer,
    cost: f64,
    /// Where its values end; they begin where those of the event before end.
    values: usize,
    /// The index of what was believed after it.
    belief: usize,
}

/// One instance on its way through a model.
///
/// ```no_run
/// # fn measure(_: usize) -> f32 { 0.0 }
/// use querent::{Model, Step};
///
/// # fn main() -> querent::Result<()> {
/// let model = Model::load("syn1.safetensors")?;
/// let mut session = model.session();
/// while let Step::Acquire(feature) = session.next() {
///     session.observe(feature, measure(feature))?;
/// }
/// println!("{} {:?} for {}", session.label(), session.predict(), session.spent());
/// # Ok(())
/// # }
/// ```
///
/// [`Session::question`] is the same as [`Session::next`] with name, cost and current belief.
#[derive(Debug)]
pub struct Session<'m> {
    model: &'m Model,
    pub(super) case: Box<dyn Case + 'm>,
    /// Acquisitions at most.
    horizon: usize,
    /// Whether the policy may stop by itself.
    may_stop: bool,
    budget: f64,
    spent: f64,
    acquired: usize,
    status: Vec<Status>,
    /// The values just being observed, normalized.
    inputs: Vec<f32>,
    /// Values in the user's units, event after event.
    values: Vec<f32>,
    /// Probabilities of the classes: with nothing seen, then after each answer.
    beliefs: Vec<f32>,
    records: Vec<Record>,
    /// Whether what is known from the start has been given.
    given: bool,
}

impl<'m> Session<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        let problem = model.problem();
        let (features, columns) = (problem.features().len(), problem.columns());
        let mut session = Self {
            model,
            case: model.policy().case(),
            horizon: model.steps(),
            may_stop: true,
            budget: f64::INFINITY,
            spent: 0.0,
            acquired: 0,
            status: vec![Status::Open; features],
            inputs: Vec::with_capacity(columns),
            values: Vec::with_capacity(columns),
            beliefs: Vec::with_capacity((features + 1) * problem.classes().len()),
            // Each feature is seen at most once, and may have been unavailable before.
            records: Vec::with_capacity(2 * features),
            given: false,
        };
        // A model of many trade-offs asks at its own until a session says otherwise.
        if model.alphas().is_some() {
            // It is one of the model's: refusing it would be a mistake of ours, and changes nothing.
            let _ = session.case.set_tradeoff(model.alpha());
        }
        session.believe();
        session
    }

    /// The same session at another trade-off, before anything is known: an α that the model was trained for, or a
    /// threshold of its stop rule.
    ///
    /// # Errors
    /// The model was trained for one trade-off or not for this one, or something is known already.
    pub fn with_alpha(mut self, alpha: f64) -> Result<Self> {
        if self.given || !self.records.is_empty() {
            return Err(Error::Config(
                "the trade-off is chosen before the first answer: start over to ask with another one".into(),
            ));
        }
        self.case.set_tradeoff(alpha)?;
        self.tell_budget();
        self.beliefs.clear();
        self.believe();
        Ok(self)
    }

    /// The same session with another horizon: at most so many acquisitions.
    ///
    /// # Errors
    /// None, or more than there are features.
    pub fn with_horizon(mut self, horizon: usize) -> Result<Self> {
        let features = self.status.len();
        if horizon == 0 || horizon > features {
            return Err(Error::Config(format!(
                "the horizon is {horizon}, but it must be 1 to {features}, the number of features"
            )));
        }
        self.horizon = horizon;
        Ok(self)
    }

    /// The same session with a policy that goes on to the horizon or the budget, whatever its stop rule says.
    pub fn without_stop(mut self) -> Self {
        self.may_stop = false;
        self
    }

    /// The same session with a budget: what no longer fits into what is left of it is not asked for.
    /// (Costs that add up to the budget fit, whatever the rounding of their sum.)
    ///
    /// # Errors
    /// The budget is negative or not a number.
    pub fn with_budget(mut self, budget: f64) -> Result<Self> {
        if budget.is_nan() || budget < 0.0 {
            return Err(Error::Config(format!("the budget is {budget}, but it must be zero or more")));
        }
        self.budget = budget;
        self.tell_budget();
        Ok(self)
    }

    /// Starts over with the next instance: everything is forgotten but the budget.
    pub fn reset(&mut self) {
        self.spent = 0.0;
        self.acquired = 0;
        self.given = false;
        self.status.fill(Status::Open);
        self.values.clear();
        self.beliefs.clear();
        self.records.clear();
        self.case.reset();
        self.tell_budget();
        self.believe();
    }

    /// What to do next under the greedy policy: of the features that are not yet known, not unavailable and within the
    /// budget, the one it would acquire, unless it rather stops. Always to stop once the horizon of acquisitions is
    /// reached.
    ///
    /// Asking changes nothing: the answer stays the same until something is observed, known or
    /// unavailable.
    pub fn next(&self) -> Step {
        match self.candidate() {
            Some(feature) if !self.may_stop || !self.case.stops(feature) => Step::Acquire(feature),
            _ => Step::Stop,
        }
    }

    /// The feature that could be acquired next, whatever the stop rule says; `None` at the horizon, or where nothing can
    /// be had any more.
    fn candidate(&self) -> Option<usize> {
        self.case.best(&|index| self.is_open(index))
    }

    /// Whether a feature could be acquired next.
    pub(super) fn is_open(&self, feature: usize) -> bool {
        self.acquired < self.horizon
            && self.status[feature] == Status::Open
            && self.fits(&self.model.problem().features()[feature])
    }

    /// What the stop rule looks at before the next acquisition; `None` where there is none.
    pub(crate) fn stop_score(&self) -> Option<f32> {
        self.candidate().map(|feature| self.case.stop_score(feature))
    }

    /// What no longer fits into the budget cannot be had: the policy is told, as long as there is something left to choose.
    fn tell_budget(&mut self) {
        let features = self.model.problem().features();
        if !(0..features.len()).any(|feature| self.is_open(feature)) {
            return;
        }
        for (index, feature) in features.iter().enumerate() {
            if self.status[index] == Status::Open {
                self.case.available(index, self.fits(feature));
            }
        }
    }

    /// Whether a feature's cost fits into what is left of the budget.
    fn fits(&self, feature: &Feature) -> bool {
        self.spent + feature.cost <= self.budget * (1.0 + 1e-12)
    }

    /// What [`Session::next`] asks for, with what a person needs to answer; `None` to stop.
    pub fn question(&self) -> Option<Question<'_>> {
        let Step::Acquire(feature) = self.next() else {
            return None;
        };
        let Feature { name, cost } = &self.model.problem().features()[feature];
        let values = self.model.columns_of(feature).len();
        Some(Question { feature, name, cost: *cost, values, probabilities: self.predict() })
    }

    /// Takes a feature's value in the user's units: an `f32`, or several for a feature of several
    /// columns, in the order of the columns. Its cost is paid and it counts as an acquisition, whether it
    /// was asked for or not, and even if it is beyond the budget or the horizon.
    ///
    /// # Errors
    /// There is no such feature, it is known already, there are too many or too few values, or one is not
    /// finite, or so large that the networks' outputs overflow. Nothing has changed then.
    pub fn observe(&mut self, feature: usize, value: impl Values) -> Result<()> {
        let asked = self.next() == Step::Acquire(feature);
        self.take(feature, value.values(), if asked { Answer::Asked } else { Answer::Offered })
    }

    /// Takes a value that costs nothing, because it was known from the start. It does not count as an
    /// acquisition.
    ///
    /// # Errors
    /// As [`Session::observe`].
    pub fn known(&mut self, feature: usize, value: impl Values) -> Result<()> {
        self.take(feature, value.values(), Answer::Known)
    }

    /// Takes a feature's cells as its table has them: words, or numbers in the table's units, one for each of
    /// the feature's fields ([`Model::encoding`]). What is odd about each is told.
    ///
    /// # Errors
    /// The model has no encoding, a cell is not of its field's kind, or as [`Session::observe`]. Nothing
    /// has changed then.
    pub fn tell(&mut self, feature: usize, cells: &[&str]) -> Result<Vec<Notice>> {
        self.check(feature)?;
        let encoding = self.encoding()?;
        let (values, notices) = encoding.encode(&encoding.features[feature], cells)?;
        self.observe(feature, values)?;
        Ok(notices)
    }

    /// Takes the cells of what is known from the start, as the table has them.
    ///
    /// # Errors
    /// As [`Session::tell`] and [`Session::given`].
    pub fn tell_given(&mut self, cells: &[&str]) -> Result<Vec<Notice>> {
        let encoding = self.encoding()?;
        let (values, notices) = encoding.encode(&encoding.known, cells)?;
        self.given(values)?;
        Ok(notices)
    }

    pub(super) fn encoding(&self) -> Result<&'m Encoding> {
        self.model.encoding().ok_or_else(|| {
            Error::Data("the model was not trained on a table of cells: it takes numbers only".into())
        })
    }

    /// Takes what is known from the start: the values of all the columns that are
    /// ([`Problem::known_columns`](crate::Problem::known_columns)), in the user's units. Until then the
    /// networks read them as zero, after normalization.
    ///
    /// # Errors
    /// It was given before, something was asked already, there are too many or too few values, or one is
    /// not finite or so large that the networks' outputs overflow. Nothing has changed then.
    pub fn given(&mut self, values: impl Values) -> Result<()> {
        let (model, values) = (self.model, values.values());
        let columns = model.known_columns();
        if self.given || !self.records.is_empty() {
            return Err(Error::Data("what is known from the start is to be given once, at the start".into()));
        }
        self.normalize("what is known from the start", columns, values)?;
        self.apply("what is known from the start", None, columns, values)?;
        self.given = true;
        self.beliefs.clear();
        self.believe();
        Ok(())
    }

    /// Says that a feature cannot be had: it is not asked for any more. Should it turn up after all, it
    /// may still be observed.
    ///
    /// # Errors
    /// There is no such feature, or its value is known already.
    pub fn unavailable(&mut self, feature: usize) -> Result<()> {
        if self.check(feature)? == Status::Open {
            self.status[feature] = Status::Unavailable;
            self.case.available(feature, false);
            self.record(feature, Answer::Unavailable, 0.0);
        }
        Ok(())
    }

    /// The probability of each class, from what has been seen.
    pub fn predict(&self) -> &[f32] {
        &self.beliefs[self.beliefs.len() - self.classes()..]
    }

    /// The most probable class, the lowest index where there are several.
    pub fn best(&self) -> usize {
        let mut best = 0;
        let probabilities = self.predict();
        for (class, &probability) in probabilities.iter().enumerate() {
            if probability > probabilities[best] {
                best = class;
            }
        }
        best
    }

    /// The name of the most probable class.
    pub fn label(&self) -> &'m str {
        &self.model.problem().classes()[self.best()]
    }

    /// What the observations cost so far.
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// How many features were observed so far; those known at no cost do not count.
    pub fn acquisitions(&self) -> usize {
        self.acquired
    }

    /// The budget; infinite if there is none.
    pub fn budget(&self) -> f64 {
        self.budget
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// What was believed before anything was seen: the probability of each class.
    pub fn prior(&self) -> &[f32] {
        &self.beliefs[..self.classes()]
    }

    /// All that happened, in order: what was answered and what was believed then.
    pub fn trace(&self) -> impl DoubleEndedIterator<Item = Event<'_>> + ExactSizeIterator + Clone {
        let classes = self.classes();
        self.records.iter().enumerate().map(move |(index, record)| {
            let from = if index == 0 { 0 } else { self.records[index - 1].values };
            Event {
                feature: record.feature,
                answer: record.answer,
                cost: record.cost,
                values: &self.values[from..record.values],
                probabilities: &self.beliefs[record.belief * classes..][..classes],
            }
        })
    }

    /// Whether the policy's outputs are finite.
    pub(crate) fn is_finite(&self) -> bool {
        self.case.is_finite()
    }

    fn classes(&self) -> usize {
        self.model.problem().classes().len()
    }

    /// The status of a feature that exists and is not known yet.
    fn check(&self, feature: usize) -> Result<Status> {
        match self.status.get(feature) {
            None => Err(Error::Data(format!(
                "there is no feature {feature}: the model has {}, numbered from 0",
                self.status.len()
            ))),
            Some(Status::Seen) => Err(Error::Data(format!("{} is known already", self.describe(feature)))),
            Some(&status) => Ok(status),
        }
    }

    fn describe(&self, feature: usize) -> String {
        Whose(self.model, feature).to_string()
    }

    fn take(&mut self, feature: usize, values: &[f32], answer: Answer) -> Result<()> {
        self.check(feature)?;
        let model = self.model;
        let columns = model.columns_of(feature);
        let whose = Whose(model, feature);
        self.normalize(whose, columns, values)?;
        self.apply(whose, Some(feature), columns, values)?;
        self.accept(feature, answer, values);
        Ok(())
    }

    /// Observes a feature whose values are normalized already: `row` has all columns of an instance.
    pub(crate) fn observe_input(&mut self, feature: usize, row: &[f32]) -> Result<()> {
        self.check(feature)?;
        let columns = self.model.columns_of(feature);
        self.inputs.clear();
        self.inputs.extend(columns.iter().map(|&column| row[column as usize]));
        self.apply(Whose(self.model, feature), Some(feature), columns, &[])?;
        self.accept(feature, Answer::Asked, &[]);
        Ok(())
    }

    /// As [`Session::given`], with values that are normalized already.
    pub(crate) fn give_input(&mut self, row: &[f32]) -> Result<()> {
        let columns = self.model.known_columns();
        self.inputs.clear();
        self.inputs.extend(columns.iter().map(|&column| row[column as usize]));
        self.apply("what is known from the start", None, columns, &[])?;
        self.given = true;
        self.beliefs.clear();
        self.believe();
        Ok(())
    }

    /// A feature's values are with the networks: notes what it cost and what is believed now.
    fn accept(&mut self, feature: usize, answer: Answer, values: &[f32]) {
        self.status[feature] = Status::Seen;
        let mut cost = 0.0;
        if answer != Answer::Known {
            cost = self.model.problem().features()[feature].cost;
            self.spent += cost;
            self.acquired += 1;
            self.tell_budget();
        }
        self.values.extend_from_slice(values);
        self.believe();
        self.record(feature, answer, cost);
    }

    /// Puts the normalized values of columns into `inputs`.
    fn normalize(&mut self, whose: impl std::fmt::Display, columns: &[u32], values: &[f32]) -> Result<()> {
        if values.len() != columns.len() {
            return Err(Error::Data(format!(
                "{whose} has {} value(s), but {} were given",
                columns.len(),
                values.len()
            )));
        }
        let normalization = self.model.normalization();
        self.inputs.clear();
        for (&value, &column) in values.iter().zip(columns) {
            let input = (value - normalization.mean[column as usize]) / normalization.scale[column as usize];
            if !input.is_finite() {
                return Err(Error::Data(format!(
                    "{whose}: the value of column {column} is {value}, {}",
                    if value.is_finite() { "too large to be normalized" } else { "not a finite number" }
                )));
            }
            self.inputs.push(input);
        }
        Ok(())
    }

    /// Gives the normalized values to the policy, unless its outputs would overflow.
    fn apply(
        &mut self,
        whose: impl std::fmt::Display,
        feature: Option<usize>,
        columns: &[u32],
        values: &[f32],
    ) -> Result<()> {
        if self.case.observe(feature, columns, &self.inputs) {
            return Ok(());
        }
        Err(Error::Data(format!("{whose}: with the value {values:?} the networks' outputs overflow")))
    }

    fn record(&mut self, feature: usize, answer: Answer, cost: f64) {
        let belief = self.beliefs.len() / self.classes() - 1;
        self.records.push(Record { feature, answer, cost, values: self.values.len(), belief });
    }

    /// Keeps what is believed now.
    fn believe(&mut self) {
        self.beliefs.extend_from_slice(self.case.belief());
    }
}

impl Clone for Session<'_> {
    fn clone(&self) -> Self {
        Self {
            case: self.case.boxed(),
            status: self.status.clone(),
            inputs: self.inputs.clone(),
            values: self.values.clone(),
            beliefs: self.beliefs.clone(),
            records: self.records.clone(),
            ..*self
        }
    }
}
