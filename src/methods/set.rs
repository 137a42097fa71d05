//! Settings by name, whatever method they are of: `FIELD=VALUE` changes one of them, in any settings that serde can
//! write.
//!
//! Settings are nested by subject. A field is named by its dotted path (`schedule.stage_epochs`), or by its last name
//! alone (`stage_epochs`) if only one field has it. A value is JSON; a word needs no quotes.

use crate::error::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Number, Value};

/// Changes one of the settings, given as `FIELD=VALUE`. `renamed` has what fields were called in earlier versions,
/// and their paths now: an old name is refused with the new one.
///
/// A value has the type of the one it replaces. Where `null` stands for a setting that is not set, it takes the place of
/// any value, and any value its place; what may really be `null`, the settings' own type knows ([`changed`]).
///
/// # Errors
/// An assignment without a `=`, a field that is not there, whose name is old or that of several, or a value of another
/// type.
///
/// # Examples
/// ```
/// let mut settings = serde_json::json!({ "alpha": 0.02, "schedule": { "stage_epochs": 5 } });
/// querent::methods::set::set(&mut settings, "stage_epochs=3", &[])?;
/// assert_eq!(settings["schedule"]["stage_epochs"], 3);
/// # Ok::<(), querent::Error>(())
/// ```
pub fn set(settings: &mut Value, assignment: &str, renamed: &[(&str, &str)]) -> Result<()> {
    let fail = |what: String| Error::Config(format!("cannot set {assignment}: {what}"));
    let Some((name, text)) = assignment.split_once('=') else {
        return Err(fail("a field and its value are needed, as in alpha=0.1".into()));
    };
    let (name, text) = (name.trim(), text.trim());
    let path = find(settings, name, renamed).map_err(fail)?;
    let Some(now) = settings.pointer_mut(&pointer(&path)) else {
        return Err(fail(format!("there is no field {path}")));
    };
    match parsed(text, now) {
        Some(value) => *now = value,
        None if now.is_null() => return Err(fail(format!("{path} must be a value in JSON, or null"))),
        None => return Err(fail(format!("{path} must be {}, such as {now}", kind(now)))),
    }
    Ok(())
}

/// The same settings with one of them changed, as by [`set`].
///
/// # Errors
/// As [`set`]; and a value that the settings' type does not take.
pub fn changed<S: Serialize + DeserializeOwned>(
    settings: &S,
    assignment: &str,
    renamed: &[(&str, &str)],
) -> Result<S> {
    let fail = |error: serde_json::Error| Error::Config(format!("cannot set {assignment}: {error}"));
    let mut fields = serde_json::to_value(settings).map_err(fail)?;
    set(&mut fields, assignment, renamed)?;
    serde_json::from_value(fields).map_err(fail)
}

/// Settings that an earlier version stored side by side, nested as `like` is. What `like` does not have stays where it
/// is, for a reader to complain about.
pub(crate) fn nested(flat: Map<String, Value>, like: &Value, renamed: &[(&str, &str)]) -> Value {
    let mut nested = Map::new();
    for (name, value) in flat {
        let path = match renamed.iter().find(|(old, _)| *old == name) {
            Some((_, new)) => new.to_string(),
            None => find(like, &name, &[]).unwrap_or(name),
        };
        put(&mut nested, &path, value);
    }
    Value::Object(nested)
}

/// Puts a value where its path says, with the groups on the way.
fn put(fields: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((group, rest)) = path.split_once('.') else {
        fields.insert(path.into(), value);
        return;
    };
    if let Value::Object(inner) = fields.entry(group).or_insert_with(|| Value::Object(Map::new())) {
        put(inner, rest, value);
    }
}

/// The paths of all fields, groups left out.
fn paths(settings: &Value) -> Vec<String> {
    let Value::Object(fields) = settings else { return Vec::new() };
    let mut all = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Object(_) => all.extend(paths(value).iter().map(|inner| format!("{name}.{inner}"))),
            _ => all.push(name.clone()),
        }
    }
    all
}

fn last_name(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, last)| last)
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

