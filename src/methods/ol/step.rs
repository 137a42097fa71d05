//! The sections that train: episodes into the replay memory and updates out of it, and a step of the pretraining.

use super::kernels::{Believe, Confidence, TdGrad, hyper, stream};
use super::plan::{Layout, Sampled};
use crate::engine::kernels::words::{losses, metrics as counted};
use crate::engine::kernels::{MeanLoss, returns};
use crate::engine::plan::{BufferId, PlanBuilder, Section};
use crate::nn::{Dense, Masked, Rows, pitch, word};
use crate::train::{Batches, Masks, Micro};

impl Layout {
    /// A batch of episodes under the current weights goes into the memory; then some updates, each with transitions drawn
    /// out of it.
    pub(super) fn training_step(&self, b: &mut PlanBuilder) -> Section {
        b.section("step", |b| {
            if let Some(sampled) = &self.sampled {
                self.lateral.copy_main(b, &self.network, sampled.predictor.values());
            }
            self.batches.each_round(
                b,
                "step",
                |b, micro| self.episodes(b, micro),
                |b, micro, lane| self.replay.store(b, &self.batches, micro, lane, [self.path, self.rewards]),
            );
            self.replay.turn(b);
            for update in 0..self.updates {
                self.lateral.transpose(b, &self.network);
                self.batches.each_micro_batch(b, &format!("step.update.{update}"), |b, micro| {
                    self.update(b, micro, update);
                });
                self.network.weights.adam(b, hyper::RATE, &self.batches.optimizer());
                if update + 1 < self.updates {
                    self.batches.advance_powers(b, 1);
                }
            }
            self.batches.advance(b, 1);
        })
    }

    /// Rolls a micro-batch out. Nothing is dropped where actions are chosen.
    fn episodes(&self, b: &mut PlanBuilder, micro: Micro) {
        let Batches { clock, settings, .. } = self.batches;
        self.batches.gather(b, micro);
        let masked = self.masked(micro.rows);
        for t in 0..self.batches.sizes.horizon {
            masked.forward_all(b, &self.network, &self.rollout, t..t + 1, None, false);
            let mut choice = self.choice(micro.rows, t);
            (choice.first, choice.explore) = (word(micro.first), 1);
            b.call(choice, &[clock, self.rollout.logits(), settings, self.acquired_at, self.path]);
        }
        if let Some(sampled) = &self.sampled {
            self.beliefs(b, micro, sampled);
        }
    }

    /// What each answer changed in the belief: every state goes through the predicting branch once for each sample of
    /// dropout.
    fn beliefs(&self, b: &mut PlanBuilder, micro: Micro, of: &Sampled) {
        let s = &self.batches.sizes;
        let (rows, states) = (micro.rows, s.horizon + 1);
        for sample in 0..of.samples {
            // The updates' turns come first.
            of.dropout.draw_turn(b, &self.batches, micro, states, self.updates + sample);
            let dropout = of.dropout.multipliers();
            self.masked(rows).forward_all(b, &of.predictor, &of.tape, 0..states, dropout, true);
            let call = Believe {
                rows: word(rows * states),
                classes: word(s.classes),
                pitch: word(pitch(s.classes)),
                samples: word(of.samples),
                anew: u32::from(sample == 0),
            };
            b.call(call, &[of.tape.logits(), of.beliefs]);
        }
        let call = Confidence {
            rows: word(rows),
            steps: word(s.horizon),
            classes: word(s.classes),
            features: word(s.features),
        };
        b.call(call, &[of.beliefs, self.path, self.batches.costs, self.rewards]);
    }

    /// Multipliers for a micro-batch: each update of a training step has its own.
    fn draw_dropout(&self, b: &mut PlanBuilder, micro: Micro, update: usize) {
        let Some(multipliers) = self.dropout.multipliers() else { return };
        self.dropout.draw_turn(b, &self.batches, micro, 1, update);
        self.lateral.keep_side(b, multipliers, micro.rows);
    }

