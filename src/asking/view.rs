//! A conversation as a page shows it: all of it in one JSON text, in words and numbers that only have to be put in
//! their places.

use super::conversation::{Asks, Conversation, Refusal, Said};
use super::expected_at;
use super::fields::{described, fields_of, known, shown_classes};
use super::why;
use crate::data::encoding::{Field, short};
use crate::policy::Session;
use serde_json::{Value, json};

/// What a page is told once.
pub fn opening(conversation: &Conversation<'_>) -> Value {
    let model = conversation.model();
    let range = model.alphas().map(|range| json!({ "from": range.from(), "to": range.to() }));
    let everything: f64 = model.problem().features().iter().map(|feature| feature.cost).sum();
    json!({
        "target": model.encoding().map(|encoding| &encoding.target),
        "method": model.method(),
        "version": model.version(),
        "features": model.problem().features().len(),
        "everything": short(everything),
        "alphas": range,
        "rows": model.policy().rows(),
        "missing": model.encoding().is_some(),
    })
}

/// What it shows now; and why the last answer was not taken, if so.
pub fn view(conversation: &Conversation<'_>, refusal: Option<&Refusal>) -> Value {
    let now = conversation.now();
    let session = now.session();
    let features = conversation.model().problem().features();
    let name = |&feature: &usize| features[feature].name.clone();
    let left = session.budget() - session.spent();
    json!({
        "ask": ask(conversation),
        "answer": (now.asks() == Asks::Nothing).then(|| session.label()),
        "belief": belief(session),
        "asked": session.acquisitions(),
        "spent": short(session.spent()),
        "budget": session.budget().is_finite().then(|| short(session.budget())),
        "left": left.is_finite().then(|| short(left.max(0.0))),
        "later": now.later().iter().map(name).collect::<Vec<_>>(),
        "why": (now.asks() != Asks::Given).then(|| json!({
            "words": why::in_words(session),
            "stop": why::to_stop(session),
            "more": why::value(session),
        })),
        "alpha": tradeoff(conversation),
        "warnings": now.warnings(),
        "refusal": refusal.map(|refusal| json!({
            "field": refusal.field, "what": refusal.what, "doubtful": refusal.doubtful,
        })),
        "undo": conversation.can_go_back(),
        "trace": trace(conversation),
    })
}

fn ask(conversation: &Conversation<'_>) -> Option<Value> {
    let (now, fields) = (conversation.now(), conversation.fields());
    let fields: Vec<Value> = fields.iter().map(field).collect();
    let draft = conversation.draft();
    match now.asks() {
        Asks::Nothing => None,
        Asks::Given => Some(json!({ "given": true, "fields": fields, "draft": draft })),
        Asks::Feature { feature, again } => {
            let asked = &conversation.model().problem().features()[feature];
            Some(json!({
                "name": asked.name,
                "cost": short(asked.cost),
                "fields": fields,
                "draft": draft,
                "again": again,
                "other": now.has_other(),
            }))
        }
    }
}

fn field(field: &Field) -> Value {
    let mut value = described(field);
    value["label"] = field.label().into();
    value["expected"] = field.expected().into();
    // A word of a category may be one that no training row has.
    value["open"] = matches!(field.code, crate::data::encoding::Code::Categories { .. }).into();
    value
}

fn percent(p: f32) -> String {
    format!("{:.1}%", 100.0 * p)
}

/// The classes as the terminal shows them: all, or the likely ones of many.
fn belief(session: &Session<'_>) -> Value {
    let classes = session.model().problem().classes();
    let bar = |class: usize| {
        let p = session.predict()[class];
        json!({ "class": classes[class], "p": p, "percent": percent(p), "top": class == session.best() })
    };
    shown_classes(session).into_iter().map(bar).collect()
}

fn tradeoff(conversation: &Conversation<'_>) -> Option<Value> {
    let (model, alpha) = (conversation.model(), conversation.alpha());
    let range = model.alphas()?;
    let place = range.place(alpha).clamp(0.0, 1.0);
    Some(json!({ "place": place, "alpha": range.shown(alpha), "expected": expected_at(model, alpha) }))
}

/// Cells of several fields have their names in front.
fn cells(fields: &[Field], cells: &[String]) -> String {
    let said = |cell: &String| if cell.is_empty() { "missing".to_string() } else { cell.clone() };
    match (fields, cells) {
        ([_], [cell]) => said(cell),
        _ => {
            let pairs =
                fields.iter().zip(cells).map(|(field, cell)| format!("{} {}", field.name, said(cell)));
            pairs.collect::<Vec<_>>().join("; ")
        }
    }
}

/// What was said and believed, as a table of texts, and the same as CSV, with probabilities as they are.
fn trace(conversation: &Conversation<'_>) -> Value {
    let model = conversation.model();
    let (features, classes) = (model.problem().features(), model.problem().classes());
    let head = ["question", "answer", "cost", "spent"].map(String::from);
    let head: Vec<String> = head.into_iter().chain(classes.iter().cloned()).collect();
    let (mut rows, mut plain): (Vec<Vec<String>>, Vec<Vec<String>>) = Default::default();
    for (said, moment) in conversation.said() {
        let (question, answer, cost) = match said {
            Said::Given(given) => {
                let fields = known(model).map_or(&[][..], |encoding| &encoding.known);
                ("known from the start".to_string(), cells(fields, given), 0.0)
            }
            Said::Cells(feature, told) => {
                let fields = fields_of(model, *feature);
                let question = match &fields[..] {
                    [field] => field.label(),
                    _ => features[*feature].name.clone(),
                };
                (question, cells(&fields, told), features[*feature].cost)
            }
            Said::Unavailable(feature) => (features[*feature].name.clone(), "cannot be had".to_string(), 0.0),
            // It is no news.
            Said::Later(_) => continue,
        };
        let session = moment.session();
        let row = [question, answer, short(cost), short(session.spent())];
        let with = |belief: fn(f32) -> String| -> Vec<String> {
            row.iter().cloned().chain(session.predict().iter().map(|&p| belief(p))).collect()
        };
        rows.push(with(percent));
        plain.push(with(|p| p.to_string()));
    }
    json!({ "csv": csv(&head, &plain), "head": head, "rows": rows })
}

fn csv(head: &[String], rows: &[Vec<String>]) -> String {
    let quoted = |cell: &String| match cell.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    let line = |row: &[String]| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
    std::iter::once(head).chain(rows.iter().map(Vec::as_slice)).map(line).collect()
}
