//! What a model does: along its curve on the validation rows, and at a few points of it on the test rows.

use querent::data::{Dataset, Part};
use querent::policy::CurvePoint;
use querent::policy::evaluate::{self, Rules};
use querent::{Model, Result};
use serde_json::{Value, json};

/// The report of a model on the data set that it was trained on.
pub fn report(model: &Model, data: &Dataset) -> Result<Value> {
    let metric = model.metric();
    let part = if data.sizes()[2] > 0 { Part::Test } else { Part::Validation };
    let point = |name: &str, at: &CurvePoint| json!({ "name": name, "alpha": at.alpha, "cost": at.cost, "score": at.score(metric), "asked": at.acquisitions });
    let curve: Vec<Value> = model.curve().iter().map(|at| point("", at)).collect();
    let tested = match model.choices() {
        Some(choices) => {
            let named =
                [("cheap", choices.cheap), ("balanced", choices.knee), ("thorough", choices.thorough)];
            let alphas = named.map(|(_, at)| at.alpha);
            let measured = model.measure(data, part, &alphas)?;
            named.iter().zip(&measured).map(|((name, _), at)| point(name, at)).collect()
        }
        // A model of one trade-off.
        None => {
            let labels = &data.splits()[part as usize].y;
            let ended = evaluate::episodes(model, data, part, &Rules::default())?.ended();
            let sum = ended.summary(data.problem(), labels, model.alpha());
            vec![json!({
                "name": "its own", "alpha": model.alpha(), "cost": sum.cost, "score": sum.accuracy,
                "asked": sum.acquisitions,
            })]
        }
    };
    let rows = if part == Part::Test { "test" } else { "validation" };
    Ok(json!({ "metric": metric.to_string(), "rows": rows, "curve": curve, "tested": tested }))
}
