//! A case asked through by another program: an object a line, each way (`querent ask --json`).

use super::fields::{belief, described, fields_of, known, odd, tell};
use super::why;
use crate::data::encoding::{Encoding, Field, Notice};
use crate::data::nearest::{but_for_case, did_you_mean};
use crate::policy::{Answer, Session};
use serde_json::{Map, Value, json};
use std::io::Write;

/// Where lines of input come from; `None` where they end.
pub type NextLine<'l> = &'l mut dyn FnMut() -> std::io::Result<Option<String>>;

/// Why a conversation could not be brought to its end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A line cannot be read or written.
    #[error(transparent)]
    Line(#[from] std::io::Error),
    /// The input ended while something was asked for.
    #[error("the input ended while `{0}` was asked for: this case has no answer")]
    Ended(String),
}

/// What a line of input says.
#[derive(Debug, PartialEq)]
enum Said {
    Answer(Value),
    Back,
    Why,
    Next,
}

/// Reads a line: an object of one entry.
fn said(line: &str) -> Result<Said, String> {
    let line: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| format!("this is not {{\"answer\": …}}: {error}"))?;
    let mut entries = line.into_iter();
    let (Some((key, value)), None) = (entries.next(), entries.next()) else {
        return Err("this is not {\"answer\": …}: there must be one entry".into());
    };
    match (key.as_str(), value) {
        ("answer", value) => Ok(Said::Answer(value)),
        ("back", Value::Bool(true)) => Ok(Said::Back),
        ("why", Value::Bool(true)) => Ok(Said::Why),
        ("next", Value::Bool(true)) => Ok(Said::Next),
        ("back" | "why" | "next", value) => Err(format!("`{key}` is {value}, but it can only be true")),
        (key, _) => {
            let meant = did_you_mean(key, ["answer", "back", "why", "next"]);
            Err(format!("this is not {{\"answer\": …}}: there is no entry `{key}`{meant}"))
        }
    }
}

/// An answer as cells: none if it cannot be had; empty for a missing one.
fn cells(
    answer: Value,
    fields: &[Field],
    encoding: Option<&Encoding>,
) -> Result<Option<Vec<String>>, String> {
    let cell = |(value, field): (Value, &Field)| match value {
        Value::Number(number) => Ok(field.spelled(&number.to_string())),
        Value::String(word) => Ok(word),
        Value::Bool(yes) => Ok(yes.to_string()),
        Value::Null => Ok(String::new()),
        other => Err(format!("`{other}` is neither a number nor a word")),
    };
    let values = match answer {
        Value::Null => return Ok(None),
        Value::Array(values) => values,
        one => vec![one],
    };
    if values.len() != fields.len() {
        return Err(format!("{} value(s) for {} field(s)", values.len(), fields.len()));
    }
    let mut cells = values.into_iter().zip(fields).map(cell).collect::<Result<Vec<String>, String>>()?;
    let is_missing = |cell: &String| cell.is_empty() || encoding.is_some_and(|e| e.is_missing(cell));
    for (field, cell) in fields.iter().zip(&mut cells).filter(|(_, cell)| !is_missing(cell)) {
        let words = || field.words().iter().map(String::as_str);
        if let (false, Some(word)) = (words().any(|word| word == cell), but_for_case(cell, words())) {
            *cell = word.to_string();
        }
        field
            .encode(cell, &mut Vec::new())
            .map_err(|error| format!("`{}`: {}", field.name, error.message()))?;
    }
    Ok(Some(cells))
}

/// Asks and answers until the end: of one case, or, if they are to be repeated, of the input.
///
/// # Errors
/// The input ended too early, or the output cannot be written.
pub fn talk(
    fresh: &Session<'_>,
    repeat: bool,
    next_line: NextLine<'_>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut line = Line { repeat, next_line, out };
    while line.case(fresh)? {}
    Ok(())
}

/// The line to the other program.
struct Line<'a, W: Write> {
    repeat: bool,
    next_line: NextLine<'a>,
    out: &'a mut W,
}