/// The path of the field with this path or this last name; or what is wrong with the name.
fn find(settings: &Value, name: &str, renamed: &[(&str, &str)]) -> Result<String, String> {
    let all = paths(settings);
    if all.iter().any(|path| path == name) {
        return Ok(name.into());
    }
    let same: Vec<&String> = all.iter().filter(|path| last_name(path) == name).collect();
    match same[..] {
        [only] => return Ok(only.clone()),
        [] => {}
        _ => return Err(format!("{name} may be {}: which one?", list(&same))),
    }
    if let Some((_, new)) = renamed.iter().find(|(old, _)| *old == name || *old == last_name(name)) {
        return Err(format!("{name} is now called {new}"));
    }
    let inner: Vec<&String> =
        all.iter().filter(|path| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))).collect();
    if !inner.is_empty() {
        return Err(format!("{name} is a group of fields: {}", list(&inner)));
    }
    Err(format!("there is no field {name}; there are {}", list(&all.iter().collect::<Vec<_>>())))
}

fn list(paths: &[&String]) -> String {
    paths.iter().map(|path| path.as_str()).collect::<Vec<_>>().join(", ")
}

/// What is written there, as something that can stand where `now` does.
fn parsed(text: &str, now: &Value) -> Option<Value> {
    match (serde_json::from_str(text), now) {
        (Ok(value @ (Value::String(_) | Value::Null)), Value::String(_)) => Some(value),
        (_, Value::String(_)) => Some(Value::String(text.into())),
        (Ok(value), _) => fitted(value, now),
        (Err(_), _) => None,
    }
}

fn fitted(value: Value, now: &Value) -> Option<Value> {
    match (value, now) {
        (Value::Null, _) => Some(Value::Null),
        (value, Value::Null) => Some(value),
        (value @ Value::Bool(_), Value::Bool(_)) | (value @ Value::String(_), Value::String(_)) => {
            Some(value)
        }
        // A real stays one, so that it can have digits again.
        (Value::Number(value), Value::Number(now)) if now.is_f64() => {
            Number::from_f64(value.as_f64()?).map(Value::Number)
        }
        (Value::Number(value), Value::Number(_)) => (!value.is_f64()).then_some(Value::Number(value)),
        (Value::Array(values), Value::Array(now)) => match now.first() {
            Some(first) => values.into_iter().map(|value| fitted(value, first)).collect(),
            None => Some(Value::Array(values)),
        },
        _ => None,
    }
}

