//! `querent ask --json`: the same conversation, an object a line.

use super::{Failure, fields_of, odd, tell};
use querent::data::encoding::{Code, Field};
use querent::{Model, Session};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::Write;

/// A line of input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    answer: Value,
}

fn described(field: &Field) -> Value {
    let mut value = json!({ "name": field.name, "unit": field.unit });
    match &field.code {
        Code::Number { seen, .. } => {
            value["kind"] = "number".into();
            value["seen"] = json!(seen);
        }
        Code::Levels { levels: words, .. } | Code::Categories { values: words } => {
            value["kind"] = "word".into();
            value["values"] = json!(words);
        }
    }
    value
}

fn belief(session: &Session<'_>) -> Value {
    let classes = session.model().problem().classes().iter();
    let pairs = classes.zip(session.predict()).map(|(class, &p)| (class.clone(), json!(p)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// An answer as cells: none if it cannot be had; empty for a missing one.
fn cells(line: &str, fields: &[Field]) -> Result<Option<Vec<String>>, String> {
    let line: Line =
        serde_json::from_str(line).map_err(|error| format!("this is not {{\"answer\": …}}: {error}"))?;
    let cell = |value: Value| match value {
        Value::Number(number) => Ok(number.to_string()),
        Value::String(word) => Ok(word),
        Value::Bool(yes) => Ok(yes.to_string()),
        Value::Null => Ok(String::new()),
        other => Err(format!("`{other}` is neither a number nor a word")),
    };
    let values = match line.answer {
        Value::Null => return Ok(None),
        Value::Array(values) => values,
        one => vec![one],
    };
    if values.len() != fields.len() {
        return Err(format!("{} value(s) for {} field(s)", values.len(), fields.len()));
    }
    let cells = values.into_iter().map(cell).collect::<Result<Vec<String>, String>>()?;
    for (field, cell) in fields.iter().zip(&cells).filter(|(_, cell)| !cell.is_empty()) {
        field
            .encode(cell, &mut Vec::new())
            .map_err(|error| format!("`{}`: {}", field.name, error.message()))?;
    }
    Ok(Some(cells))
}

/// Asks and answers until the end.
///
/// # Errors
/// The input ended too early, or the output cannot be written.
pub fn talk(
    model: &Model,
    session: &mut Session<'_>,
    next_line: &mut dyn FnMut() -> std::io::Result<Option<String>>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut send = |value: Value| -> Result<(), Failure> {
        writeln!(out, "{value}")?;
        out.flush()?;
        Ok(())
    };
    let mut receive = |what: &str| -> Result<String, Failure> {
        next_line()?.ok_or_else(|| {
            Failure::Refused(format!("the input ended while `{what}` was asked for: this case has no answer"))
        })
    };
    if let Some(encoding) = model.encoding().filter(|encoding| !encoding.known.is_empty()) {
        loop {
            send(json!({ "given": encoding.known.iter().map(described).collect::<Vec<_>>() }))?;
            let answer = cells(&receive("given")?, &encoding.known);
            let given = answer.and_then(|cells| {
                let cells = cells.unwrap_or_else(|| vec![String::new(); encoding.known.len()]);
                let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
                let notices = session.tell_given(&cells).map_err(|error| error.to_string())?;
                let odds = encoding.known.iter().zip(&cells).zip(&notices);
                Ok(odds.filter_map(|((field, cell), notice)| odd(field, cell, notice)).collect::<Vec<_>>())
            });
            match given {
                Ok(warnings) => {
                    warnings.into_iter().try_for_each(|text| send(json!({ "warning": text })))?;
                    break;
                }
                Err(what) => send(json!({ "error": what }))?,
            }
        }
    }
    while let Some(question) = session.question() {
        let (feature, name) = (question.feature, question.name.to_string());
        let fields = fields_of(model, feature);
        send(json!({
            "ask": name,
            "feature": feature,
            "cost": question.cost,
            "fields": fields.iter().map(described).collect::<Vec<_>>(),
            "belief": belief(session),
            "spent": session.spent(),
        }))?;
        match cells(&receive(&name)?, &fields) {
            Ok(None) => session.unavailable(feature)?,
            Ok(Some(answer)) => {
                let answer: Vec<&str> = answer.iter().map(String::as_str).collect();
                match tell(session, feature, &fields, &answer) {
                    Ok(notices) => {
                        let odds = fields.iter().zip(&answer).zip(&notices);
                        for text in odds.filter_map(|((field, cell), notice)| odd(field, cell, notice)) {
                            send(json!({ "warning": text }))?;
                        }
                    }
                    Err(error) => send(json!({ "error": error.to_string() }))?,
                }
            }
            Err(what) => send(json!({ "error": what }))?,
        }
    }
    let names = model.problem().features();
    let asked: Vec<&str> = session
        .trace()
        .filter(|event| event.answer == querent::Answer::Asked)
        .map(|event| names[event.feature].name.as_str())
        .collect();
    send(json!({
        "predict": session.label(),
        "belief": belief(session),
        "spent": session.spent(),
        "asked": asked,
    }))
}
