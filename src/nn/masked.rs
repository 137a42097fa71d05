//! A network's first layer on masked inputs `(x ⊙ m, m)`: a running sum under hard masks, whose cost does not depend on
//! how many features there are, or dense under any others; each with its gradient beside it.

use super::layer::pitch;
use super::stack::{Network, Rows};
use super::tape::{Operand, Tape};
use super::word;
use crate::engine::kernels::{Embed, EmbedGrad, EmbedSuffix, Expand, MaskGrad};
use crate::engine::plan::{BufferId, PlanBuilder};

/// What all masked inputs have: which columns a feature reveals, and how wide everything is.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// Which columns a feature reveals.
    pub groups: BufferId,
    /// Columns that the network reads.
    pub columns: usize,
    /// Columns that a row has: further ones belong to another network.
    pub row_columns: usize,
    /// Features that can be acquired, d.
    pub features: usize,
}

/// Inputs under hard masks: the rows, and what was acquired when.
#[derive(Clone, Copy, Debug)]
pub struct Masked {
    /// Widths and groups.
    pub inputs: Inputs,
    /// The rows.
    pub x: BufferId,
    /// The feature acquired at each step.
    pub path: BufferId,
    /// The step each feature was acquired at.
    pub acquired_at: BufferId,
    /// Instances.
    pub rows: usize,
}

/// Inputs under any masks.
#[derive(Clone, Copy, Debug)]
pub struct Dense {
    /// The rows.
    pub x: BufferId,
    /// The masks.
    pub masks: BufferId,
    /// How far apart they are.
    pub mask_stride: usize,
    /// Where the input goes.
    pub input: BufferId,
}

impl Inputs {
    /// Width of the networks' input.
    pub fn width(&self) -> usize {
        self.columns + self.features
    }

    /// Writes the dense input of `rows` instances at step t of a tape; `nothing_seen`, whatever the masks say.
    pub fn expand(&self, b: &mut PlanBuilder, rows: usize, t: usize, nothing_seen: bool, io: Dense) {
        b.call(
            Expand {
                rows: word(rows),
                step: word(t),
                columns: word(self.columns),
                features: word(self.features),
                x_pitch: word(pitch(self.row_columns)),
                mask_stride: word(io.mask_stride),
                input_pitch: word(pitch(self.width())),
                nothing_seen: u32::from(nothing_seen),
            },
            &[self.groups, io.x, io.masks, io.input],
        );
    }

    /// The gradient of the masks of some rows, from that of their dense input; `x` repeats after `batch` of them.
    pub fn mask_grad(
        &self,
        b: &mut PlanBuilder,
        [batch, rows]: [usize; 2],
        [x, grad_input, mask_grad]: [BufferId; 3],
    ) {
        b.call(
            MaskGrad {
                rows: word(rows),
                batch: word(batch),
                columns: word(self.columns),
                features: word(self.features),
                x_pitch: word(pitch(self.row_columns)),
                input_pitch: word(pitch(self.width())),
                pitch: word(pitch(self.features)),
            },
            &[self.groups, x, grad_input, mask_grad],
        );
    }
}

impl Masked {
    /// The first layer for a range of steps, each from the one before. With `keep` every step has its rows of the tape,
    /// else all have the same.
    pub fn forward(
        &self,
        b: &mut PlanBuilder,
        network: &Network,
        tape: &Tape,
        steps: std::ops::Range<usize>,
        dropout: Option<&[BufferId]>,
        keep: bool,
    ) {
        let layer = network.stack.layers[0];
        let multiplier = dropout.and_then(|dropout| dropout.first()).copied();
        b.call(
            Embed {
                rows: word(self.rows),
                first_step: word(steps.start),
                steps: word(steps.len()),
                columns: word(self.inputs.columns),
                features: word(self.inputs.features),
                hidden_pitch: word(pitch(layer.outputs)),
                x_pitch: word(pitch(self.inputs.row_columns)),
                weight: word(layer.weight),
                bias: word(layer.bias),
                dropout: multiplier.is_some() as u32,
                tape: u32::from(keep),
            },
            &[
                self.inputs.groups,
                self.x,
                self.path,
                network.values(),
                multiplier.unwrap_or(network.none()),
                tape.sum,
                tape.outputs[0],
            ],
        );
    }

    /// A whole network under hard masks, for a range of steps.
    pub fn forward_all(
        &self,
        b: &mut PlanBuilder,
        network: &Network,
        tape: &Tape,
        steps: std::ops::Range<usize>,
        dropout: Option<&[BufferId]>,
        keep: bool,
    ) {
        let rows = if keep {
            Rows { first: steps.start * self.rows, count: steps.len() * self.rows }
        } else {
            Rows { first: 0, count: self.rows }
        };
        self.forward(b, network, tape, steps, dropout, keep);
        network.forward(b, 1, rows, None, tape, dropout);
    }

    /// The first layer's weight gradient over the first steps of the tape. Destroys the gradient of its output.
    pub fn backward(
        &self,
        b: &mut PlanBuilder,
        network: &Network,
        tape: &Tape,
        steps: usize,
        divisor: usize,
        accumulate: bool,
    ) {
        self.suffix(b, network, tape, steps);
        self.gradient(b, network, tape, steps, divisor, accumulate);
    }

    /// The gradient of the first layer's output becomes its sums from each of the first steps of the tape on.
    pub fn suffix(&self, b: &mut PlanBuilder, network: &Network, tape: &Tape, steps: usize) {
        let width = word(pitch(network.stack.layers[0].outputs));
        let grad = tape.grads[0];
        b.call(EmbedSuffix { rows: word(self.rows), steps: word(steps), pitch: width }, &[grad]);
    }

    /// The first layer's weight gradient, from the suffix sums.
    pub fn gradient(
        &self,
        b: &mut PlanBuilder,
        network: &Network,
        tape: &Tape,
        steps: usize,
        divisor: usize,
        accumulate: bool,
    ) {
        let layer = network.stack.layers[0];
        let hidden_pitch = word(pitch(layer.outputs));
        let grad = tape.grads[0];
        b.call(
            EmbedGrad {
                rows: word(self.rows),
                steps: word(steps),
                columns: word(self.inputs.columns),
                features: word(self.inputs.features),
                hidden_pitch,
                x_pitch: word(pitch(self.inputs.row_columns)),
                weight: word(layer.weight),
                bias: word(layer.bias),
                accumulate: u32::from(accumulate),
                divisor: word(divisor),
            },
            &[self.inputs.groups, self.x, self.acquired_at, grad, network.weights.grad],
        );
    }
}

impl Dense {
    /// The input, from a row on.
    pub fn at(&self, row: usize) -> Operand {
        Operand::at(self.input, row)
    }
}
