//! What all that ask share: the command in the terminal, its lines of JSON, and the page. A case in words, around a
//! [`Session`](crate::Session).

pub mod conversation;
pub mod fields;
#[cfg(feature = "page")]
pub mod html;
pub mod lines;
pub mod page;
pub mod understand;
pub mod view;
pub mod why;

use crate::policy::Model;
use crate::policy::tradeoff::rounded;

/// What a model does at the α it asks at, as far as its curve knows; `None` for a model of one trade-off.
pub fn expected(model: &Model) -> Option<String> {
    expected_at(model, model.alpha())
}

/// The same at another α.
pub fn expected_at(model: &Model, alpha: f64) -> Option<String> {
    let metric = model.metric();
    let after = model.curve().iter().position(|point| point.alpha >= alpha)?;
    let [a, b] = [after.saturating_sub(1), after].map(|index| model.curve()[index]);
    // Between the two points around it, linear in ln α.
    let share = if a.alpha < b.alpha { (alpha / a.alpha).ln() / (b.alpha / a.alpha).ln() } else { 0.0 };
    let between = |a: f64, b: f64| a + (b - a) * share.clamp(0.0, 1.0);
    Some(format!(
        "α {}: on the validation rows about {:.1} asked, cost {:.2}, {metric} {:.3}",
        rounded(alpha),
        between(a.acquisitions, b.acquisitions),
        between(a.cost, b.cost),
        between(a.score(metric), b.score(metric))
    ))
}
