//! A predictor's lesson: one training step on masks that somebody else has drawn. Pretraining is the same for every
//! method, whatever its masks are.

use super::batches::{Batches, Micro};
use super::dropout::Dropout;
use crate::engine::kernels::words::losses;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};
use crate::nn::{Dense, Network, Rows, Stack, Tape, Weights, pitch};

/// A predictor with the tape of its training.
#[derive(Clone, Debug)]
pub struct Lesson {
    /// The predictor.
    pub predictor: Network,
    /// Where a micro-batch's masks are drawn to, a pitch of the features apart.
    pub masks: BufferId,
    /// Its losses.
    pub losses: BufferId,
    input: BufferId,
    dropout: Dropout,
    tape: Tape,
}

impl Lesson {
    /// Declares the predictor, in an optimiser group of its own, and its tape. `dropout` is the probability that a
    /// hidden unit is dropped.
    pub fn declare(
        b: &mut PlanBuilder,
        batches: &Batches,
        hidden: &[usize],
        dropout: f64,
        slot: usize,
    ) -> Self {
        let s = &batches.sizes;
        let (rows, inputs) = (s.rows, batches.inputs().width());
        let stack = Stack::new(0, &[&[inputs][..], hidden, &[s.classes]].concat());
        let weights = Weights::declare(b, "predictor", stack.end(), slot);
        let predictor = Network::new(stack, weights, batches.none);
        let dropout = Dropout::declare(b, dropout, hidden, rows);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        let masks = reals("masks", rows * pitch(s.features));
        let input = reals("input", rows * pitch(inputs));
        let losses = reals("losses", rows * losses::LEN);
        let tape = Tape::declare(b, "predictor", &predictor.stack, [0, rows, 0]);
        Self { predictor, masks, losses, input, dropout, tape }
    }

    /// What the way back needs, once a step.
    pub fn prepare(&self, b: &mut PlanBuilder) {
        self.predictor.transpose(b, 1..self.predictor.stack.layers.len());
    }

    /// The losses of a micro-batch's rows, which are gathered, under its masks, which are drawn.
    pub fn forward(&self, b: &mut PlanBuilder, batches: &Batches, micro: Micro) {
        self.dropout.draw(b, batches, micro, 1);
        let (rows, mask_stride) = (micro.rows, pitch(batches.sizes.features));
        let dense = Dense { x: batches.x, masks: self.masks, mask_stride, input: self.input };
        batches.inputs().expand(b, rows, 0, false, dense);
        let at = Rows { first: 0, count: rows };
        self.predictor.forward(b, 0, at, Some(dense.at(0)), &self.tape, self.dropout.multipliers());
        batches.loss(b, [rows; 2], None, [self.tape.logits(), batches.y, self.losses]);
    }

    /// The weights' gradient.
    pub fn backward(&self, b: &mut PlanBuilder, batches: &Batches, micro: Micro) {
        let (at, batch) = (Rows { first: 0, count: micro.rows }, batches.sizes.batch);
        self.predictor.backward_hidden(b, at, &self.tape, self.dropout.multipliers());
        self.predictor.backward_weights(b, micro.rows, &self.tape, batch, micro.accumulate);
        self.predictor.backward_first(b, micro.rows, self.input, &self.tape, batch, micro.accumulate);
    }
}
