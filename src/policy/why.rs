//! Why a session asks for this and not for something else, and how sure it is to go on or to stop.

use super::belief::{believe, entropy};
use super::policy::Measure;
use super::session::{Session, Step};

/// What a policy weighs at some moment of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// What can be asked for, the most wanted first; nothing where nothing can.
    pub wanted: Vec<Wanted>,
    /// What speaks for an end.
    pub stopping: Stopping,
    /// Whether it stops now.
    pub stops: bool,
}

/// A feature that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// Its index.
    pub feature: usize,
    /// The policy's weight for it, of 1 for all that it can do now; `None` where it has an order without weights.
    pub share: Option<f32>,
}

/// What speaks for an end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stopping {
    /// Stopping is one of the things the policy can do, with this weight: it does what weighs most.
    Share(f32),
    /// It stops when its doubt, the entropy of the belief in nats, is below a threshold.
    Doubt {
        /// The entropy now.
        entropy: f32,
        /// The threshold.
        below: f32,
    },
    /// It stops when going on would not lower loss and price together: by how much it is expected to, in nats.
    Gain(f32),
    /// It stops when the best feature is worth less for its cost than a threshold.
    Worth {
        /// What it is worth now.
        best: f32,
        /// The threshold.
        below: f32,
    },
    /// Nothing can be asked for any more: all is known, cannot be had or does not fit the budget, or it is the last
    /// question that the horizon allows.
    Forced,
}

impl Session<'_> {
    /// What the policy weighs now: what it wants to ask for, what else it would ask for, and how near it is to stopping.
    pub fn why(&self) -> Why {
        let features = self.model().problem().features().len();
        let order = self.case.order(&|feature| self.is_open(feature));
        let gain = order.first().and_then(|&best| self.case.gain(best));
        let logits = self.case.logits();
        let stop = logits.and_then(|logits| logits.get(features).copied());
        let shares = logits.map(|logits| {
            let logits: Vec<f32> = order.iter().map(|&feature| logits[feature]).chain(stop).collect();
            let mut shares = vec![0.0; logits.len()];
            believe(&logits, &mut shares);
            shares
        });
        let share = |place: usize| shares.as_ref().and_then(|shares| shares.get(place).copied());
        let stopping = match (stop.and(share(order.len())), self.case.threshold(), gain) {
            _ if order.is_empty() => Stopping::Forced,
            (Some(share), ..) => Stopping::Share(share),
            (_, Some(below), _) => match self.case.measure() {
                Measure::Doubt => Stopping::Doubt { entropy: entropy(self.case.belief()), below },
                Measure::Worth => Stopping::Worth { best: self.case.stop_score(order[0]), below },
            },
            (.., Some(gain)) => Stopping::Gain(gain),
            (None, None, None) => Stopping::Forced,
        };
        let wanted =
            order.iter().enumerate().map(|(place, &feature)| Wanted { feature, share: share(place) });
        Why { wanted: wanted.collect(), stopping, stops: self.next() == Step::Stop }
    }
}
