//! Backward: one pass through the predictor serves both gradients, then the policy's steps in
//! reverse. M = ∂J/∂m̃ is carried from step to step by `mask_carry`, S = ∂J/∂s by
//! `select_grad`.

use super::kernels::{MaskCarry, SelectGrad};
use super::plan::Layout;
use crate::engine::kernels as k;
use crate::engine::plan::{BufferId, PlanBuilder};
use crate::nn::{Inputs, Network, Rows, Tape, pitch, word};
use crate::train::Micro;

impl Layout {
    pub(super) fn backward(&self, b: &mut PlanBuilder, micro: Micro) {
        self.predictor_backward(b, micro);
        self.policy_backward(b, micro);
    }

    /// From the losses' unit gradients to ∇φ, scaled by 1/(B (k+1)), and to ∂ℓ_t/∂m, unscaled:
    /// `mask_carry` scales it by s_t q_t.
    fn predictor_backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let (s, net, tape) = (&self.batches.sizes, &self.predictor, &self.predictor_tape);
        let (steps, inputs) = (self.shape.steps + 1, self.predictor_inputs());
        let rows = Rows { first: 0, count: steps * micro.rows };
        net.backward_hidden(b, rows, tape, self.multipliers());
        net.backward_weights(b, rows.count, tape, s.batch * steps, micro.accumulate);
        if let Some(grad_input) = tape.grad_input.filter(|_| !self.shape.reinforced) {
            net.backward_input(b, rows, tape, grad_input);
            b.call(
                k::MaskGrad {
                    rows: word(rows.count),
                    batch: word(micro.rows),
                    columns: word(inputs.columns),
                    features: word(s.features),
                    x_pitch: word(pitch(inputs.row_columns)),
                    input_pitch: word(pitch(inputs.width())),
                    pitch: word(pitch(s.features)),
                },
                &[inputs.groups, self.batches.x, grad_input, self.loss_mask_grad],
            );
        }
        self.first_layer_backward(b, (net, inputs, self.input), tape, micro, steps, s.batch * steps);
    }

    /// The predictor's whole way back from the masks in the tape's first rows.
    pub(super) fn backward_masks(&self, b: &mut PlanBuilder, micro: Micro) {
        let (net, tape, divisor) = (&self.predictor, &self.predictor_tape, self.batches.sizes.batch);
        net.backward_hidden(b, Rows { first: 0, count: micro.rows }, tape, self.multipliers());
        net.backward_weights(b, micro.rows, tape, divisor, micro.accumulate);
        net.backward_first(b, micro.rows, self.input, tape, divisor, micro.accumulate);
    }

    /// The first layer's weight gradient over some steps: a suffix sum under hard masks, a dense product under relaxed
    /// ones. Destroys the gradient of its output in the first case.
    fn first_layer_backward(
        &self,
        b: &mut PlanBuilder,
        (net, inputs, input): (&Network, Inputs, BufferId),
        tape: &Tape,
        micro: Micro,
        steps: usize,
        divisor: usize,
    ) {
        if self.shape.soft {
            net.backward_first(b, steps * micro.rows, input, tape, divisor, micro.accumulate);
        } else {
            self.masked(inputs, micro.rows).backward(b, net, tape, steps, divisor, micro.accumulate);
        }
    }

    fn policy_backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let (rows, steps, reinforced) = (micro.rows, self.shape.steps, self.shape.reinforced);
        let (net, tape) = (&self.policy, &self.policy_tape);
        let all = Rows { first: 0, count: steps * rows };
        if !reinforced {
            self.carry(b, rows, steps);
        }
        for t in (0..steps).rev() {
            self.select_grad(b, rows, t);
            // Without M, no step's gradient depends on a later one's networks: all at once, below.
            if reinforced {
                continue;
            }
            let at = Rows { first: t * rows, count: rows };
            net.backward_hidden(b, at, tape, None);
            // Nothing was chosen before the first step: its mask needs no gradient.
            if let Some(grad_input) = tape.grad_input.filter(|_| t > 0) {
                net.backward_input(b, at, tape, grad_input);
                self.carry(b, rows, t);
            }
        }
        if reinforced {
            net.backward_hidden(b, all, tape, None);
        }
        let batch = self.batches.sizes.batch;
        net.backward_weights(b, all.count, tape, batch, micro.accumulate);
        let input = (net, self.policy_inputs(), self.policy_input);
        self.first_layer_backward(b, input, tape, micro, steps, batch);
    }

    fn select_grad(&self, b: &mut PlanBuilder, rows: usize, t: usize) {
        let features = self.batches.sizes.features;
        b.call(
            SelectGrad {
                rows: word(rows),
                step: word(t),
                steps: word(self.shape.steps),
                features: word(features),
                logit_pitch: word(pitch(features + 1)),
                mask_pitch: word(pitch(features)),
                relaxed: u32::from(!self.shape.reinforced),
            },
            &[
                self.policy_tape.logits(),
                self.masks,
                self.mask_grad,
                self.scalars,
                self.losses,
                self.batches.costs,
                self.batches.settings,
                self.path,
            ],
        );
    }

    /// M one step back, to step t.
    fn carry(&self, b: &mut PlanBuilder, rows: usize, t: usize) {
        let (s, inputs) = (&self.batches.sizes, self.policy_inputs());
        b.call(
            MaskCarry {
                rows: word(rows),
                step: word(t),
                steps: word(self.shape.steps),
                columns: word(inputs.columns),
                features: word(s.features),
                x_pitch: word(pitch(inputs.row_columns)),
                input_pitch: word(pitch(inputs.width())),
                pitch: word(pitch(s.features)),
            },
            &[
                inputs.groups,
                self.batches.x,
                self.policy_tape.grad_input.unwrap_or(self.batches.none),
                self.masks,
                self.scalars,
                self.loss_mask_grad,
                self.mask_grad,
            ],
        );
    }
}
