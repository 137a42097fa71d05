//! Backward: one pass through the predictor serves both gradients, then the policy's steps in
//! reverse. M = ∂J/∂m̃ is carried from step to step by `mask_carry`, S = ∂J/∂s by
//! `select_grad`.

use super::kernels::{MaskCarry, SelectGrad};
use super::layout::{Layout, Tape, word};
use super::rollout::Micro;
use crate::engine::kernels as k;
use crate::engine::plan::PlanBuilder;
use crate::nn::{Net, Operand, pitch};

impl Layout {
    pub(super) fn backward(&self, b: &mut PlanBuilder, micro: Micro) {
        self.predictor_backward(b, micro);
        self.policy_backward(b, micro);
    }

    /// From the losses' unit gradients to ∇φ, scaled by 1/(B (k+1)), and to ∂ℓ_t/∂m, unscaled:
    /// `mask_carry` scales it by s_t q_t.
    fn predictor_backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.sizes;
        let (net, tape) = (&self.predictor, &self.predictor_tape);
        let rows = (s.steps + 1) * micro.rows;
        let divisor = s.batch * (s.steps + 1);
        self.hidden_backward(b, micro, rows, divisor);
        if !s.scored {
            net.backward_input(b, 0, rows, tape.grad1.into(), tape.grad_input.into(), None, None);
            b.call(
                k::MaskGrad {
                    rows: word(rows),
                    batch: word(micro.rows),
                    columns: word(s.columns),
                    features: word(s.features),
                    x_pitch: word(pitch(s.columns)),
                    input_pitch: word(pitch(s.inputs())),
                    pitch: word(pitch(s.features)),
                },
                &[self.groups, self.x, tape.grad_input, self.loss_mask_grad],
            );
        }
        self.first_layer_backward(b, net, tape, micro, s.steps + 1, divisor);
    }

    /// The predictor's layers above the first.
    fn hidden_backward(&self, b: &mut PlanBuilder, micro: Micro, rows: usize, divisor: usize) {
        let (net, tape) = (&self.predictor, &self.predictor_tape);
        let (hidden1, hidden2) = (Operand::from(tape.hidden1), Operand::from(tape.hidden2));
        net.backward_weight(b, 2, rows, tape.hidden2, tape.logits, divisor, micro.accumulate);
        net.backward_input(
            b,
            2,
            rows,
            tape.logits.into(),
            tape.grad2.into(),
            Some(hidden2),
            self.multipliers(1),
        );
        net.backward_weight(b, 1, rows, tape.hidden1, tape.grad2, divisor, micro.accumulate);
        net.backward_input(
            b,
            1,
            rows,
            tape.grad2.into(),
            tape.grad1.into(),
            Some(hidden1),
            self.multipliers(0),
        );
    }

    pub(super) fn warm_up_backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let divisor = self.sizes.batch;
        self.hidden_backward(b, micro, micro.rows, divisor);
        let grad1 = self.predictor_tape.grad1;
        self.predictor.backward_weight(b, 0, micro.rows, self.input, grad1, divisor, micro.accumulate);
    }

    /// The first layer's weight gradient over the steps that were kept: a suffix sum under hard
    /// masks, a dense product under relaxed ones. Destroys `grad1` in the first case.
    fn first_layer_backward(
        &self,
        b: &mut PlanBuilder,
        net: &Net,
        tape: &Tape,
        micro: Micro,
        steps: usize,
        divisor: usize,
    ) {
        let s = &self.sizes;
        if s.soft {
            net.backward_weight(b, 0, steps * micro.rows, self.input, tape.grad1, divisor, micro.accumulate);
            return;
        }
        let layer = net.mlp.layers[0];
        let hidden_pitch = word(pitch(layer.outputs));
        b.call(
            k::EmbedSuffix { rows: word(micro.rows), steps: word(steps), pitch: hidden_pitch },
            &[tape.grad1],
        );
        b.call(
            k::EmbedGrad {
                rows: word(micro.rows),
                steps: word(steps),
                columns: word(s.columns),
                features: word(s.features),
                hidden_pitch,
                x_pitch: word(pitch(s.columns)),
                weight: word(layer.weight),
                bias: word(layer.bias),
                accumulate: u32::from(micro.accumulate),
                divisor: word(divisor),
            },
            &[self.groups, self.x, self.acquired_at, tape.grad1, net.grad],
        );
    }

    fn policy_backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.sizes;
        let rows = micro.rows;
        let (net, tape) = (&self.policy, &self.policy_tape);
        let all = s.steps * rows;
        // Through the networks' layers above the first, for so many rows of the tape.
        let hidden = |b: &mut PlanBuilder, first: usize, rows: usize| {
            let at = |buffer| Operand::at(buffer, first);
            net.backward_input(b, 2, rows, at(tape.logits), at(tape.grad2), Some(at(tape.hidden2)), None);
            net.backward_input(b, 1, rows, at(tape.grad2), at(tape.grad1), Some(at(tape.hidden1)), None);
        };
        if !s.scored {
            self.carry(b, rows, s.steps);
        }
        for t in (0..s.steps).rev() {
            b.call(
                SelectGrad {
                    rows: word(rows),
                    step: word(t),
                    steps: word(s.steps),
                    features: word(s.features),
                    logit_pitch: word(pitch(s.features + 1)),
                    mask_pitch: word(pitch(s.features)),
                    relaxed: u32::from(!s.scored),
                },
                &[
                    tape.logits,
                    self.masks,
                    self.mask_grad,
                    self.scalars,
                    self.losses,
                    self.costs,
                    self.settings,
                    self.path,
                ],
            );
            // Without M, no step's gradient depends on a later one's networks: all at once, below.
            if s.scored {
                continue;
            }
            hidden(b, t * rows, rows);
            // Nothing was chosen before the first step: its mask needs no gradient.
            if t > 0 {
                let grad1 = Operand::at(tape.grad1, t * rows);
                net.backward_input(b, 0, rows, grad1, tape.grad_input.into(), None, None);
                self.carry(b, rows, t);
            }
        }
        if s.scored {
            hidden(b, 0, all);
        }
        net.backward_weight(b, 2, all, tape.hidden2, tape.logits, s.batch, micro.accumulate);
        net.backward_weight(b, 1, all, tape.hidden1, tape.grad2, s.batch, micro.accumulate);
        self.first_layer_backward(b, net, tape, micro, s.steps, s.batch);
    }

    /// M one step back, to step t.
    fn carry(&self, b: &mut PlanBuilder, rows: usize, t: usize) {
        let s = &self.sizes;
        b.call(
            MaskCarry {
                rows: word(rows),
                step: word(t),
                steps: word(s.steps),
                columns: word(s.columns),
                features: word(s.features),
                x_pitch: word(pitch(s.columns)),
                input_pitch: word(pitch(s.inputs())),
                pitch: word(pitch(s.features)),
            },
            &[
                self.groups,
                self.x,
                self.policy_tape.grad_input,
                self.masks,
                self.scalars,
                self.loss_mask_grad,
                self.mask_grad,
            ],
        );
    }
}
