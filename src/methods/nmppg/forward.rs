//! Forward: the rollout of a micro-batch, the warm-up step, and the greedy evaluation.

use super::kernels::{Objective, Select, Submask, hyper, scalars};
use super::plan::{Layout, TrainingStep};
use crate::engine::plan::{PlanBuilder, Section};
use crate::nn::{Dense, Rows, pitch, word};
use crate::train::{ChunkRows, Masks, Micro, Noise};

impl Layout {
    /// A training step: forward and backward of each micro-batch, then the update of both networks.
    pub(super) fn training_step(&self, b: &mut PlanBuilder, name: &str) -> TrainingStep {
        let shape = self.shape;
        let section = b.section(name, |b| {
            // The inputs' gradients are only there to go through the masks.
            let layers = |through: bool| usize::from(shape.reinforced || !through)..3;
            b.section(format!("{name}.prepare"), |b| {
                b.together(|b| {
                    self.policy.transpose(b, layers(shape.through_policy));
                    self.predictor.transpose(b, layers(true));
                });
            });
            self.batches.each_micro_batch(b, name, |b, micro| {
                b.chain(micro.rows, 1, |b| {
                    self.batches.gather(b, micro);
                    self.batches.condition(b, micro, (self.scalars, scalars::LEN, scalars::FACTOR));
                    self.batches.open(b, micro, self.acquired_at);
                    self.rollout(b, micro);
                    self.predictor_backward(b, micro);
                });
                self.count(b, micro.rows, shape.steps, shape.marks);
                b.chain(micro.rows, self.rollouts, |b| self.policy_backward(b, micro));
                b.together(|b| self.weight_gradients(b, micro));
                self.learn_submasks(b, micro);
            });
            b.section(format!("{name}.update"), |b| {
                let rates = [(&self.policy, hyper::RATE_POLICY), (&self.predictor, hyper::RATE_PREDICTOR)];
                self.batches.update(b, &rates.map(|(network, rate)| (network.weights, rate)));
            });
        });
        TrainingStep { horizon: shape.steps, reinforced: shape.reinforced, section }
    }

    /// A step of the predictor alone, on masks drawn feature by feature, or on everything.
    pub(super) fn predictor_step(&self, b: &mut PlanBuilder, name: &str, all: bool) -> Section {
        b.section(name, |b| {
            b.together(|b| self.predictor.transpose(b, 1..3));
            self.batches.each_micro_batch(b, name, |b, micro| {
                b.chain(micro.rows, 1, |b| {
                    self.batches.gather(b, micro);
                    self.batches.condition(b, micro, (self.scalars, scalars::LEN, scalars::FACTOR));
                    let which = if all { Masks::All } else { self.shape.warm_up_masks };
                    self.batches.draw_masks(b, micro, (self.masks, self.dense().mask_stride), which);
                    self.dropout.draw(b, &self.batches, micro, 1);
                    self.predict_masks(b, micro, false);
                });
                self.count(b, micro.rows, 0, [0; 3]);
                self.learn_masks(b, micro);
            });
            self.batches.update(b, &[(self.predictor.weights, hyper::RATE_PREDICTOR)]);
        })
    }

    /// The predictor's step on sub-masks of what was asked; its gradient is added to that of the rollout.
    fn learn_submasks(&self, b: &mut PlanBuilder, micro: Micro) {
        if !self.shape.submasks {
            return;
        }
        let features = self.batches.sizes.features;
        b.chain(micro.rows, 1, |b| {
            b.call(
                Submask {
                    rows: word(micro.rows),
                    steps: word(self.shape.steps),
                    features: word(features),
                    pitch: word(pitch(features)),
                    first: word(micro.first),
                },
                &[self.batches.clock, self.acquired_at, self.batches.settings, self.scalars, self.masks],
            );
            self.predict_masks(b, micro, true);
        });
        self.learn_masks(b, Micro { accumulate: true, ..micro });
    }

    /// The predictor and its losses on the masks in the tape's first rows, and back to its hidden layers.
    fn predict_masks(&self, b: &mut PlanBuilder, micro: Micro, weighted: bool) {
        self.predictor_inputs().expand(b, micro.rows, 0, false, self.dense());
        let rows = Rows { first: 0, count: micro.rows };
        let input = Some(self.dense().at(0));
        self.predictor.forward(b, 0, rows, input, &self.predictor_tape, self.dropout.multipliers());
        self.predictor_loss(b, [micro.rows; 2], weighted);
        self.predictor.backward_hidden(b, rows, &self.predictor_tape, self.dropout.multipliers());
    }

    /// The losses of `rows` rows of the predictor's tape and their unit gradient.
    fn predictor_loss(&self, b: &mut PlanBuilder, rows: [usize; 2], weighted: bool) {
        let weights = weighted.then_some((self.scalars, scalars::LEN, scalars::WEIGHT));
        let logits = self.predictor_tape.logits();
        self.batches.loss(b, rows, weights, [logits, self.batches.y, self.losses]);
    }

    /// Adds a micro-batch's objective to the metrics.
    fn count(&self, b: &mut PlanBuilder, rows: usize, steps: usize, marks: [usize; 3]) {
        let [mark0, mark1, mark2] = marks.map(word);
        b.call(
            Objective { rows: word(rows), steps: word(steps), mark0, mark1, mark2 },
            &[self.scalars, self.losses, self.batches.settings, self.batches.metrics],
        );
    }

