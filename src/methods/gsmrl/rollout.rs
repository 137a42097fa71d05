//! A training step of policy and critic: a rollout, and several passes over what was kept of it; and the greedy policy.

use super::kernels::{Act, Reward, hyper, metrics, stream};
use super::plan::{Kept, Layout};
use super::surrogate::{State, mean_of};
use crate::engine::kernels::words::{losses, metrics as counted};
use crate::engine::kernels::{Advantage, ClippedChoice, MeanLoss, ValueError, kept};
use crate::engine::plan::{PlanBuilder, Section};
use crate::nn::{Dense, Masked, Operand, Rows, pitch, word};
use crate::train::{Batches, ChunkRows, Masks, Micro};

impl Layout {
    /// A rollout of the policy, which the predictor learns from; then several updates of policy and critic on its steps.
    pub(super) fn training_step(&self, b: &mut PlanBuilder) -> Section {
        let batches = &self.batches;
        let optimizer = batches.optimizer();
        b.section("step", |b| {
            self.predictor.transpose(b, 1..self.predictor.stack.layers.len());
            batches.each_micro_batch(b, "step", |b, micro| {
                self.roll_out(b, micro);
                self.judge_steps(b, micro);
            });
            self.predictor.weights.adam(b, hyper::RATE, &optimizer);
            for pass in 0..self.passes {
                for network in [&self.policy, &self.critic] {
                    network.transpose(b, 1..network.stack.layers.len());
                }
                let name = format!("pass.{pass}");
                let is_last = pass + 1 == self.passes;
                batches.each_micro_batch(b, &name, |b, micro| self.go_over(b, micro, is_last));
                for network in [&self.policy, &self.critic] {
                    network.weights.clip(b, hyper::NORM, self.factor, &optimizer);
                    network.weights.adam(b, hyper::RATE, &optimizer);
                }
                if !is_last {
                    batches.advance_powers(b, 0b1100);
                }
            }
            batches.advance(b, 0b1110);
        })
    }

    /// State after state: what the surrogate says of it, what the policy makes of that, what is done.
    fn roll_out(&self, b: &mut PlanBuilder, micro: Micro) {
        let (s, rows) = (&self.batches.sizes, micro.rows);
        let Batches { x, .. } = self.batches;
        let Kept { input, acquired_at, path, steps } = self.kept(micro);
        self.batches.gather(b, micro);
        self.batches.draw_gumbel(b, micro, s.horizon, s.features + 1, self.gumbel);
        self.believe_first(b, false, rows, x, self.prior_input, &self.prior_tape);
        for step in 0..=s.horizon {
            let state = State {
                flow: &self.flow,
                tape: &self.flow_tape,
                prior: self.prior_tape.logits(),
                x,
                masks: self.masks,
                acquired_at,
                input,
                doubts: self.doubts,
                rows,
                step,
                is_first: step == 0,
                is_last: step == s.horizon,
            };
            self.read_state(b, state);
            if step < s.horizon {
                let at = Rows { first: step * rows, count: rows };
                let from = Some(Operand::at(input, step * rows));
                self.policy.forward(b, 0, at, from, &self.policy_tape, None);
                let act = Act {
                    rows: word(rows),
                    step: word(step),
                    features: word(s.features),
                    pitch: word(pitch(s.features + 1)),
                };
                b.call(act, &[self.policy_tape.logits(), self.gumbel, acquired_at, path, steps]);
            }
        }
    }

    /// The predictor in every state: its loss is the stop's reward, and it learns where the rollout has been. Then the
    /// advantage of every step.
    fn judge_steps(&self, b: &mut PlanBuilder, micro: Micro) {
        let (s, rows) = (&self.batches.sizes, micro.rows);
        let (steps, states) = (s.horizon, (s.horizon + 1) * rows);
        let Batches { x, y, costs, settings, metrics: sums, .. } = self.batches;
        let kept = self.kept(micro);
        let (inputs, tape) = (self.inputs(), &self.predictor_tape);
        let masked = Masked { inputs, x, path: kept.path, acquired_at: kept.acquired_at, rows };
        // Only where somebody has been: stops are final.
        let visited = Some((kept.steps, kept::LEN, kept::LIVE));
        masked.forward_all(b, &self.predictor, tape, 0..steps + 1, None, true);
        self.batches.loss(b, [rows, states], visited, [tape.logits(), y, self.losses]);
        let all = Rows { first: 0, count: steps * rows };
        let from = Some(Operand::at(kept.input, 0));
        self.critic.forward(b, 0, all, from, &self.critic_tape, None);
        let reward = Reward { rows: word(rows), steps: word(steps), features: word(s.features) };
        b.call(reward, &[kept.path, self.doubts, self.losses, costs, settings, kept.steps]);
        let advantage = Advantage {
            rows: word(rows),
            steps: word(steps),
            pitch: word(pitch(1)),
            discount: word(hyper::DISCOUNT),
            decay: word(hyper::TRACE),
        };
        b.call(advantage, &[self.critic_tape.logits(), settings, kept.steps]);

        let dropout = self.dropout.multipliers();
        if dropout.is_some() {
            // What is stopped with has none, what is learned from has.
            self.dropout.draw(b, &self.batches, micro, steps + 1);
            masked.forward_all(b, &self.predictor, tape, 0..steps + 1, dropout, true);
            self.batches.loss(b, [rows, states], visited, [tape.logits(), y, self.losses]);
        }
        let divisor = s.batch * (steps + 1);
        self.predictor.backward_hidden(b, Rows { first: 0, count: states }, tape, dropout);
        self.predictor.backward_weights(b, states, tape, divisor, micro.accumulate);
        masked.backward(b, &self.predictor, tape, steps + 1, divisor, micro.accumulate);

        let cost = mean_of(steps * rows, rows, kept::LEN, kept::COST);
        b.call(MeanLoss { word: word(counted::OBJECTIVE), ..cost }, &[kept.steps, y, sums]);
        let loss = mean_of(states, rows, losses::LEN, losses::LOSS);
        let loss = MeanLoss { divisor: word(steps + 1), word: word(metrics::ALONG), training: 1, ..loss };
        b.call(loss, &[self.losses, y, sums]);
    }

