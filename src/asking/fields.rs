//! What is asked for, cell by cell, also of a model that was not trained on a table.

use crate::data::encoding::{Code, Encoding, Field, Notice, short};
use crate::data::nearest::did_you_mean;
use crate::error::Result;
use crate::policy::{Model, Session};
use serde_json::{Map, Value, json};

/// The fields of a feature; of a model that was not trained on a table, the columns as they are.
pub fn fields_of(model: &Model, feature: usize) -> Vec<Field> {
    match model.encoding() {
        Some(encoding) => encoding.features[feature].clone(),
        None => {
            let groups = model.problem().group_of_column();
            let columns = groups.iter().filter(|&&group| group as usize == feature).count();
            let name = &model.problem().features()[feature].name;
            (0..columns).map(|column| plain_field(name, column, columns)).collect()
        }
    }
}

fn plain_field(name: &str, column: usize, columns: usize) -> Field {
    let name = if columns > 1 { format!("{name}[{column}]") } else { name.to_string() };
    let code = Code::Number {
        low: f64::from(f32::MIN),
        high: f64::from(f32::MAX),
        fill: 0.0,
        seen: [f64::from(f32::MIN), f64::from(f32::MAX)],
        missing_above: None,
        decimal: None,
        knots: Vec::new(),
    };
    Field { name, unit: String::new(), code, flag: false }
}

/// What is known from the start, if anything is.
pub fn known(model: &Model) -> Option<&Encoding> {
    model.encoding().filter(|encoding| !encoding.known.is_empty())
}

/// What is odd about a cell, in words.
pub fn odd(field: &Field, cell: &str, notice: &Notice) -> Option<String> {
    let name = &field.name;
    match notice {
        Notice::Fine => None,
        Notice::Missing => Some(format!("{name} counts as missing")),
        Notice::OutOfRange([low, high]) => Some(format!(
            "{name} = {cell} is outside of the training rows' range, {} to {}: the answer may be off",
            short(*low),
            short(*high)
        )),
        Notice::OutOfDates([first, last]) => Some(format!(
            "{name} = {cell} is outside of the training rows' dates, {first} to {last}: the answer may be off"
        )),
        Notice::Unseen => Some(format!(
            "no training row has {name} = `{cell}` (they have {}): it is taken as something else{}",
            field.expected(),
            did_you_mean(cell, field.words().iter().map(String::as_str))
        )),
    }
}

/// Gives a session the cells of a feature.
///
/// # Errors
/// What the session has against them; nothing has changed then.
pub fn tell(
    session: &mut Session<'_>,
    feature: usize,
    fields: &[Field],
    cells: &[&str],
) -> Result<Vec<Notice>> {
    if session.model().encoding().is_some() {
        return session.tell(feature, cells);
    }
    let mut values = Vec::new();
    for (field, cell) in fields.iter().zip(cells) {
        field.encode(cell, &mut values)?;
    }
    session.observe(feature, values)?;
    Ok(vec![Notice::Fine; cells.len()])
}

/// A field for programs: its name and unit, its kind, and what its cells can be.
pub fn described(field: &Field) -> Value {
    let mut value = json!({ "name": field.name, "unit": field.unit });
    match &field.code {
        Code::Number { seen, .. } => {
            value["kind"] = "number".into();
            value["seen"] = json!(seen);
        }
        Code::Date { order, .. } => {
            value["kind"] = "date".into();
            value["such_as"] = order.example().into();
        }
        Code::Levels { levels: words, .. } | Code::Categories { values: words } => {
            value["kind"] = "word".into();
            value["values"] = json!(words);
        }
    }
    value
}

/// The probability of each class, by its name.
pub fn belief(session: &Session<'_>) -> Value {
    let classes = session.model().problem().classes().iter();
    let pairs = classes.zip(session.predict()).map(|(class, &p)| (class.clone(), json!(p)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// The classes to show, by index: all in their order, or, of many, the likely ones first.
pub fn shown_classes(session: &Session<'_>) -> Vec<usize> {
    const SHOWN: usize = 12;
    let belief = session.predict();
    let mut order: Vec<usize> = (0..belief.len()).collect();
    if belief.len() > SHOWN {
        order.sort_by(|&a, &b| belief[b].total_cmp(&belief[a]));
        order.truncate(SHOWN);
    }
    order
}