    /// The policy's steps one after the other, then the predictor on all rows of the tape at once: it never influences
    /// the path.
    fn rollout(&self, b: &mut PlanBuilder, micro: Micro) {
        let (shape, rows) = (self.shape, micro.rows);
        let features = self.batches.sizes.features;
        if self.batches.sizes.noise == Noise::Drawn {
            self.batches.draw_gumbel(b, micro, shape.steps, features + 1, self.gumbel);
            self.dropout.draw(b, &self.batches, micro, shape.steps + 1);
        }
        let [for_policy, for_predictor] =
            [self.policy_inputs(), self.predictor_inputs()].map(|inputs| self.masked(inputs, rows));
        for t in 0..shape.steps {
            if shape.soft {
                let dense = Dense { input: self.policy_input, ..self.dense() };
                self.policy_inputs().expand(b, rows, t, t == 0, dense);
                let at = Rows { first: t * rows, count: rows };
                let input = Some(dense.at(t * rows));
                self.policy.forward(b, 0, at, input, &self.policy_tape, None);
            } else {
                for_policy.forward_all(b, &self.policy, &self.policy_tape, t..t + 1, None, true);
            }
            self.select(b, rows, t);
        }
        let all = (shape.steps + 1) * rows;
        if shape.soft {
            // What the policy has read is the predictor's as well, but for the condition.
            let first = if self.policy_input == self.input { shape.steps } else { 0 };
            for t in first..=shape.steps {
                self.predictor_inputs().expand(b, rows, t, t == 0, self.dense());
            }
            let (at, input) = (Rows { first: 0, count: all }, Some(self.dense().at(0)));
            self.predictor.forward(b, 0, at, input, &self.predictor_tape, self.dropout.multipliers());
        } else {
            let steps = 0..shape.steps + 1;
            for_predictor.forward_all(
                b,
                &self.predictor,
                &self.predictor_tape,
                steps,
                self.dropout.multipliers(),
                true,
            );
        }
        self.predictor_loss(b, [rows, all], true);
    }

    fn select(&self, b: &mut PlanBuilder, rows: usize, t: usize) {
        let features = self.batches.sizes.features;
        b.call(
            Select {
                rows: word(rows),
                step: word(t),
                steps: word(self.shape.steps),
                features: word(features),
                logit_pitch: word(pitch(features + 1)),
                mask_pitch: word(pitch(features)),
                soft: u32::from(self.shape.soft),
                relaxed: u32::from(!self.shape.reinforced),
            },
            &[
                self.policy_tape.logits(),
                self.gumbel,
                self.acquired_at,
                self.masks,
                self.path,
                self.scalars,
                self.batches.costs,
                self.batches.settings,
            ],
        );
    }

    /// The predictor on a chunk under such masks.
    pub(super) fn chunk_of(&self, b: &mut PlanBuilder, at: ChunkRows, which: Masks) {
        let (dense, rows) = (self.chunk.dense, self.batches.sizes.evaluation_rows);
        let micro = Micro { first: at.first, rows, accumulate: false };
        self.batches.draw_masks(b, micro, (dense.masks, dense.mask_stride), which);
        self.chunk_under_masks(b, false);
    }

    /// What there is to gain: the sums of the predictor of nothing, which the chunk has been through, then the predictor of
    /// everything, as far as the warm-up shows it, with its sums.
    pub(super) fn survey_sums(&self, b: &mut PlanBuilder, at: ChunkRows) {
        let most =
            if self.shape.warm_up_masks == Masks::Halves { Masks::All } else { self.shape.warm_up_masks };
        self.batches.tally(b, at, 0, 0);
        b.chain(self.batches.sizes.evaluation_rows, 1, |b| self.chunk_of(b, at, most));
        self.batches.tally(b, at, 0, 1);
    }

    /// The predictor on a chunk under the masks that are there, or of which nothing is seen.
    pub(super) fn chunk_under_masks(&self, b: &mut PlanBuilder, nothing_seen: bool) {
        let (dense, rows) = (self.chunk.dense, self.batches.sizes.evaluation_rows);
        self.predictor_inputs().expand(b, rows, 0, nothing_seen, dense);
        let (all, input) = (Rows { first: 0, count: rows }, Some(dense.at(0)));
        self.predictor.averaged().forward(b, 0, all, input, &self.chunk.predictor, None);
        self.chunk_losses(b);
    }

    fn chunk_losses(&self, b: &mut PlanBuilder) {
        let (chunk, rows) = (&self.batches.chunk, self.batches.sizes.evaluation_rows);
        self.batches.loss(b, [rows; 2], None, [self.chunk.predictor.logits(), chunk.y, chunk.losses]);
    }

    /// The greedy policy on a chunk, then the predictor on what was acquired.
    pub(super) fn greedy_chunk(&self, b: &mut PlanBuilder) {
        let horizon = self.batches.sizes.horizon;
        let masked =
            [self.policy_inputs(), self.predictor_inputs()].map(|inputs| self.batches.masked_chunk(inputs));
        let (policy, predictor) = (self.policy.averaged(), self.predictor.averaged());
        for t in 0..horizon {
            masked[0].forward_all(b, &policy, &self.chunk.policy, t..t + 1, None, false);
            self.batches.greedy(b, t, self.chunk.policy.logits(), true);
        }
        masked[1].forward_all(b, &predictor, &self.chunk.predictor, 0..horizon + 1, None, false);
        self.chunk_losses(b);
    }
}
