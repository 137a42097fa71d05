//! What a model does: along its curve on the validation rows, and at a few points of it on the test rows; and its report.

use querent::data::table::Prepared;
use querent::data::{Dataset, Part};
use querent::policy::CurvePoint;
use querent::policy::evaluate::{self, Rules};
use querent::report::page;
use querent::run::Trained;
use querent::{Model, Result};
use serde_json::{Value, json};

/// Where a model that was trained here is from.
pub struct Origin {
    /// The table's file, or the data set's name.
    pub name: String,
    /// What computed it.
    pub engine: String,
    /// Epochs of its training, at most.
    pub epochs: usize,
    pub prepared: Prepared,
}

impl Origin {
    /// The page that `querent report` draws of a run, here one of this model.
    pub fn page(&self, model: &Model) -> Result<String> {
        let history = model.history();
        let trained = Trained {
            model: model.clone(),
            file: "model.safetensors".into(),
            seed: model.seed(),
            seconds: history.last().map_or(0.0, |epoch| epoch.seconds),
            epochs: [history.len(), self.epochs],
        };
        let run = trained.run(&self.name, &self.engine, &self.prepared.data, &self.prepared.encoding)?;
        let models = run.models(|_| Ok(model.clone()))?;
        Ok(page(&run, &models))
    }
}

/// What a model says of itself: its curve, and the points of it that have names.
pub fn curve(model: &Model) -> Value {
    let points: Vec<Value> = model.curve().iter().map(|at| point(model, "", at)).collect();
    let named: Vec<Value> = named(model).iter().map(|(name, at)| point(model, name, at)).collect();
    json!({ "metric": model.metric().to_string(), "rows": "validation", "curve": points, "tested": named })
}

/// The report of a model on the data set that it was trained on.
pub fn report(model: &Model, data: &Dataset) -> Result<Value> {
    let part = if data.sizes()[2] > 0 { Part::Test } else { Part::Validation };
    let named = named(model);
    let tested = if named.is_empty() {
        let labels = &data.splits()[part as usize].y;
        let ended = evaluate::episodes(model, data, part, &Rules::default())?.ended();
        let sum = ended.summary(data.problem(), labels, model.alpha());
        vec![json!({
            "name": "its own", "alpha": model.alpha(), "cost": sum.cost, "score": sum.score(model.metric()),
            "asked": sum.acquisitions,
        })]
    } else {
        let alphas: Vec<f64> = named.iter().map(|(_, at)| at.alpha).collect();
        let measured = model.measure(data, part, &alphas)?;
        named.iter().zip(&measured).map(|((name, _), at)| point(model, name, at)).collect()
    };
    let mut told = curve(model);
    told["rows"] = if part == Part::Test { "test" } else { "validation" }.into();
    told["tested"] = tested.into();
    Ok(told)
}

/// Points that are worth knowing; none of a model of one trade-off.
fn named(model: &Model) -> Vec<(&'static str, CurvePoint)> {
    model.choices().map_or(Vec::new(), |choices| {
        vec![("cheap", choices.cheap), ("balanced", choices.knee), ("thorough", choices.thorough)]
    })
}

fn point(model: &Model, name: &str, at: &CurvePoint) -> Value {
    let score = at.score(model.metric());
    json!({ "name": name, "alpha": at.alpha, "cost": at.cost, "score": score, "asked": at.acquisitions })
}
