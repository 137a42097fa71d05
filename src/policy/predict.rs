//! A row that is there already, asked through: what would be asked of it, and the answer.

use super::model::Model;
use super::session::{Session, Step};
use crate::data::encoding::{Field, Notice};
use crate::error::Result;

/// What came of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The features that were asked for, in order.
    pub asked: Vec<usize>,
    /// The most probable class: its index.
    pub class: usize,
    /// The probability of each class at the end.
    pub belief: Vec<f32>,
    /// What was spent.
    pub spent: f64,
    /// Cells that were taken although something is odd about them. A missing one is not odd.
    pub odd: Vec<OddCell>,
}

/// A cell that was taken, but that its author may want to know about.
#[derive(Clone, Debug, PartialEq)]
pub struct OddCell {
    /// The column of the table.
    pub column: String,
    /// What stands there.
    pub cell: String,
    /// What is odd about it.
    pub notice: Notice,
}

impl Model {
    /// Asks a row of its table through, without a label: the closure gives the cell of a column, in the table's words
    /// and units; `None` where there is no such column. An empty cell, or one of the table's words for it, is a missing
    /// one, as in training: asking for it costs what it costs. A feature one of whose columns is not there cannot be had
    /// and is not asked for; what is known from the start and is not there counts as missing.
    ///
    /// Only cells that are asked for are looked at. [`Session::ask_row`] is the same for many rows, at another
    /// trade-off or within a budget.
    ///
    /// ```no_run
    /// use querent::Model;
    /// use std::collections::HashMap;
    ///
    /// # fn main() -> querent::Result<()> {
    /// let model = Model::load("runs/clinic/model.safetensors")?;
    /// let row = HashMap::from([("age", "31"), ("temperature_c", "38.9"), ("aches", "yes")]);
    /// let done = model.predict(|column| row.get(column).copied())?;
    /// let problem = model.problem();
    /// println!("{} {:?} for {}", problem.classes()[done.class], done.belief, done.spent);
    /// for feature in done.asked {
    ///     println!("asked for {}", problem.features()[feature].name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The model was not trained on a table of cells, or a cell that was asked for is not of its column's kind.
    pub fn predict<'r>(&self, cell: impl Fn(&str) -> Option<&'r str>) -> Result<Prediction> {
        self.session().ask_row(cell)
    }
}

impl Session<'_> {
    /// Starts over and asks a row through: see [`Model::predict`]. The session keeps its trade-off, its budget and its
    /// horizon, and serves the next row afterwards, also if this one was refused.
    ///
    /// ```no_run
    /// # fn rows() -> Vec<std::collections::HashMap<&'static str, &'static str>> { Vec::new() }
    /// # fn main() -> querent::Result<()> {
    /// let model = querent::Model::load("runs/clinic/model.safetensors")?;
    /// let mut session = model.session().with_alpha(model.alpha_for_spend(10.0)?)?.with_budget(20.0)?;
    /// for row in rows() {
    ///     let done = session.ask_row(|column| row.get(column).copied())?;
    ///     println!("{} for {}", model.problem().classes()[done.class], done.spent);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Model::predict`].
    pub fn ask_row<'r>(&mut self, cell: impl Fn(&str) -> Option<&'r str>) -> Result<Prediction> {
        let encoding = self.encoding()?;
        let mut odd = Vec::new();
        self.reset();
        if !encoding.known.is_empty() {
            let cells: Vec<&str> =
                encoding.known.iter().map(|field| cell(&field.name).unwrap_or_default()).collect();
            let notices = self.tell_given(&cells)?;
            note(&mut odd, &encoding.known, &cells, notices);
        }
        for (feature, fields) in encoding.features.iter().enumerate() {
            if fields.iter().any(|field| cell(&field.name).is_none()) {
                self.unavailable(feature)?;
            }
        }
        let mut asked = Vec::new();
        while let Step::Acquire(feature) = self.next() {
            let fields = &encoding.features[feature];
            let cells: Vec<&str> = fields.iter().map(|field| cell(&field.name).unwrap_or_default()).collect();
            let notices = self.tell(feature, &cells)?;
            note(&mut odd, fields, &cells, notices);
            asked.push(feature);
        }
        Ok(Prediction {
            asked,
            class: self.best(),
            belief: Session::predict(self).to_vec(),
            spent: self.spent(),
            odd,
        })
    }
}

fn note(odd: &mut Vec<OddCell>, fields: &[Field], cells: &[&str], notices: Vec<Notice>) {
    for ((field, cell), notice) in fields.iter().zip(cells).zip(notices) {
        if notice.is_new() {
            odd.push(OddCell { column: field.name.clone(), cell: cell.to_string(), notice });
        }
    }
}
