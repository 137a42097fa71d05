//! What a page says to the code behind it, and what it is told: one JSON text for another.

use super::conversation::{Conversation, Refusal};
use super::view;
use crate::error::{Error, Result};
use crate::policy::Model;
use serde::Deserialize;
use serde_json::{Value, json};

/// What a page says.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Wish {
    /// What was typed into each field.
    Answer(Vec<String>),
    /// It cannot be had.
    Unavailable,
    /// Something else first.
    Later,
    /// Undo what was said last.
    Back,
    /// The next case.
    Restart,
    /// Another trade-off: where it lies between the ends of the model's range, 0 to 1.
    Place(f64),
    /// Another budget; none for no limit.
    Budget(Option<f64>),
}

/// What a page is told of at first: the model, and the first question.
///
/// # Errors
/// The budget makes no sense.
pub fn open(model: &Model, budget: Option<f64>) -> Result<(Conversation<'_>, Value)> {
    let conversation = Conversation::new(model, budget.unwrap_or(f64::INFINITY))?;
    let first = json!({ "model": view::opening(&conversation), "view": view::view(&conversation, None) });
    Ok((conversation, first))
}

/// What a page is told after it has said something.
///
/// # Errors
/// It is not understood at all. What is understood and refused is in the answer.
pub fn say(conversation: &mut Conversation<'_>, text: &str) -> Result<Value> {
    let wish: Wish = serde_json::from_str(text)
        .map_err(|error| Error::Data(format!("{text} is not understood: {error}")))?;
    let because = |error: Error| Refusal { field: None, what: error.message(), doubtful: false };
    let done = match wish {
        Wish::Answer(typed) => conversation.answer(&typed),
        Wish::Unavailable => conversation.unavailable(),
        Wish::Later => conversation.later(),
        Wish::Back => {
            conversation.back();
            Ok(())
        }
        Wish::Restart => {
            conversation.restart();
            Ok(())
        }
        Wish::Place(place) => at(conversation, place).map_err(because),
        Wish::Budget(budget) => conversation.set_budget(budget.unwrap_or(f64::INFINITY)).map_err(because),
    };
    Ok(view::view(conversation, done.err().as_ref()))
}

fn at(conversation: &mut Conversation<'_>, place: f64) -> Result<()> {
    let Some(range) = conversation.model().alphas() else {
        return Err(Error::Config("the model was trained for one trade-off and knows no other".into()));
    };
    let place = place.clamp(0.0, 1.0);
    // The ends exactly, so that they are in the range.
    let alpha = match place {
        0.0 => range.from(),
        1.0 => range.to(),
        place => range.shown(range.from() * (range.span() * place).exp()),
    };
    conversation.set_alpha(alpha)
}
