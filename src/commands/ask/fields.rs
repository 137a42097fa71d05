//! What is asked for, cell by cell, also of a model that was not trained on a table.

use super::Failure;
use querent::data::encoding::{Code, Encoding, Field, Notice, short};
use querent::data::nearest::did_you_mean;
use querent::{Model, Session};

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

/// The answers in advance: for each field its cell.
///
/// # Errors
/// One is not of a field.
pub fn in_advance(model: &Model, said: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let features = 0..model.problem().features().len();
    let mut names: Vec<String> =
        features.flat_map(|feature| fields_of(model, feature)).map(|field| field.name).collect();
    names
        .extend(model.encoding().iter().flat_map(|encoding| &encoding.known).map(|field| field.name.clone()));
    said.iter()
        .map(|said| {
            // A name may have a `=` in it: the longest that fits is meant.
            let fits =
                |name: &&String| said.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('='));
            let Some(name) = names.iter().filter(fits).max_by_key(|name| name.len()) else {
                let name = said.split_once('=').map_or(said.as_str(), |(name, _)| name);
                return Err(Failure::Refused(format!(
                    "--answer {said}: it must be NAME=VALUE, and the names are {}{}",
                    names.iter().take(12).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
                    did_you_mean(name, names.iter().map(String::as_str))
                )));
            };
            Ok((name.clone(), said[name.len() + 1..].to_string()))
        })
        .collect()
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
) -> querent::Result<Vec<Notice>> {
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
