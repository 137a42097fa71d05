//! What a trained method knows, without a device: asked one instance at a time.

use crate::error::Result;

/// A tensor of a model's file.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f32>,
}

/// A trained policy with its predictor.
pub trait Policy: Send + Sync + std::fmt::Debug {
    /// One instance's state, with nothing seen.
    fn case(&self) -> Box<dyn Case + '_>;
    /// Asks more or less from now on: an α that it was trained for, or a threshold of the stop rule, where a method has
    /// one.
    ///
    /// # Errors
    /// The method was trained for one trade-off, or the value is out of range.
    fn set_tradeoff(&mut self, at: f64) -> Result<()>;
    /// What a unit of cost is worth to it now, where its training does not decide that; `None` where it does.
    fn alpha(&self) -> Option<f64> {
        None
    }
    /// How many rows of the training table it holds, and its file with it: a policy that compares a case with them does.
    fn rows(&self) -> usize {
        0
    }
    /// What a model's file holds of it, by name.
    fn tensors(&self) -> Vec<Tensor>;
    /// A copy.
    fn boxed(&self) -> Box<dyn Policy>;
}

/// What a threshold of a stop rule is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The entropy of the belief, in nats.
    Doubt,
    /// What the best feature is worth for its cost.
    Worth,
}

/// One instance on its way through a policy. Nothing here allocates, but for [`Case::order`] and a search.
pub trait Case: Send + Sync + std::fmt::Debug {
    /// Forgets everything.
    fn reset(&mut self);
    /// Forgets everything, and asks more or less from now on: see [`Policy::set_tradeoff`].
    ///
    /// # Errors
    /// As there.
    fn set_tradeoff(&mut self, at: f64) -> Result<()>;
    /// Takes normalized values of columns: a feature's, or, without one, what is known from the start. `false` if its
    /// outputs would overflow; nothing has changed then.
    fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) -> bool;
    /// Says whether a feature can be had, to a policy that was trained to make something of it.
    fn available(&mut self, feature: usize, is: bool) {
        let _ = (feature, is);
    }
    /// The feature to acquire next, of those that are open; `None` if there is none.
    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize>;
    /// All that are open, the most wanted first: [`Case::best`] again and again, each time without those before.
    fn order(&self, open: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let (mut order, mut taken) = (Vec::new(), Vec::new());
        while let Some(next) = self.best(&|feature| taken.get(feature) != Some(&true) && open(feature)) {
            order.push(next);
            taken.resize(taken.len().max(next + 1), false);
            taken[next] = true;
        }
        order
    }
    /// Whether to stop rather than to acquire that feature.
    fn stops(&self, best: usize) -> bool;
    /// What the stop rule looks at: a threshold on it gives every trade-off from one rollout. The lower, the sooner it
    /// stops.
    fn stop_score(&self, best: usize) -> f32;
    /// How much each feature is wanted, the higher the more, and behind them stopping where that has an output of its
    /// own; `None` where features are in an order without degrees.
    fn logits(&self) -> Option<&[f32]> {
        None
    }
    /// What [`Case::stop_score`] has to be below to stop, where that is a threshold somebody has chosen.
    fn threshold(&self) -> Option<f32> {
        None
    }
    /// By how much going on is expected to lower loss and price together, in nats, where that is what decides.
    fn gain(&self, best: usize) -> Option<f32> {
        let _ = best;
        None
    }
    /// What that threshold is of.
    fn measure(&self) -> Measure {
        Measure::Doubt
    }
    /// The probability of each class.
    fn belief(&self) -> &[f32];
    /// Whether its outputs are finite.
    fn is_finite(&self) -> bool;
    /// A copy.
    fn boxed<'a>(&self) -> Box<dyn Case + 'a>
    where
        Self: 'a;
}
