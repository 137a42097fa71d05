//! The surrogate: its training, with that of the predictor alone beside it, and what it says of a state.

use super::kernels::{Belief, Moments, SurrogateLoss, hyper, stream};
use super::plan::{Layout, policy_width};
use crate::engine::kernels::words::{losses, metrics as counted};
use crate::engine::kernels::{Expand, MeanLoss, SeenMask};
use crate::engine::plan::{BufferId, PlanBuilder, Section};
use crate::nn::{Dense, Flow, FlowRows, FlowTape, POINTS, Rows, pitch, word};
use crate::train::{Batches, Masks, Micro};

/// Where some instances' states are: one of them is what is known at a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct State<'a> {
    pub flow: &'a Flow,
    pub tape: &'a FlowTape,
    /// The logits of the classes before anything was acquired.
    pub prior: BufferId,
    pub x: BufferId,
    pub masks: BufferId,
    pub acquired_at: BufferId,
    /// Where what the policy reads goes, and the entropy.
    pub input: BufferId,
    pub doubts: BufferId,
    pub rows: usize,
    /// Which state of the tape.
    pub step: usize,
    /// Nothing has been acquired yet.
    pub is_first: bool,
    /// Nobody chooses any more: only the belief is wanted.
    pub is_last: bool,
}

impl Layout {
    /// The surrogate on masks of uniform cardinality, and the predictor on the same.
    pub(super) fn warm_up_step(&self, b: &mut PlanBuilder) -> Section {
        let batches = &self.batches;
        b.section("warm_up", |b| {
            self.flow.transpose(b);
            self.prior.transpose(b, 1..self.prior.stack.layers.len());
            self.predictor.transpose(b, 1..self.predictor.stack.layers.len());
            batches.each_micro_batch(b, "warm_up", |b, micro| {
                batches.gather(b, micro);
                let masks = Masks::Uniform { stream: stream::CARDINALITY, most: 1.0 };
                batches.draw_masks(b, micro, (self.masks, pitch(batches.sizes.features)), masks);
                self.teach_surrogate(b, micro);
                self.teach_predictor(b, micro);
            });
            let surrogate = self.prior.weights;
            surrogate.clip(b, hyper::NORM, self.factor, &batches.optimizer());
            surrogate.adam(b, hyper::SURROGATE_RATE, &batches.optimizer());
            self.predictor.weights.adam(b, hyper::SURROGATE_RATE, &batches.optimizer());
            batches.advance(b, 0b0011);
        })
    }

    fn teach_surrogate(&self, b: &mut PlanBuilder, micro: Micro) {
        let (s, rows) = (&self.batches.sizes, micro.rows);
        let Batches { x, y, costs, settings, metrics, .. } = self.batches;
        self.believe_first(b, false, rows, x, self.prior_input, &self.prior_tape);
        let at = FlowRows { batch: rows, parts: 2, kind: 0, x, masks: self.masks, step: 0 };
        self.flow.forward(b, &self.flow_tape, at);
        let loss = SurrogateLoss {
            rows: word(rows),
            classes: word(s.classes),
            columns: word(s.columns),
            prior_pitch: word(pitch(s.classes)),
            weights: word(s.features),
        };
        let prior = self.prior_tape.logits();
        b.call(loss, &[self.flow_tape.logs, prior, y, costs, settings, self.surrogate_losses]);
        self.flow.backward(b, &self.flow_tape, at, s.batch, micro.accumulate);
        let all = Rows { first: 0, count: rows };
        self.prior.backward_hidden(b, all, &self.prior_tape, None);
        self.prior.backward_weights(b, rows, &self.prior_tape, s.batch, micro.accumulate);
        self.prior.backward_first(b, rows, self.prior_input, &self.prior_tape, s.batch, micro.accumulate);
        for at in [counted::OBJECTIVE, counted::OWN] {
            let mean = MeanLoss { word: word(at), ..mean_of(rows, rows, losses::LEN, losses::LOSS) };
            b.call(mean, &[self.surrogate_losses, y, metrics]);
        }
    }