impl<W: Write> Line<'_, W> {
    fn send(&mut self, value: Value) -> Result<(), Failure> {
        writeln!(self.out, "{value}")?;
        self.out.flush()?;
        Ok(())
    }

    /// What is said to a question; what cannot be understood, and `why`, are dealt with here. `None`: ask again.
    fn receive(&mut self, session: &Session<'_>, what: &str) -> Result<Option<Said>, Failure> {
        let line = (self.next_line)()?.ok_or_else(|| Failure::Ended(what.into()))?;
        self.understand(session, &line)
    }

    fn understand(&mut self, session: &Session<'_>, line: &str) -> Result<Option<Said>, Failure> {
        match said(line) {
            Ok(Said::Why) => self.send(json!({ "why": why::value(session) }))?,
            Ok(Said::Next) if !self.repeat => {
                self.send(json!({ "error": "`next` needs --repeat: without it there is one case" }))?;
            }
            Ok(said) => return Ok(Some(said)),
            Err(what) => self.send(json!({ "error": what }))?,
        }
        Ok(None)
    }

    fn warn(&mut self, fields: &[Field], cells: &[&str], notices: &[Notice]) -> Result<(), Failure> {
        let odds = fields.iter().zip(cells).zip(notices);
        let odds: Vec<String> = odds.filter_map(|((field, cell), notice)| odd(field, cell, notice)).collect();
        odds.into_iter().try_for_each(|text| self.send(json!({ "warning": text })))
    }

    /// One case. Whether there is another one.
    fn case(&mut self, fresh: &Session<'_>) -> Result<bool, Failure> {
        let (mut session, mut before) = (fresh.clone(), Vec::new());
        if !self.given(&mut session)? {
            return Ok(true);
        }
        loop {
            let feature = session.question().map(|question| question.feature);
            let said = match feature {
                Some(feature) => self.ask(&session, feature)?,
                None => match self.end(&session)? {
                    Some(said) => Some(said),
                    None => return Ok(false),
                },
            };
            match (said, feature) {
                (Some(Said::Next), _) => return Ok(true),
                (Some(Said::Back), _) => match before.pop() {
                    Some(earlier) => session = earlier,
                    None => {
                        session = fresh.clone();
                        if known(fresh.model()).is_none() {
                            self.send(json!({ "error": "there is no answer to undo" }))?;
                        } else if !self.given(&mut session)? {
                            return Ok(true);
                        }
                    }
                },
                (Some(Said::Answer(answer)), Some(feature)) => {
                    let earlier = session.clone();
                    if self.take(&mut session, feature, answer)? {
                        before.push(earlier);
                    }
                }
                // Dealt with already: it is asked again.
                _ => {}
            }
        }
    }

    /// Asks for what is known from the start, if anything is. `false` if another case is wanted instead.
    fn given(&mut self, session: &mut Session<'_>) -> Result<bool, Failure> {
        let Some(encoding) = known(session.model()) else { return Ok(true) };
        let fields = &encoding.known;
        loop {
            self.send(json!({ "given": fields.iter().map(described).collect::<Vec<_>>() }))?;
            let answer = match self.receive(session, "given")? {
                Some(Said::Answer(answer)) => answer,
                Some(Said::Next) => return Ok(false),
                Some(Said::Back) => {
                    self.send(json!({ "error": "there is no answer to undo" }))?;
                    continue;
                }
                _ => continue,
            };
            let given = cells(answer, fields, session.model().encoding()).and_then(|cells| {
                let cells = cells.unwrap_or_else(|| vec![String::new(); fields.len()]);
                let told: Vec<&str> = cells.iter().map(String::as_str).collect();
                let notices = session.tell_given(&told).map_err(|error| error.to_string())?;
                Ok((cells, notices))
            });
            match given {
                Ok((cells, notices)) => {
                    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
                    self.warn(fields, &cells, &notices)?;
                    return Ok(true);
                }
                Err(what) => self.send(json!({ "error": what }))?,
            }
        }
    }

    fn ask(&mut self, session: &Session<'_>, feature: usize) -> Result<Option<Said>, Failure> {
        let asked = &session.model().problem().features()[feature];
        let fields = fields_of(session.model(), feature);
        self.send(json!({
            "ask": asked.name,
            "feature": feature,
            "cost": asked.cost,
            "fields": fields.iter().map(described).collect::<Vec<_>>(),
            "belief": belief(session),
            "spent": session.spent(),
        }))?;
        self.receive(session, &asked.name)
    }

    /// Gives an answer to the session. Whether it was taken.
    fn take(&mut self, session: &mut Session<'_>, feature: usize, answer: Value) -> Result<bool, Failure> {
        let fields = fields_of(session.model(), feature);
        let told = match cells(answer, &fields, session.model().encoding()) {
            Ok(None) => session.unavailable(feature).map_err(|error| error.to_string()),
            Ok(Some(cells)) => {
                let told: Vec<&str> = cells.iter().map(String::as_str).collect();
                match tell(session, feature, &fields, &told) {
                    Ok(notices) => return self.warn(&fields, &told, &notices).map(|()| true),
                    Err(error) => Err(error.to_string()),
                }
            }
            Err(what) => Err(what),
        };
        match told {
            Ok(()) => Ok(true),
            Err(what) => self.send(json!({ "error": what })).map(|()| false),
        }
    }

    /// Says the answer and, if there may be further cases, waits for what comes next; `None` if that is nothing.
    fn end(&mut self, session: &Session<'_>) -> Result<Option<Said>, Failure> {
        let names = session.model().problem().features();
        let asked: Vec<&str> = session
            .trace()
            .filter(|event| event.answer == Answer::Asked)
            .map(|event| names[event.feature].name.as_str())
            .collect();
        self.send(json!({
            "predict": session.label(),
            "belief": belief(session),
            "spent": session.spent(),
            "asked": asked,
            "why": why::value(session),
        }))?;
        while self.repeat {
            let Some(line) = (self.next_line)()? else { return Ok(None) };
            match self.understand(session, &line)? {
                Some(Said::Answer(_)) => {
                    self.send(json!({ "error": "nothing is asked for: the case has ended" }))?;
                }
                Some(said) => return Ok(Some(said)),
                None => {}
            }
        }
        Ok(None)
    }
}
