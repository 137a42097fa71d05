//! What a predictor's outputs say: the probability of each class, how certain that is, and when it is certain enough.

use crate::error::{Error, Result};

/// The softmax of some outputs.
pub(crate) fn believe(logits: &[f32], belief: &mut [f32]) {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    belief.iter_mut().zip(logits).for_each(|(p, logit)| *p = (logit - top).exp());
    let mass: f32 = belief.iter().sum();
    belief.iter_mut().for_each(|p| *p /= mass);
}

/// The entropy of a belief, in nats.
pub(crate) fn entropy(belief: &[f32]) -> f32 {
    belief.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum()
}

/// The highest of the values that are open, the lowest index where there are several.
pub(crate) fn highest(values: &[f32], open: &dyn Fn(usize) -> bool) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    for (index, &value) in values.iter().enumerate() {
        if best.is_none_or(|(_, top)| value > top) && open(index) {
            best = Some((index, value));
        }
    }
    best.map(|(index, _)| index)
}

/// A threshold of a stop rule, below which a case ends.
///
/// # Errors
/// It is not finite, or below zero.
pub(crate) fn threshold(at: f64) -> Result<f32> {
    if at.is_finite() && at >= 0.0 {
        return Ok(at as f32);
    }
    Err(Error::Config(format!(
        "the threshold of the stop rule is {at}, but it must be a finite number, zero or more"
    )))
}
