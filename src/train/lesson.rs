//! A predictor's lesson: one training step on masks that somebody else has drawn. Pretraining is the same for every
//! method, whatever its masks are.

use super::batches::{Batches, Micro};
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
    dropout: Vec<BufferId>,
    threshold: Option<u32>,
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
        let threshold = (dropout * 65536.0).round() as u32;
        let dropped = if threshold > 0 { rows } else { 0 };
        let mut reals = |name: String, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        let layers = hidden.iter().enumerate();
        let dropout = layers.map(|(layer, &width)| reals(format!("dropout.{layer}"), dropped * pitch(width)));
        let dropout = dropout.collect();
        let masks = reals("masks".into(), rows * pitch(s.features));
        let input = reals("input".into(), rows * pitch(inputs));
        let losses = reals("losses".into(), rows * losses::LEN);
        let tape = Tape::declare(b, "predictor", &predictor.stack, [0, rows, 0]);
        let threshold = (threshold > 0).then_some(threshold);
        Self { predictor, masks, losses, input, dropout, threshold, tape }
    }

    /// What the way back needs, once a step.
    pub fn prepare(&self, b: &mut PlanBuilder) {
        self.predictor.transpose(b, 1..self.predictor.stack.layers.len());
    }

    fn multipliers(&self) -> Option<&[BufferId]> {
        self.threshold.map(|_| &self.dropout[..])
    }

    /// The losses of a micro-batch's rows, which are gathered, under its masks, which are drawn.
    pub fn forward(&self, b: &mut PlanBuilder, batches: &Batches, micro: Micro) {
        if let Some(threshold) = self.threshold {
            for (layer, &multiplier) in self.dropout.iter().enumerate() {
                let width = self.predictor.stack.layers[layer].outputs;
                batches.draw_dropout(b, micro, 1, (layer, width), threshold, multiplier);
            }
        }
        let (rows, mask_stride) = (micro.rows, pitch(batches.sizes.features));
        let dense = Dense { x: batches.x, masks: self.masks, mask_stride, input: self.input };
        batches.inputs().expand(b, rows, 0, false, dense);
        let at = Rows { first: 0, count: rows };
        self.predictor.forward(b, 0, at, Some(dense.at(0)), &self.tape, self.multipliers());
        batches.loss(b, [rows; 2], None, [self.tape.logits(), batches.y, self.losses]);
    }

    /// The weights' gradient.
    pub fn backward(&self, b: &mut PlanBuilder, batches: &Batches, micro: Micro) {
        let (at, batch) = (Rows { first: 0, count: micro.rows }, batches.sizes.batch);
        self.predictor.backward_hidden(b, at, &self.tape, self.multipliers());
        self.predictor.backward_weights(b, micro.rows, &self.tape, batch, micro.accumulate);
        self.predictor.backward_first(b, micro.rows, self.input, &self.tape, batch, micro.accumulate);
    }
}
