//! A case as a page leads it: answers in the table's words, some put off or not to be had, any of them undone, and the
//! trade-off moved on the way. What was said is kept, so that another trade-off begins anew with the same answers.

use super::fields::{fields_of, known, odd, tell};
use super::understand::{Meant, Wish, understand};
use crate::data::encoding::Field;
use crate::error::Result;
use crate::policy::{Model, Session, Step};

/// Something that was said.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// The cells of what is known from the start.
    Given(Vec<String>),
    /// The cells of a feature; an empty one is missing.
    Cells(usize, Vec<String>),
    /// A feature cannot be had.
    Unavailable(usize),
    /// A feature is not known yet: it is asked for again when there is nothing else to ask.
    Later(usize),
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// What is known from the start.
    Given,
    /// A feature, and whether it was put off before.
    Feature {
        /// Its index.
        feature: usize,
        /// Whether it was put off, and nothing else is left to ask.
        again: bool,
    },
    /// Nothing: the case has its answer.
    Nothing,
}

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The field it is about, if it is one.
    pub field: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// Whether the same answer is taken if it is said again.
    pub doubtful: bool,
}

/// A case between two answers.
#[derive(Clone, Debug)]
pub struct Moment<'m> {
    /// What is known, without regard to what was put off.
    base: Session<'m>,
    /// The same, with what was put off out of reach for now.
    session: Session<'m>,
    later: Vec<usize>,
    asks: Asks,
    /// What was odd about the answer that led here.
    warnings: Vec<String>,
}

impl<'m> Moment<'m> {
    fn new(base: Session<'m>, later: Vec<usize>, waits: bool, warnings: Vec<String>) -> Result<Self> {
        let mut session = base.clone();
        later.iter().try_for_each(|&feature| session.unavailable(feature))?;
        let again = !later.is_empty() && session.next() == Step::Stop;
        if again {
            session = base.clone();
        }
        let asks = match session.next() {
            _ if waits => Asks::Given,
            Step::Acquire(feature) => Asks::Feature { feature, again },
            Step::Stop => Asks::Nothing,
        };
        Ok(Self { base, session, later, asks, warnings })
    }

    /// The session that asks.
    pub fn session(&self) -> &Session<'m> {
        &self.session
    }

    /// What is asked for.
    pub fn asks(&self) -> Asks {
        self.asks
    }

    /// What was put off, in that order.
    pub fn later(&self) -> &[usize] {
        &self.later
    }

    /// What was odd about the answer that led here.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether something else could be asked for instead.
    pub fn has_other(&self) -> bool {
        match self.asks {
            Asks::Feature { again: true, .. } => self.later.len() > 1,
            Asks::Feature { .. } => self.session.why().wanted.len() > 1,
            _ => false,
        }
    }
}

/// A case on its way.
#[derive(Clone, Debug)]
pub struct Conversation<'m> {
    model: &'m Model,
    alpha: Option<f64>,
    budget: f64,
    said: Vec<Said>,
    /// Before anything was said, then after each.
    moments: Vec<Moment<'m>>,
    /// An answer that looked mistyped: said again, it is meant.
    doubted: Option<Vec<String>>,
    /// What was undone last: an answer to correct.
    undone: Option<Said>,
    /// What was said in the case before, as long as nothing is said in this one: beginning anew can be undone too.
    dropped: Vec<Said>,
}

impl<'m> Conversation<'m> {
    /// A new case.
    ///
    /// # Errors
    /// The budget is negative or not a number.
    pub fn new(model: &'m Model, budget: f64) -> Result<Self> {
        let mut new = Self {
            model,
            alpha: None,
            budget,
            said: Vec::new(),
            moments: Vec::new(),
            doubted: None,
            undone: None,
            dropped: Vec::new(),
        };
        new.begin()?;
        Ok(new)
    }

