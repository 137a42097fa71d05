//! What is read back of a run: sums over instances, and the means they give.

use crate::engine::kernels::words::METRICS;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Means over the training instances since the last time they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// J, entropy bonus included.
    pub objective: f64,
    /// G = J + λ H: expected loss and cost.
    pub loss_and_cost: f64,
    /// H: entropy summed over the surviving steps.
    pub entropy: f64,
    /// The predictor's loss over all steps of the path.
    pub prediction_loss: f64,
    /// How many instances these are the means of.
    pub instances: f64,
    /// The mass that still asks at each of the shorter horizons (see [`Stepper::shorter_horizons`](super::Stepper::shorter_horizons)); 0
    /// where there is none, or beyond the horizon trained with.
    #[serde(default)]
    pub still_asking: [f64; 3],
}

/// The greedy policy on a split: means over its instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Loss plus α times cost.
    pub objective: f64,
    /// Cross-entropy in nats, weighted by class if the problem says so.
    pub loss: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// Cost of what was acquired.
    pub cost: f64,
    /// Features acquired.
    pub acquisitions: f64,
    /// How many instances these are the means of.
    pub instances: f64,
}

impl Metrics {
    /// From the device's sums and its status word: the first step with a gradient that is not finite.
    pub(super) fn of_sums(sums: [f64; METRICS], status: u32) -> Result<Self> {
        if status != u32::MAX {
            return Err(Error::NonFinite { step: status });
        }
        let [objective, loss_and_cost, entropy, prediction_loss, instances, still @ ..] = sums;
        let n = instances.max(1.0);
        Ok(Self {
            objective: objective / n,
            loss_and_cost: loss_and_cost / n,
            entropy: entropy / n,
            prediction_loss: prediction_loss / n,
            instances,
            still_asking: still.map(|mass| mass / n),
        })
    }

    /// The sums again, as a device would have them.
    pub(super) fn sums(&self) -> [f64; METRICS] {
        let n = self.instances;
        let [a, b, c] = self.still_asking.map(|mass| mass * n);
        let (j, g, h, l) = (self.objective, self.loss_and_cost, self.entropy, self.prediction_loss);
        [j * n, g * n, h * n, l * n, n, a, b, c]
    }
}

impl Evaluation {
    /// From the device's sums.
    pub(super) fn of_sums(sums: [f64; METRICS], alpha: f64) -> Self {
        let [loss, correct, cost, acquisitions, instances, ..] = sums;
        let n = instances.max(1.0);
        Self {
            objective: (loss + alpha * cost) / n,
            loss: loss / n,
            accuracy: correct / n,
            cost: cost / n,
            acquisitions: acquisitions / n,
            instances,
        }
    }

    /// The sums again, as a device would have them.
    pub(super) fn sums(&self) -> [f64; METRICS] {
        let n = self.instances;
        [self.loss * n, self.accuracy * n, self.cost * n, self.acquisitions * n, n, 0.0, 0.0, 0.0]
    }
}
