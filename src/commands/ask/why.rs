//! Why this is asked, in words and for programs.

use querent::data::encoding::short;
use querent::policy::{Stopping, Wanted, Why};
use querent::{Model, Session};
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