    fn begin(&mut self) -> Result<()> {
        let mut session = self.model.session().with_budget(self.budget)?;
        if let Some(alpha) = self.alpha {
            session = session.with_alpha(alpha)?;
        }
        let first = Moment::new(session, Vec::new(), known(self.model).is_some(), Vec::new())?;
        (self.moments, self.said) = (vec![first], Vec::new());
        Ok(())
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// What a unit of cost is worth to it now.
    pub fn alpha(&self) -> f64 {
        self.alpha.unwrap_or_else(|| self.model.alpha())
    }

    /// What may be spent.
    pub fn budget(&self) -> f64 {
        self.budget
    }

    /// What was said, each with the moment after it.
    pub fn said(&self) -> impl Iterator<Item = (&Said, &Moment<'m>)> {
        self.said.iter().zip(&self.moments[1..])
    }

    /// Where it is now.
    pub fn now(&self) -> &Moment<'m> {
        // There is always the first one.
        &self.moments[self.moments.len() - 1]
    }

    /// What was undone last, if it answers what is asked for now.
    pub fn draft(&self) -> Option<&[String]> {
        match (self.undone.as_ref()?, self.now().asks) {
            (Said::Given(cells), Asks::Given) => Some(cells),
            (Said::Cells(of, cells), Asks::Feature { feature, .. }) if *of == feature => Some(cells),
            _ => None,
        }
    }

    /// The fields that are asked for.
    pub fn fields(&self) -> Vec<Field> {
        match self.now().asks {
            Asks::Given => known(self.model).map_or(Vec::new(), |encoding| encoding.known.clone()),
            Asks::Feature { feature, .. } => fields_of(self.model, feature),
            Asks::Nothing => Vec::new(),
        }
    }

    /// Takes what was typed into each field, as `querent ask` does.
    ///
    /// # Errors
    /// It is not an answer. Nothing has changed then, but that the same doubtful answer is taken the next time.
    pub fn answer(&mut self, typed: &[String]) -> std::result::Result<(), Refusal> {
        let fields = self.fields();
        let refuse = |what: &str| Refusal { field: None, what: what.into(), doubtful: false };
        if fields.is_empty() {
            return Err(refuse("nothing is asked for: the case has ended"));
        }
        if fields.len() != typed.len() {
            return Err(refuse(&format!("{} value(s) for {} field(s)", typed.len(), fields.len())));
        }
        let is_sure = self.doubted.take().is_some_and(|before| before == typed);
        let mut cells = Vec::new();
        for (index, (field, line)) in fields.iter().zip(typed).enumerate() {
            match self.cell(field, line, is_sure) {
                Ok(Some(cell)) => cells.push(cell),
                // What is not known from the start after all is a missing cell.
                Ok(None) if self.now().asks == Asks::Given => cells.push(String::new()),
                Ok(None) => return self.unavailable(),
                Err((what, doubtful)) => {
                    self.doubted = doubtful.then(|| typed.to_vec());
                    return Err(Refusal { field: Some(index), what, doubtful });
                }
            }
        }
        self.take(match self.now().asks {
            Asks::Feature { feature, .. } => Said::Cells(feature, cells),
            _ => Said::Given(cells),
        })
    }

    /// A cell as it was typed; `None` if it cannot be had. Else what is wrong, and whether that is only a doubt.
    fn cell(
        &self,
        field: &Field,
        line: &str,
        is_sure: bool,
    ) -> std::result::Result<Option<String>, (String, bool)> {
        let encoding = self.model.encoding();
        match understand(field, line) {
            Meant::Cell(cell) => Ok(Some(cell)),
            Meant::Wish(Wish::Unavailable) => Ok(None),
            Meant::Wish(Wish::Missing) if encoding.is_some() => Ok(Some(String::new())),
            Meant::Wish(Wish::Missing) => Err(("the model knows of no missing values".into(), false)),
            Meant::Doubtful(_) if is_sure => Ok(Some(line.trim().to_string())),
            Meant::Doubtful(what) => Err((what, true)),
            // A word that the table has for a missing cell.
            Meant::Nothing(_)
                if !line.trim().is_empty() && encoding.is_some_and(|encoding| encoding.is_missing(line)) =>
            {
                Ok(Some(String::new()))
            }
            Meant::Nothing(what) => Err((what, false)),
            Meant::Wish(_) => Err((format!("answer with {}", field.expected()), false)),
        }
    }

