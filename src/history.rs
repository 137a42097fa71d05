//! What a training run went through, epoch by epoch.

use crate::methods::nmppg::{Evaluation, Metrics};
use serde::{Deserialize, Serialize};

/// Which part of a run an epoch belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The predictor alone, on random masks.
    WarmUp,
    /// Policy and predictor, at the n-th temperature (from 0).
    Stage(usize),
}

/// One epoch of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Counted from 0 through the whole run.
    pub index: usize,
    /// Which part of the run.
    pub phase: Phase,
    /// Temperature of the relaxation (0 in the warm-up).
    pub tau_soft: f64,
    /// Weight of the entropy bonus.
    pub lambda: f64,
    /// Means over the epoch's training instances.
    pub train: Metrics,
    /// The greedy policy on the validation rows.
    pub validation: Evaluation,
    /// Whether this epoch's weights are the best so far.
    pub best: bool,
    /// Seconds since the run began.
    pub seconds: f64,
}
