//! Results for programs, with the names of features and classes.

use querent::policy::evaluate::{Summary, Traces};
use querent::{Model, Problem};
use serde_json::{Map, Value, json};

/// Puts the entries of one object into another.
pub fn add(to: &mut Value, from: Value) {
    if let Value::Object(fields) = from {
        fields.into_iter().for_each(|(key, field)| to[key] = field);
    }
}

/// A summary, with features by their names.
pub fn summary(problem: &Problem, summary: &Summary) -> Value {
    // It has numbers and lists of numbers only: nothing that JSON could not say.
    let mut value = serde_json::to_value(summary).unwrap_or_default();
    value["first_actions"] = named(problem, &summary.first_actions);
    value["stops_at_once"] = json!(summary.first_actions.last());
    value
}

/// The curve that travels with a model of many trade-offs, on its validation rows, and what to choose by it.
pub fn curve(model: &Model) -> Value {
    match model.choices() {
        Some(choices) => json!({ "curve": model.curve(), "choices": choices }),
        None => json!({}),
    }
}

fn named(problem: &Problem, shares: &[f64]) -> Value {
    let features = problem.features().iter().zip(shares);
    Value::Object(features.map(|(feature, share)| (feature.name.clone(), json!(share))).collect())
}

/// How often each feature was asked for, and how each class did.
pub fn by_name(problem: &Problem, traces: &Traces, labels: &[u32]) -> Value {
    let mut asked = vec![0usize; problem.features().len()];
    for instance in 0..traces.len() {
        for &action in traces.path_of(instance) {
            // What is beyond the features is stopping.
            if let Some(count) = asked.get_mut(action as usize) {
                *count += 1;
            }
        }
    }
    let asked: Vec<f64> = asked.iter().map(|&count| count as f64 / traces.len().max(1) as f64).collect();
    let classes = problem.classes().iter().zip(0u32..).map(|(name, class)| {
        let pairs = || traces.guess.iter().zip(labels);
        let answered = traces.guess.iter().filter(|&&guess| guess == class).count();
        let rows = labels.iter().filter(|&&label| label == class).count();
        let right = pairs().filter(|&(&guess, &label)| guess == class && label == class).count();
        let share = |of: usize| if of > 0 { json!(right as f64 / of as f64) } else { Value::Null };
        let f1 = 2.0 * right as f64 / (rows + answered).max(1) as f64;
        let value = json!({
            "rows": rows, "answered": answered, "right": right,
            "precision": share(answered), "recall": share(rows), "f1": f1,
        });
        (name.clone(), value)
    });
    json!({ "asked": named(problem, &asked), "classes": classes.collect::<Map<_, _>>() })
}
