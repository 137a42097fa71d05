//! Which settings of two runs differ.

use serde_json::Value;

/// Each setting that differs, with its path, its old value and its new one: `schedule.stage_epochs was 5, now it is 3`.
pub fn differences(before: &Value, now: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(before), Some(now), &mut found);
    found
}

fn compare(path: &str, before: Option<&Value>, now: Option<&Value>, found: &mut Vec<String>) {
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (before, now) {
        let added = new.keys().filter(|key| !old.contains_key(*key));
        for key in old.keys().chain(added) {
            let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            compare(&inner, old.get(key), new.get(key), found);
        }
    } else if before != now {
        let shown = |value: Option<&Value>| value.map_or("not there".into(), Value::to_string);
        let path = if path.is_empty() { "all of it" } else { path };
        found.push(format!("{path} was {}, now it is {}", shown(before), shown(now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_named() {
        let before =
            json!({ "alpha": 0.1, "schedule": { "epochs": 5, "old": true, "same": [1, 2] }, "word": "a" });
        let now = json!({ "alpha": [0.1, 0.2], "schedule": { "epochs": 3, "same": [1, 2], "new": null }, "word": "a" });
        assert_eq!(
            differences(&before, &now),
            [
                "alpha was 0.1, now it is [0.1,0.2]",
                "schedule.epochs was 5, now it is 3",
                "schedule.old was true, now it is not there",
                "schedule.new was not there, now it is null",
            ]
        );
        assert!(differences(&now, &now).is_empty());
        assert_eq!(differences(&json!(null), &json!(1)), ["all of it was null, now it is 1"]);
    }
}