    /// Says that what is asked for cannot be had.
    ///
    /// # Errors
    /// Nothing is asked for that could be refused.
    pub fn unavailable(&mut self) -> std::result::Result<(), Refusal> {
        let feature = self.asked()?;
        self.take(Said::Unavailable(feature))
    }

    /// Puts off what is asked for.
    ///
    /// # Errors
    /// As there.
    pub fn later(&mut self) -> std::result::Result<(), Refusal> {
        let feature = self.asked()?;
        self.take(Said::Later(feature))
    }

    fn asked(&self) -> std::result::Result<usize, Refusal> {
        match self.now().asks {
            Asks::Feature { feature, .. } => Ok(feature),
            _ => Err(Refusal { field: None, what: "no question is open".into(), doubtful: false }),
        }
    }

    fn take(&mut self, said: Said) -> std::result::Result<(), Refusal> {
        self.doubted = None;
        let refuse = |error: crate::Error| Refusal { field: None, what: error.message(), doubtful: false };
        self.apply(said).map_err(refuse)?;
        self.undone = None;
        self.dropped.clear();
        Ok(())
    }

    fn apply(&mut self, said: Said) -> Result<()> {
        let Moment { mut base, mut later, asks, .. } = self.now().clone();
        let mut warnings = Vec::new();
        let told = match &said {
            Said::Given(cells) => {
                let fields = known(self.model).map_or(&[][..], |encoding| &encoding.known);
                Some((fields.to_vec(), cells, None))
            }
            Said::Cells(feature, cells) => Some((fields_of(self.model, *feature), cells, Some(*feature))),
            Said::Unavailable(feature) => {
                base.unavailable(*feature)?;
                later.retain(|other| other != feature);
                None
            }
            Said::Later(feature) => {
                // Asked for again and put off again: a new round begins.
                if matches!(asks, Asks::Feature { again: true, .. }) {
                    later.clear();
                }
                later.push(*feature);
                None
            }
        };
        if let Some((fields, cells, feature)) = told {
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            let notices = match feature {
                Some(feature) => {
                    later.retain(|&other| other != feature);
                    tell(&mut base, feature, &fields, &cells)?
                }
                None => base.tell_given(&cells)?,
            };
            let odds = fields.iter().zip(&cells).zip(&notices);
            warnings.extend(odds.filter_map(|((field, cell), notice)| odd(field, cell, notice)));
        }
        self.moments.push(Moment::new(base, later, false, warnings)?);
        self.said.push(said);
        Ok(())
    }

    /// Whether there is anything to undo.
    pub fn can_go_back(&self) -> bool {
        !self.said.is_empty() || !self.dropped.is_empty()
    }

    /// Undoes what was said last, or the beginning of a new case.
    pub fn back(&mut self) {
        self.doubted = None;
        self.undone = self.said.pop();
        if self.undone.is_some() {
            self.moments.pop();
            return;
        }
        for said in std::mem::take(&mut self.dropped) {
            // It was taken before.
            let _ = self.apply(said);
        }
    }

    /// Begins the next case, at the same trade-off.
    pub fn restart(&mut self) {
        if !self.said.is_empty() {
            self.dropped = std::mem::take(&mut self.said);
        }
        self.moments.truncate(1);
        (self.doubted, self.undone) = (None, None);
    }

    /// Goes on at another α, of a model that was trained for several, with the same answers.
    ///
    /// # Errors
    /// The model was not trained for it. Nothing has changed then.
    pub fn set_alpha(&mut self, alpha: f64) -> Result<()> {
        self.again(Some(alpha), self.budget)
    }

    /// Goes on with another budget, infinite for none, and the same answers.
    ///
    /// # Errors
    /// It is negative or not a number. Nothing has changed then.
    pub fn set_budget(&mut self, budget: f64) -> Result<()> {
        self.again(self.alpha, budget)
    }

    fn again(&mut self, alpha: Option<f64>, budget: f64) -> Result<()> {
        let mut new = Self { alpha, budget, ..self.clone() };
        new.begin()?;
        self.said.iter().cloned().try_for_each(|said| new.apply(said))?;
        *self = new;
        Ok(())
    }
}