    fn teach_predictor(&self, b: &mut PlanBuilder, micro: Micro) {
        let (s, rows) = (&self.batches.sizes, micro.rows);
        let Batches { x, y, metrics, .. } = self.batches;
        self.dropout.draw(b, &self.batches, micro, 1);
        let dense = Dense { x, masks: self.masks, mask_stride: pitch(s.features), input: self.input };
        self.inputs().expand(b, rows, 0, false, dense);
        let (all, tape, dropout) =
            (Rows { first: 0, count: rows }, &self.predictor_tape, self.dropout.multipliers());
        self.predictor.forward(b, 0, all, Some(dense.at(0)), tape, dropout);
        self.batches.loss(b, [rows; 2], None, [tape.logits(), y, self.losses]);
        self.predictor.backward_hidden(b, all, tape, dropout);
        self.predictor.backward_weights(b, rows, tape, s.batch, micro.accumulate);
        self.predictor.backward_first(b, rows, self.input, tape, s.batch, micro.accumulate);
        let mean = mean_of(rows, rows, losses::LEN, losses::LOSS);
        let mean = MeanLoss { word: word(counted::OBJECTIVE), training: 1, ..mean };
        b.call(mean, &[self.losses, y, metrics]);
    }

    /// What is believed of the classes before anything was acquired: from what is known from the start.
    pub(super) fn believe_first(
        &self,
        b: &mut PlanBuilder,
        averaged: bool,
        rows: usize,
        x: BufferId,
        input: BufferId,
        tape: &crate::nn::Tape,
    ) {
        let dense = Dense { x, masks: self.masks, mask_stride: pitch(self.batches.sizes.features), input };
        self.inputs().expand(b, rows, 0, true, dense);
        let prior = if averaged { self.prior.averaged() } else { self.prior.clone() };
        prior.forward(b, 0, Rows { first: 0, count: rows }, Some(dense.at(0)), tape, None);
    }

    /// What the policy reads in a state: what is known, what the surrogate believes, and what it expects of the rest.
    pub(super) fn read_state(&self, b: &mut PlanBuilder, at: State) {
        let [columns, features, classes] = self.sizes();
        let (rows, step) = (word(at.rows), word(at.step));
        let input_pitch = word(pitch(policy_width(self.sizes())));
        let seen = SeenMask {
            rows,
            step,
            features: word(features),
            mask_stride: word(pitch(features)),
            nothing_seen: u32::from(at.is_first),
        };
        b.call(seen, &[at.acquired_at, at.masks]);
        let known = Expand {
            rows,
            step,
            columns: word(columns),
            features: word(features),
            x_pitch: word(pitch(self.inputs().row_columns)),
            mask_stride: word(pitch(features)),
            input_pitch,
            nothing_seen: u32::from(at.is_first),
        };
        b.call(known, &[self.inputs().groups, at.x, at.masks, at.input]);
        let FlowTape { logs, z, .. } = at.tape;
        let of = FlowRows { batch: at.rows, parts: 1, kind: 0, x: at.x, masks: at.masks, step: at.step };
        at.flow.forward(b, at.tape, of);
        let aside = word(columns + features);
        let prior_pitch = word(pitch(classes));
        let belief = Belief { rows, step, classes: word(classes), prior_pitch, input_pitch, at: aside };
        b.call(belief, &[*logs, at.prior, at.input, at.doubts]);
        if at.is_last {
            return;
        }
        at.flow.sample(b, at.tape, FlowRows { kind: 1, parts: POINTS, ..of });
        let moments = Moments {
            rows,
            step,
            classes: word(classes),
            columns: word(columns),
            z_pitch: word(pitch(columns)),
            input_pitch,
            at: aside,
        };
        b.call(moments, &[z[0], at.input]);
    }
}

/// The mean of a word of some rows, `stride` words each, over the instances.
pub(super) fn mean_of(rows: usize, batch: usize, stride: usize, at: usize) -> MeanLoss {
    MeanLoss {
        rows: word(rows),
        batch: word(batch),
        divisor: 1,
        stride: word(stride),
        at: word(at),
        ..MeanLoss::default()
    }
}
