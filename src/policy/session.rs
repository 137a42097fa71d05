//! One instance, asked through: ask, observe, ask again, predict. On the CPU, without wgpu.
//!
//! A session keeps costs, the budget, records and the table's own words around a policy's [`Case`]. All buffers are
//! made with the session: observing, asking, predicting and starting over allocate nothing.

mod answers;
mod terms;

pub use terms::{Answer, Event, Question, Step, Values};

use super::belief;
use super::model::Model;
use super::policy::Case;
use crate::error::{Error, Result};
use crate::problem::Feature;

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

    /// The probability of each class, from what has been seen.
    pub fn predict(&self) -> &[f32] {
        &self.beliefs[self.beliefs.len() - self.classes()..]
    }

    /// The most probable class, the lowest index where there are several.
    pub fn best(&self) -> usize {
        belief::highest(self.predict(), &|_| true).unwrap_or(0)
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
