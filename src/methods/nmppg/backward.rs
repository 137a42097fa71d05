//! Backward: one pass through the predictor serves both gradients, then the policy's steps in
//! reverse. M = ∂J/∂m̃ is carried from step to step by `mask_carry`, S = ∂J/∂s by
//! `select_grad`.

use super::kernels::{MaskCarry, SelectGrad};
use super::plan::Layout;
use crate::engine::plan::{BufferId, PlanBuilder};
use crate::nn::{Inputs, Network, Rows, Tape, pitch, word};
use crate::train::Micro;

impl Layout {
    /// From the losses' unit gradients to the predictor's hidden layers, and to ∂ℓ_t/∂m, unscaled: `mask_carry` scales it by
    /// s_t q_t. With the relaxed gradient, the suffix sums of the first layer come after its input's gradient, which
    /// they would destroy.
    pub(super) fn predictor_backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let (net, tape) = (&self.predictor, &self.predictor_tape);
        let (steps, inputs) = (self.shape.steps + 1, self.predictor_inputs());
        let rows = Rows { first: 0, count: steps * micro.rows };
        net.backward_hidden(b, rows, tape, self.dropout.multipliers());
        if let Some(grad_input) = tape.grad_input.filter(|_| !self.shape.reinforced) {
            net.backward_input(b, rows, tape, grad_input);
            let buffers = [self.batches.x, grad_input, self.loss_mask_grad];
            inputs.mask_grad(b, [micro.rows, rows.count], buffers);
        }
        self.suffix(b, net, tape, micro, steps);
    }

    /// The policy's steps in reverse, to its hidden layers.
    pub(super) fn policy_backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let (rows, steps, relaxed) = (micro.rows, self.shape.steps, !self.shape.reinforced);
        let (net, tape) = (&self.policy, &self.policy_tape);
        // Where nothing goes through what the policy reads, no step needs a later one's way back: all at once, below.
        let through = relaxed && self.shape.through_policy;
        if relaxed {
            self.carry(b, rows, steps);
        }
        for t in (0..steps).rev() {
            self.select_grad(b, rows, t);
            let at = Rows { first: t * rows, count: rows };
            if through {
                net.backward_hidden(b, at, tape, None);
            }
            // Nothing was chosen before the first step: its mask needs no gradient.
            if t == 0 || !relaxed {
                continue;
            }
            if let Some(grad_input) = tape.grad_input.filter(|_| through) {
                net.backward_input(b, at, tape, grad_input);
            }
            self.carry(b, rows, t);
        }
        if !through {
            net.backward_hidden(b, Rows { first: 0, count: steps * rows }, tape, None);
        }
        self.suffix(b, net, tape, micro, steps);
    }

    /// Under hard masks, the first layer's gradient of some steps becomes its suffix sums.
    fn suffix(&self, b: &mut PlanBuilder, net: &Network, tape: &Tape, micro: Micro, steps: usize) {
        if !self.shape.soft {
            self.masked(self.policy_inputs(), micro.rows).suffix(b, net, tape, steps);
        }
    }

    /// ∇θ, and ∇φ scaled by 1/(B (k+1)), from the gradients of all layers' outputs.
    pub(super) fn weight_gradients(&self, b: &mut PlanBuilder, micro: Micro) {
        let (batch, steps) = (self.batches.sizes.batch, self.shape.steps);
        let policy = (&self.policy, self.policy_inputs(), self.policy_input);
        let predictor = (&self.predictor, self.predictor_inputs(), self.input);
        self.network_gradient(b, policy, &self.policy_tape, micro, [steps, batch]);
        let divisor = batch * (steps + 1);
        self.network_gradient(b, predictor, &self.predictor_tape, micro, [steps + 1, divisor]);
    }

    /// A network's weight gradient over some steps; the first layer's from the suffix sums under hard masks, a dense
    /// product under relaxed ones.
    fn network_gradient(
        &self,
        b: &mut PlanBuilder,
        (net, inputs, input): (&Network, Inputs, BufferId),
        tape: &Tape,
        micro: Micro,
        [steps, divisor]: [usize; 2],
    ) {
        let rows = steps * micro.rows;
        net.backward_weights(b, rows, tape, divisor, micro.accumulate);
        if self.shape.soft {
            net.backward_first(b, rows, input, tape, divisor, micro.accumulate);
        } else {
            self.masked(inputs, micro.rows).gradient(b, net, tape, steps, divisor, micro.accumulate);
        }
    }

    /// The predictor's weight gradient from the masks in the tape's first rows.
    pub(super) fn learn_masks(&self, b: &mut PlanBuilder, micro: Micro) {
        let (net, tape, divisor) = (&self.predictor, &self.predictor_tape, self.batches.sizes.batch);
        b.together(|b| {
            net.backward_weights(b, micro.rows, tape, divisor, micro.accumulate);
            net.backward_first(b, micro.rows, self.input, tape, divisor, micro.accumulate);
        });
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
                through: u32::from(self.shape.through_policy),
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
