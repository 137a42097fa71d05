//! Answers in advance.

use super::Failure;
use querent::Model;
use querent::asking::fields::fields_of;
use querent::data::nearest::did_you_mean;

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
