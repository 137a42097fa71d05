//! How a session takes what it is told: values, cells of the table, or that something cannot be had.

use super::{Answer, Record, Session, Status, Step, Values};
use crate::data::encoding::{Encoding, Notice};
use crate::error::{Error, Result};
use crate::policy::Model;

/// A feature's name in a complaint, put into words only if there is one.
#[derive(Clone, Copy)]
struct Whose<'m>(&'m Model, usize);

impl std::fmt::Display for Whose<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "feature {} (`{}`)", self.1, self.0.problem().features()[self.1].name)
    }
}

impl<'m> Session<'m> {
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

    pub(in crate::policy) fn encoding(&self) -> Result<&'m Encoding> {
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
}
