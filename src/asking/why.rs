//! Why this is asked, in words and for programs.

use crate::data::encoding::short;
use crate::policy::belief::entropy;
use crate::policy::{Model, Session, Stopping, Wanted, Why};
use serde_json::{Value, json};

fn name<'m>(model: &'m Model, wanted: &Wanted) -> &'m str {
    &model.problem().features()[wanted.feature].name
}

/// What a session weighs, in one line.
pub fn in_words(session: &Session<'_>) -> String {
    let (model, why) = (session.model(), session.why());
    let percent = |share: f32| format!("{:.1}%", 100.0 * share);
    let weighed = |wanted: &Wanted| match wanted.share {
        Some(share) => format!("{} ({})", name(model, wanted), percent(share)),
        None => name(model, wanted).to_string(),
    };
    let Why { wanted, stopping, stops } = &why;
    let stop = match stopping {
        Stopping::Forced => String::new(),
        Stopping::Share(share) => format!("stopping weighs {}", percent(*share)),
        Stopping::Gain(gain) => {
            format!("going on is expected to gain {} nats after its price", short(f64::from(*gain)))
        }
        Stopping::Doubt { entropy, below } => format!(
            "the doubt left is {} nats, and it stops below {}",
            short(f64::from(*entropy)),
            short(f64::from(*below))
        ),
        Stopping::Worth { best, below } => format!(
            "the best is worth {} nats for its cost, and it stops below {}",
            short(f64::from(*best)),
            short(f64::from(*below))
        ),
    };
    match (&wanted[..], stops) {
        ([], _) => "nothing more can be asked for".into(),
        (_, false) if stop.is_empty() => format!("{} is asked for", weighed(&wanted[0])),
        ([only], false) => format!("{} is asked for, and is all that is left; {stop}", weighed(only)),
        ([first, next, ..], false) => {
            format!("{} is asked for, the next would be {}; {stop}", weighed(first), weighed(next))
        }
        ([first, ..], true) => format!("it stops: {stop}; the next would be {}", weighed(first)),
    }
}

/// When a session would stop, in one line; nothing where it has stopped.
pub fn to_stop(session: &Session<'_>) -> Option<String> {
    let Why { wanted, stopping, stops } = session.why();
    if stops {
        return None;
    }
    let nats = |value: f32| short(f64::from(value));
    Some(match stopping {
        Stopping::Forced => "It asks until nothing is left to ask for.".into(),
        Stopping::Share(share) => format!(
            "It stops once stopping weighs more than any question: now {:.1}%, and this question {:.1}%.",
            100.0 * share,
            100.0 * wanted.first().and_then(|wanted| wanted.share).unwrap_or(0.0)
        ),
        Stopping::Doubt { entropy, below } => {
            let sure = sure_enough(session.predict(), below);
            let such_as = sure.map_or(String::new(), |p| {
                format!(", as it would be with {} at {:.1}%", session.label(), 100.0 * p)
            });
            format!("It stops once its doubt is below {} nats{such_as}: now {}.", nats(below), nats(entropy))
        }
        Stopping::Gain(gain) => format!(
            "It stops once going on is expected to gain nothing after its price: now {} nats.",
            nats(gain)
        ),
        Stopping::Worth { best, below } => format!(
            "It stops once no question is worth {} nats for its cost: now the best is worth {}.",
            nats(below),
            nats(best)
        ),
    })
}

/// How probable the likeliest class would have to be for the entropy to be this, with the others as they are to each other.
/// `None` if only certainty would do.
fn sure_enough(belief: &[f32], below: f32) -> Option<f32> {
    let top = belief.iter().copied().fold(0.0, f32::max);
    let at = |p: f32| -> f32 {
        let mut seen = false;
        let scaled: Vec<f32> = belief
            .iter()
            .map(|&q| {
                let is_top = q == top && !seen;
                seen |= is_top;
                if is_top { p } else { q * (1.0 - p) / (1.0 - top).max(f32::MIN_POSITIVE) }
            })
            .collect();
        entropy(&scaled)
    };
    let (mut low, mut high) = (top, 1.0);
    if below <= 0.0 || at(low) <= below {
        return None;
    }
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        if at(middle) > below { low = middle } else { high = middle }
    }
    Some(high)
}

/// The same for programs; the five that are wanted most.
pub fn value(session: &Session<'_>) -> Value {
    const SHOWN: usize = 5;
    let why = session.why();
    let wanted = why.wanted.iter().take(SHOWN);
    let stop = match why.stopping {
        Stopping::Forced => json!({ "forced": true }),
        Stopping::Share(share) => json!({ "share": share }),
        Stopping::Gain(gain) => json!({ "gain": gain }),
        Stopping::Doubt { entropy, below } => json!({ "entropy": entropy, "below": below }),
        Stopping::Worth { best, below } => json!({ "worth": best, "below": below }),
    };
    let wanted: Vec<Value> = wanted
        .map(|wanted| json!({ "feature": name(session.model(), wanted), "share": wanted.share }))
        .collect();
    json!({ "wanted": wanted, "stop": stop, "stops": why.stops })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_belief_that_would_be_enough_has_that_entropy() {
        let belief = [0.5, 0.3, 0.2];
        let p = sure_enough(&belief, 0.2).expect("less doubt");
        assert!(p > 0.9 && p < 1.0, "{p}");
        let then = [p, (1.0 - p) * 0.6, (1.0 - p) * 0.4];
        assert!((entropy(&then) - 0.2).abs() < 1e-4, "{}", entropy(&then));
        assert_eq!(sure_enough(&belief, 0.0), None, "only certainty would do");
        assert_eq!(sure_enough(&belief, 2.0), None, "it is certain enough already");
        let even = sure_enough(&[0.25; 4], 0.5).expect("less doubt");
        assert!(
            (entropy(&[even, (1.0 - even) / 3.0, (1.0 - even) / 3.0, (1.0 - even) / 3.0]) - 0.5).abs() < 1e-4
        );
    }
}
