//! A case as the page leads it, without a browser: what is put off comes back, what is undone is as before, and another
//! trade-off goes on with the same answers.
#![cfg(feature = "cli")]

use crate::command::{querent, train_quickly};
use crate::common::TempDir;
use crate::{models, using};
use querent::asking::conversation::{Asks, Conversation};
use querent::asking::page;
use querent::{Model, Step};
use serde_json::Value;

fn model(name: &str) -> Model {
    let dir = using::clinic(name);
    Model::load(dir.0.join("run/model.safetensors")).expect("loads")
}

/// A folder with a small table of numbers and words, and a model of it that was trained for a moment.
pub fn trained(name: &str, method: &str) -> TempDir {
    let dir = TempDir::new(name);
    let rows = (0..300).map(|i| {
        let (a, b, word) = (i % 7, (i * 5) % 11, ["n", "o", "p", "q"][(i * 3) % 4]);
        format!("{a},{b},{word},{}\n", if a + b > 8 { "much" } else { "little" })
    });
    let table = "a,b,word,label\n".to_string() + &rows.collect::<String>();
    std::fs::write(dir.0.join("t.csv"), table).expect("writes");
    assert_eq!(querent(&dir.0, &["init", "t.csv", "--target", "label"], "").code, Some(0));
    train_quickly(&dir.0, &["problem.toml", "--method", method, "--out", "run"]);
    dir
}

fn said(conversation: &mut Conversation<'_>, text: &str) -> Value {
    page::say(conversation, text).expect("understood")
}

/// A cell that each field of what is asked for takes.
fn some_cells(conversation: &Conversation<'_>) -> Vec<String> {
    let fields = conversation.fields();
    fields.iter().map(|field| field.words().first().map_or("20".to_string(), String::clone)).collect()
}

fn question(conversation: &Conversation<'_>) -> Option<usize> {
    match conversation.now().asks() {
        Asks::Feature { feature, .. } => Some(feature),
        _ => None,
    }
}

#[test]
fn it_asks_as_a_session_does() {
    let model = model("conversation-plain");
    let (mut conversation, first) = page::open(&model, None).expect("opens");
    assert_eq!(first["model"]["target"], "diagnosis");
    assert_eq!(first["view"]["ask"]["given"], true);
    let mut session = model.session();
    let given = some_cells(&conversation);
    session.tell_given(&given.iter().map(String::as_str).collect::<Vec<_>>()).expect("taken");
    conversation.answer(&given).expect("taken");
    while let Step::Acquire(feature) = session.next() {
        assert_eq!(question(&conversation), Some(feature));
        let cells = some_cells(&conversation);
        session.tell(feature, &cells.iter().map(String::as_str).collect::<Vec<_>>()).expect("taken");
        conversation.answer(&cells).expect("taken");
        assert_eq!(conversation.now().session().predict(), session.predict());
    }
    assert_eq!(conversation.now().asks(), Asks::Nothing);
    assert_eq!(conversation.now().session().spent(), session.spent());
    let view = said(&mut conversation, "{\"budget\":null}");
    assert_eq!(view["answer"], session.label());
    let rows = view["trace"]["rows"].as_array().expect("a table");
    assert_eq!(rows.len(), 1 + session.acquisitions());
    let csv = view["trace"]["csv"].as_str().expect("a text");
    assert!(
        csv.starts_with("question,answer,cost,spent,cold,flu,pneumonia,strep\nknown from the start,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), rows.len() + 1);
}

#[test]
fn what_is_put_off_comes_back_when_nothing_else_is_left() {
    let model = model("conversation-later");
    let (mut conversation, _) = page::open(&model, None).expect("opens");
    conversation.answer(&some_cells(&conversation)).expect("taken");
    let first = question(&conversation).expect("asks");
    conversation.later().expect("put off");
    let mut others = 0;
    while let Asks::Feature { feature, again: false } = conversation.now().asks() {
        assert_ne!(feature, first, "not before the others");
        conversation.answer(&some_cells(&conversation)).expect("taken");
        others += 1;
    }
    assert_eq!(others, model.problem().features().len() - 1, "this model asks for all");
    assert_eq!(conversation.now().asks(), Asks::Feature { feature: first, again: true });
    assert!(!conversation.now().has_other());
    conversation.later().expect("put off again");
    assert_eq!(question(&conversation), Some(first), "there is nothing else");
    conversation.unavailable().expect("then not at all");
    assert_eq!(conversation.now().asks(), Asks::Nothing);
    assert!(conversation.now().later().is_empty());
    // All the way back, step by step.
    while conversation.can_go_back() {
        conversation.back();
    }
    assert_eq!(conversation.now().asks(), Asks::Given);
    assert!(conversation.draft().is_some(), "what was given is there to be corrected");
}

#[test]
fn slips_are_told_in_the_commands_words_and_nothing_changes() {
    let model = model("conversation-slips");
    let (mut conversation, _) = page::open(&model, None).expect("opens");
    let view = said(&mut conversation, "{\"answer\":[\"x\",\"winter\"]}");
    assert_eq!(view["refusal"]["field"], 0);
    assert!(view["refusal"]["what"].as_str().expect("why").contains("not a number"), "{view}");
    let view = said(&mut conversation, "{\"answer\":[\"31\",\"wintr\"]}");
    assert_eq!((&view["refusal"]["field"], &view["refusal"]["doubtful"]), (&1.into(), &true.into()));
    assert!(view["refusal"]["what"].as_str().expect("why").contains("did you mean `winter`?"), "{view}");
    let view = said(&mut conversation, "{\"answer\":[\"200\",\"wintr\"]}");
    assert_eq!(view["refusal"]["doubtful"], true, "another answer is not the same again");
    let view = said(&mut conversation, "{\"answer\":[\"200\",\"wintr\"]}");
    assert!(view["refusal"].is_null(), "said again, it is meant: {view}");
    let warnings = view["warnings"].as_array().expect("a list");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].as_str().expect("text").contains("outside of the training rows' range"));
    assert!(page::say(&mut conversation, "{\"anser\":[]}").is_err());
    let view = said(&mut conversation, "{\"place\":0.5}");
    assert!(view["refusal"]["what"].as_str().expect("why").contains("one trade-off"), "{view}");
    let view = said(&mut conversation, "{\"budget\":-1}");
    assert!(view["refusal"]["what"].as_str().expect("why").contains("zero or more"), "{view}");
}