    /// One pass over what was kept: the gradients of policy and critic.
    fn go_over(&self, b: &mut PlanBuilder, micro: Micro, is_last: bool) {
        let (s, rows) = (&self.batches.sizes, micro.rows);
        let (steps, divisor) = (s.horizon * rows, s.batch * s.horizon);
        let Batches { y, settings, metrics: sums, .. } = self.batches;
        let kept = self.kept(micro);
        let (all, from) = (Rows { first: 0, count: steps }, Some(Operand::at(kept.input, 0)));
        for (network, tape) in [(&self.policy, &self.policy_tape), (&self.critic, &self.critic_tape)] {
            network.forward(b, 0, all, from, tape, None);
        }
        let choice = ClippedChoice {
            rows: word(steps),
            batch: word(rows),
            features: word(s.features),
            pitch: word(pitch(s.features + 1)),
            clip: word(hyper::CLIP),
            bonus: word(hyper::BONUS),
        };
        let logits = self.policy_tape.logits();
        b.call(choice, &[logits, kept.acquired_at, kept.path, settings, kept.steps]);
        let value = ValueError { rows: word(steps), pitch: word(pitch(1)) };
        b.call(value, &[self.critic_tape.logits(), kept.steps]);
        for (network, tape) in [(&self.policy, &self.policy_tape), (&self.critic, &self.critic_tape)] {
            network.backward_hidden(b, all, tape, None);
            network.backward_weights(b, steps, tape, divisor, micro.accumulate);
            network.backward_first(b, steps, kept.input, tape, divisor, micro.accumulate);
        }
        if is_last {
            for (at, to) in [(kept::ENTROPY, counted::OWN_TOO), (kept::ERROR, metrics::VALUE_ERROR)] {
                let mean = mean_of(steps, rows, kept::LEN, at);
                let mean = MeanLoss { divisor: word(s.horizon), word: word(to), ..mean };
                b.call(mean, &[kept.steps, y, sums]);
            }
        }
    }

    /// The greedy policy on a chunk, then the predictor on what was acquired.
    pub(super) fn greedy_chunk(&self, b: &mut PlanBuilder, at: ChunkRows) {
        let (s, chunk, own) = (&self.batches.sizes, &self.batches.chunk, &self.chunk);
        let rows = s.evaluation_rows;
        let (flow, policy, predictor) =
            (self.flow.averaged(), self.policy.averaged(), self.predictor.averaged());
        self.believe_first(b, true, rows, chunk.x, own.prior_input, &own.prior);
        for step in 0..s.horizon {
            let state = State {
                flow: &flow,
                tape: &own.flow,
                prior: own.prior.logits(),
                x: chunk.x,
                masks: own.masks,
                acquired_at: chunk.acquired_at,
                input: own.input,
                doubts: own.doubts,
                rows,
                step: 0,
                is_first: step == 0,
                is_last: false,
            };
            self.read_state(b, state);
            let (all, from) = (Rows { first: 0, count: rows }, Some(Operand::at(own.input, 0)));
            policy.forward(b, 0, all, from, &own.policy, None);
            self.batches.greedy(b, step, own.policy.logits(), true);
        }
        let masked = self.batches.masked_chunk(self.inputs());
        masked.forward_all(b, &predictor, &own.predictor, 0..s.horizon + 1, None, false);
        self.batches.loss(b, [rows; 2], None, [own.predictor.logits(), chunk.y, chunk.losses]);
        self.batches.tally(b, at, s.horizon, 0);
    }

    /// The predictor on a chunk under masks of uniform cardinality: what there is to see before anything is acquired.
    pub(super) fn masked_chunk(&self, b: &mut PlanBuilder, at: ChunkRows) {
        let (s, chunk, own) = (&self.batches.sizes, &self.batches.chunk, &self.chunk);
        let rows = s.evaluation_rows;
        let micro = Micro { first: at.first, rows, accumulate: false };
        let masks = Masks::Uniform { stream: stream::CARDINALITY, most: 1.0 };
        let mask_stride = pitch(s.features);
        self.batches.draw_masks(b, micro, (own.masks, mask_stride), masks);
        let dense = Dense { x: chunk.x, masks: own.masks, mask_stride, input: own.prior_input };
        self.inputs().expand(b, rows, 0, false, dense);
        let all = Rows { first: 0, count: rows };
        self.predictor.averaged().forward(b, 0, all, Some(dense.at(0)), &own.predictor, None);
        self.batches.loss(b, [rows; 2], None, [own.predictor.logits(), chunk.y, chunk.losses]);
        self.batches.tally(b, at, 0, 0);
    }
}