    /// A micro-batch's share of an update: the predictor's loss in the drawn states, and what the values of the actions are
    /// wrong by, go back together, each through its own branch.
    fn update(&self, b: &mut PlanBuilder, micro: Micro, update: usize) {
        let (s, rows) = (&self.batches.sizes, micro.rows);
        self.replay.draw(b, &self.batches, micro, update);
        self.draw_dropout(b, micro, update);
        let input = self.replay.expand(b, &self.batches, rows, self.input);
        let [now, next] = [0, rows].map(|first| Rows { first, count: rows });
        let dropout = self.dropout.multipliers();
        self.network.forward(b, 0, now, Some(input.at(0)), &self.tape, dropout);
        self.network.forward(b, 0, next, Some(input.at(rows)), &self.tape, None);
        self.network.averaged().forward(b, 0, now, Some(input.at(rows)), &self.target, None);
        let outputs = self.tape.logits();
        self.cross_entropy(b, rows, [outputs, self.replay.y, self.losses]);
        let errors = TdGrad {
            rows: word(rows),
            steps: word(s.horizon),
            features: word(s.features),
            classes: word(s.classes),
            pitch: word(self.outputs_pitch()),
            mask_pitch: word(pitch(s.features)),
            stop: u32::from(self.stops),
        };
        let Batches { costs, settings, .. } = self.batches;
        let drawn = [self.replay.taken, self.replay.masks, self.replay.returns];
        let buffers =
            [outputs, self.target.logits(), drawn[0], drawn[1], costs, settings, self.losses, drawn[2]];
        b.call(errors, &buffers);
        self.count(b, rows, self.replay.y);
        let error = MeanLoss {
            rows: word(rows),
            batch: word(rows),
            divisor: 1,
            stride: word(returns::LEN),
            at: word(returns::ERROR),
            ..MeanLoss::default()
        };
        for at in [counted::OBJECTIVE, counted::OWN] {
            let call = MeanLoss { word: word(at), ..error };
            b.call(call, &[self.replay.returns, self.replay.y, self.batches.metrics]);
        }
        self.backward(b, micro);
    }

    /// Adds the predictor's losses to the objective and its own mean.
    fn count(&self, b: &mut PlanBuilder, rows: usize, y: BufferId) {
        let lost = MeanLoss {
            rows: word(rows),
            batch: word(rows),
            divisor: 1,
            stride: word(losses::LEN),
            at: word(losses::LOSS),
            word: word(counted::OBJECTIVE),
            training: 1,
        };
        b.call(lost, &[self.losses, y, self.batches.metrics]);
    }

    /// From the gradient of the outputs to those of all weights, of the first rows of the tape and of the input.
    fn backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let (rows, batch) = (micro.rows, self.batches.sizes.batch);
        let at = Rows { first: 0, count: rows };
        self.network.backward_hidden(b, at, &self.tape, self.dropout.multipliers());
        self.network.backward_weights(b, rows, &self.tape, batch, micro.accumulate);
        self.network.backward_first(b, rows, self.input, &self.tape, batch, micro.accumulate);
        self.lateral.separate(b, &self.network);
    }

    /// The predicting branch alone, on masks of uniform cardinality. The gradient of the values is zero, so Adam leaves
    /// their branch.
    pub(super) fn warm_up_step(&self, b: &mut PlanBuilder) -> Section {
        let s = &self.batches.sizes;
        b.section("warm_up", |b| {
            self.lateral.transpose(b, &self.network);
            self.batches.each_micro_batch(b, "warm_up", |b, micro| {
                let (rows, mask_stride) = (micro.rows, pitch(s.features));
                self.batches.gather(b, micro);
                let masks = Masks::Uniform { stream: stream::CARDINALITY, most: 1.0 };
                self.batches.draw_masks(b, micro, (self.masks, mask_stride), masks);
                self.draw_dropout(b, micro, 0);
                let dense = Dense { x: self.batches.x, masks: self.masks, mask_stride, input: self.input };
                self.batches.inputs().expand(b, rows, 0, false, dense);
                let (at, dropout) = (Rows { first: 0, count: rows }, self.dropout.multipliers());
                self.network.forward(b, 0, at, Some(dense.at(0)), &self.tape, dropout);
                let outputs = self.tape.logits();
                self.cross_entropy(b, rows, [outputs, self.batches.y, self.losses]);
                self.lateral.ignore_side(b, outputs, rows);
                self.count(b, rows, self.batches.y);
                self.backward(b, micro);
            });
            self.network.weights.adam(b, hyper::RATE, &self.batches.optimizer());
            self.batches.advance(b, 1);
        })
    }

    fn masked(&self, rows: usize) -> Masked {
        let (inputs, x) = (self.batches.inputs(), self.batches.x);
        Masked { inputs, x, path: self.path, acquired_at: self.acquired_at, rows }
    }
}