/// Another budget, in the middle of a case, leads where it would have led from the start.
#[test]
fn a_budget_in_the_middle_is_one_from_the_start() {
    let model = model("conversation-budget");
    let mut early = page::open(&model, Some(20.0)).expect("opens").0;
    let mut late = page::open(&model, Some(20.0)).expect("opens").0;
    let mut steps = 0;
    while early.now().asks() != Asks::Nothing {
        let cells = some_cells(&early);
        early.answer(&cells).expect("taken");
        late.answer(&cells).expect("taken");
        steps += 1;
    }
    assert!(steps > 2);
    let at = early.now().session().spent();
    late.set_budget(f64::INFINITY).expect("no limit");
    assert!(question(&late).is_some(), "it goes on");
    assert_eq!(late.now().session().spent(), at);
    late.set_budget(20.0).expect("the old one");
    assert_eq!(late.now().asks(), Asks::Nothing);
    assert_eq!(late.now().session().predict(), early.now().session().predict());
    late.restart();
    assert_eq!(late.now().asks(), Asks::Given);
    assert_eq!(late.budget(), 20.0);
    // That was too soon: the case before is still there, until something is said in the new one.
    late.back();
    assert_eq!(late.now().session().predict(), early.now().session().predict());
    late.restart();
    late.answer(&some_cells(&late)).expect("taken");
    late.back();
    assert!(!late.can_go_back());
}

/// A move of the slider in the middle of a case goes on as if it had begun there.
#[test]
fn another_trade_off_keeps_the_answers() {
    let dir = trained("conversation-alpha", "nmppg");
    let model = Model::load(dir.0.join("run/model.safetensors")).expect("loads");
    let range = model.alphas().expect("a model of a range");
    let (mut conversation, first) = page::open(&model, None).expect("opens");
    assert_eq!(first["model"]["alphas"]["from"], range.from());
    said(&mut conversation, "{\"place\":0}");
    let asked = question(&conversation).expect("where cost weighs least, it asks");
    let cells = some_cells(&conversation);
    conversation.answer(&cells).expect("taken");
    for (place, alpha) in [(0.0, range.from()), (1.0, range.to()), (0.5, range.shown(range.middle()))] {
        let view = said(&mut conversation, &format!("{{\"place\":{place}}}"));
        assert!(view["refusal"].is_null(), "{view}");
        assert_eq!(conversation.alpha(), alpha);
        assert!(
            view["alpha"]["expected"].as_str().is_some_and(|text| text.contains("on the validation rows"))
        );
        let mut session = model.session().with_alpha(alpha).expect("in the range");
        session.tell(asked, &cells.iter().map(String::as_str).collect::<Vec<_>>()).expect("taken");
        assert_eq!(conversation.now().session().predict(), session.predict());
        let next = match session.next() {
            Step::Acquire(feature) => Some(feature),
            Step::Stop => None,
        };
        assert_eq!(question(&conversation), next);
        assert_eq!(view["trace"]["rows"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_model_of_no_table_takes_any_number() {
    let model = models::constant(&[3.0, 2.0, 1.0], &[1.0, 2.0], None);
    let (mut conversation, first) = page::open(&model, None).expect("opens");
    assert_eq!((&first["model"]["target"], &first["model"]["missing"]), (&Value::Null, &Value::Bool(false)));
    assert_eq!(first["view"]["ask"]["fields"][0]["expected"], "a number");
    assert!(first["view"]["alpha"].is_null(), "one trade-off");
    let view = said(&mut conversation, "{\"answer\":[\":missing\"]}");
    assert_eq!(view["refusal"]["what"], "the model knows of no missing values");
    let view = said(&mut conversation, "{\"answer\":[\"-1e30\"]}");
    assert!(view["refusal"].is_null() && view["asked"] == 1, "{view}");
    assert_eq!(view["why"]["more"]["stop"]["share"].as_f64().map(|share| share > 0.2), Some(true));
}
