//! What the predictor would lose if one more feature were known, for several features at a time: on top of the first
//! layer's running sum, so that only what a feature adds is computed for each.

use super::kernels::{Total, Trial};
use crate::engine::kernels::Loss;
use crate::engine::kernels::words::losses;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};
use crate::nn::{Inputs, Network, Rows, Stack, Tape, pitch, word};
use std::ops::Range;

/// Candidates that are tried at a time.
const AT_ONCE: usize = 16;

/// The tape of the trials.
#[derive(Clone, Debug)]
pub(super) struct Trials {
    tape: Tape,
    losses: BufferId,
    candidates: usize,
    /// The sum of each candidate's losses.
    pub totals: BufferId,
}

/// What is tried on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground {
    pub inputs: Inputs,
    pub rows: usize,
    pub classes: usize,
    pub x: BufferId,
    pub y: BufferId,
    /// The first layer's running sum, with what is known.
    pub sum: BufferId,
    /// The features to try; as many as there are features stands for nothing.
    pub candidates: BufferId,
    /// The features' costs, then the classes' weights.
    pub costs: BufferId,
}

impl Trials {
    /// A tape for so many instances and candidates.
    pub fn declare(b: &mut PlanBuilder, stack: &Stack, rows: usize, candidates: usize) -> Self {
        let tape_rows = rows * AT_ONCE.min(candidates);
        Self {
            tape: Tape::forward_only(b, "trial", stack, [0, tape_rows]),
            losses: b.buffer("trial.losses", Elem::F32, tape_rows * losses::LEN, Scope::Lane),
            candidates,
            totals: b.buffer("trial.totals", Elem::F32, candidates, Scope::Lane),
        }
    }

    /// The candidates, as many as are tried at a time.
    pub fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let all = self.candidates;
        (0..all).step_by(AT_ONCE).map(move |first| first..all.min(first + AT_ONCE))
    }

    /// Tries some of the candidates.
    pub fn calls(&self, b: &mut PlanBuilder, network: &Network, ground: Ground, block: Range<usize>) {
        let Ground { inputs, rows, classes, .. } = ground;
        let layer = network.stack.layers[0];
        let all = rows * block.len();
        b.call(
            Trial {
                rows: word(rows),
                first: word(block.start),
                count: word(block.len()),
                columns: word(inputs.columns),
                features: word(inputs.features),
                hidden_pitch: word(pitch(layer.outputs)),
                x_pitch: word(pitch(inputs.columns)),
                weight: word(layer.weight),
            },
            &[inputs.groups, ground.x, ground.candidates, network.values(), ground.sum, self.tape.outputs[0]],
        );
        network.forward(b, 1, Rows { first: 0, count: all }, None, &self.tape, None);
        b.call(
            Loss {
                rows: word(all),
                batch: word(rows),
                classes: word(classes),
                pitch: word(pitch(classes)),
                weights: word(inputs.features),
                ..Loss::default()
            },
            &[self.tape.logits(), ground.y, ground.costs, self.losses, network.none()],
        );
        let total = Total {
            rows: word(rows),
            blocks: word(block.len()),
            first: word(block.start),
            divisor: 1,
            fresh: 1,
        };
        b.call(total, &[self.losses, self.totals]);
    }
}