/// What a field like this one holds.
fn kind(now: &Value) -> String {
    match now {
        Value::Bool(_) => "true or false".into(),
        Value::Number(now) if now.is_f64() => "a number".into(),
        Value::Number(_) => "a whole number".into(),
        Value::String(_) => "a word".into(),
        Value::Array(_) => "a list".into(),
        Value::Null | Value::Object(_) => "a value".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const RENAMED: [(&str, &str); 2] = [("speed", "steps.rate"), ("width", "nets.one")];

    fn settings() -> Value {
        json!({
            "rate": 0.5, "kind": "Soft", "most": null,
            "steps": { "rate": 0.1, "epochs": 5, "falls": true },
            "nets": { "one": [8, 8], "two": [0.5], "deep": { "er": 1.0 } },
        })
    }

    /// The settings after some changes, and the error of the last one.
    fn after(assignments: &[&str]) -> (Value, String) {
        let mut settings = settings();
        let mut error = String::new();
        for assignment in assignments {
            error = set(&mut settings, assignment, &RENAMED).err().map_or(String::new(), |e| e.to_string());
        }
        (settings, error)
    }

    #[test]
    fn fields_are_found_by_path_and_by_last_name() {
        for (assignment, pointer, value) in [
            ("steps.epochs=3", "/steps/epochs", json!(3)),
            ("epochs=3", "/steps/epochs", json!(3)),
            (" epochs = 3 ", "/steps/epochs", json!(3)),
            ("steps.rate=2e-3", "/steps/rate", json!(0.002)),
            // A path goes before a last name.
            ("rate=0.7", "/rate", json!(0.7)),
            ("er=-2", "/nets/deep/er", json!(-2.0)),
            ("falls=false", "/steps/falls", json!(false)),
            ("one=[4, 2, 1]", "/nets/one", json!([4, 2, 1])),
            ("two=[1, 0.5]", "/nets/two", json!([1.0, 0.5])),
            ("kind=Hard", "/kind", json!("Hard")),
            ("kind=\"Hard\"", "/kind", json!("Hard")),
            ("kind=a=b", "/kind", json!("a=b")),
            ("most=7", "/most", json!(7)),
            ("epochs=null", "/steps/epochs", json!(null)),
        ] {
            let mut expected = settings();
            *expected.pointer_mut(pointer).expect("there") = value;
            assert_eq!(after(&[assignment]), (expected, String::new()), "{assignment}");
        }
        // A number that happens to be whole is still one that need not be.
        assert_eq!(after(&["steps.rate=1", "steps.rate=0.25"]).0["steps"]["rate"], 0.25);
    }

    #[test]
    fn what_cannot_be_set_is_explained_and_nothing_is_changed() {
        for (assignment, what) in [
            ("epochs", "a field and its value are needed"),
            (
                "pace=1",
                "there is no field pace; there are kind, most, nets.deep.er, nets.one, nets.two, rate, steps.epochs",
            ),
            ("steps.pace=1", "there is no field steps.pace"),
            ("=1", "there is no field ;"),
            ("steps/epochs=1", "there is no field steps/epochs"),
            ("steps=1", "steps is a group of fields: steps.epochs, steps.falls, steps.rate"),
            ("nets.deep={}", "nets.deep is a group of fields: nets.deep.er"),
            ("speed=1", "speed is now called steps.rate"),
            ("steps.width=1", "steps.width is now called nets.one"),
            ("epochs=many", "steps.epochs must be a whole number, such as 5"),
            ("epochs=2.5", "steps.epochs must be a whole number"),
            ("epochs=[3]", "steps.epochs must be a whole number"),
            ("steps.rate=true", "steps.rate must be a number, such as 0.1"),
            ("steps.rate=NaN", "steps.rate must be a number"),
            ("steps.rate=", "steps.rate must be a number"),
            ("falls=1", "steps.falls must be true or false"),
            ("one=8", "nets.one must be a list, such as [8,8]"),
            ("one=[8, 0.5]", "nets.one must be a list"),
            ("most=seven", "most must be a value in JSON, or null"),
        ] {
            let (after, error) = after(&[assignment]);
            assert!(error.contains(&format!("cannot set {assignment}: ")), "{error}");
            assert!(error.contains(what), "{assignment}: {error}");
            assert_eq!(after, settings(), "{assignment}");
        }
        let mut twice = json!({ "a": { "x": 1 }, "b": { "x": 2 } });
        let error = set(&mut twice, "x=3", &[]).expect_err("one of two").to_string();
        assert!(error.contains("x may be a.x, b.x: which one?"), "{error}");
        assert!(set(&mut json!(3), "x=3", &[]).is_err());
    }

    #[test]
    fn types_have_the_last_word() {
        let error = changed(&vec![1u8], "0=2", &[]).expect_err("no fields").to_string();
        assert!(error.contains("there is no field 0"), "{error}");
        let pair = std::collections::BTreeMap::from([("a", 1u8)].map(|(k, v)| (k.to_string(), v)));
        assert_eq!(changed(&pair, "a=2", &[]).expect("fits")["a"], 2);
        let error = changed(&pair, "a=256", &[]).expect_err("too large").to_string();
        assert!(error.contains("cannot set a=256") && error.contains("expected u8"), "{error}");
        assert!(changed(&pair, "a=null", &[]).is_err());
    }

    #[test]
    fn flat_settings_are_nested() {
        let flat =
            json!({ "kind": "Hard", "epochs": 2, "speed": 0.3, "er": 2, "unknown": [1], "width": [1] });
        let Value::Object(flat) = flat else { unreachable!() };
        let expected = json!({
            "kind": "Hard", "unknown": [1],
            "steps": { "epochs": 2, "rate": 0.3 },
            "nets": { "one": [1], "deep": { "er": 2 } },
        });
        assert_eq!(nested(flat, &settings(), &RENAMED), expected);
    }
}
