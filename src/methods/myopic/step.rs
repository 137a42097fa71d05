//! The sections that train: a step of both networks forward and backward, and one of the pretraining.

use super::kernels::{Concrete, ConcreteGrad, hyper, stream};
use super::plan::{Layout, Successor};
use crate::engine::kernels::words::metrics as counted;
use crate::engine::kernels::{Loss, MaskGrad, MeanLoss};
use crate::engine::plan::{BufferId, PlanBuilder, Section};
use crate::nn::{Masked, Rows, pitch, word};
use crate::train::{Batches, Masks, Micro};

impl Layout {
    /// k one-step losses: the rollout goes on hard masks, each step's successor is what the predictor is tried on, and no
    /// gradient goes from one step to another.
    pub(super) fn training_step(&self, b: &mut PlanBuilder) -> Section {
        let layers = self.selector.stack.layers.len();
        b.section("step", |b| {
            b.together(|b| {
                self.selector.transpose(b, 1..layers);
                self.predictor.transpose(b, 0..layers);
            });
            self.batches.each_micro_batch(b, "step", |b, micro| {
                b.chain(micro.rows, 1, |b| {
                    self.batches.gather(b, micro);
                    self.forward(b, micro);
                    self.backward(b, micro);
                });
                self.count(b, micro);
                b.together(|b| self.weight_gradients(b, micro));
            });
            self.update(b, true);
        })
    }

    /// Adam of the predictor's group and, where it has one of its own and was trained, of the selector's.
    fn update(&self, b: &mut PlanBuilder, both: bool) {
        let (selector, predictor) = (self.selector.weights, self.predictor.weights);
        let mut groups = vec![(predictor, hyper::RATE)];
        if both && selector != predictor {
            groups.push((selector, hyper::SELECTOR_RATE));
        }
        self.batches.update(b, &groups);
    }

    fn forward(&self, b: &mut PlanBuilder, micro: Micro) {
        let (s, rows, steps) = (&self.batches.sizes, micro.rows, self.batches.sizes.horizon);
        let extent = self.successor.extent(steps);
        self.batches.draw_gumbel(b, micro, extent.noise, s.features, self.relaxed.gumbel);
        self.dropout.draw(b, &self.batches, micro, extent.states);
        let masked = self.masked(rows);
        let dense = self.relaxed.dense(self.batches.x, s.features);
        for t in 0..steps {
            masked.forward_all(b, &self.selector, &self.tape, t..t + 1, None, true);
            let buffers =
                [self.tape.logits(), self.relaxed.gumbel, self.acquired_at, self.relaxed.masks, self.path];
            let at = Concrete {
                rows: word(rows),
                step: word(t),
                first_row: word(t * rows),
                // Noise of its own behind that of the relaxed choices; straight-through there is but one.
                fresh_row: word((extent.noise - steps + t) * rows),
                sample: 1,
                ..Concrete::default()
            };
            self.concrete(b, at, buffers);
            if self.successor == Successor::Relaxed {
                self.batches.inputs().expand(b, rows, t, false, dense);
            }
        }
        let at = Rows { first: 0, count: extent.states * rows };
        let (tape, dropout) = (&self.relaxed.predictor, self.dropout.multipliers());
        match self.successor {
            Successor::Relaxed => self.predictor.forward(b, 0, at, Some(dense.at(0)), tape, dropout),
            Successor::Straight => {
                masked.forward_all(b, &self.predictor, tape, 0..extent.states, dropout, true);
            }
        }
        let loss = Loss {
            rows: word(at.count),
            batch: word(rows),
            classes: word(s.classes),
            pitch: word(pitch(s.classes)),
            weights: word(s.features),
            // A loss is that of a choice: knowing nothing has none.
            from_row: word((extent.states - steps) * rows),
            ..Loss::default()
        };
        let Batches { y, costs, none, .. } = self.batches;
        b.call(loss, &[tape.logits(), y, costs, self.relaxed.losses, none]);
    }

    /// Adds the losses of a micro-batch to the metrics.
    fn count(&self, b: &mut PlanBuilder, micro: Micro) {
        let steps = self.batches.sizes.horizon;
        let counted = MeanLoss {
            rows: word(self.successor.extent(steps).states * micro.rows),
            batch: word(micro.rows),
            divisor: word(steps),
            word: word(counted::OBJECTIVE),
            ..MeanLoss::default()
        };
        self.mean_loss(b, counted, self.relaxed.losses, true);
    }

    /// To the hidden layers of both networks.
    fn backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let rows = micro.rows;
        let steps = self.batches.sizes.horizon;
        let states = self.successor.extent(steps).states;
        let at = Rows { first: 0, count: states * rows };
        let tape = &self.relaxed.predictor;
        self.predictor.backward_hidden(b, at, tape, self.dropout.multipliers());
        // The successors are the last of the predictor's states.
        let successors = Rows { first: (states - steps) * rows, count: steps * rows };
        let grad_input = tape.grad_input.unwrap_or(self.batches.none);
        self.predictor.backward_input(b, successors, tape, grad_input);
        if self.successor == Successor::Straight {
            self.masked(rows).suffix(b, &self.predictor, tape, states);
        }
        self.backward_choices(b, rows, grad_input);
        let at = Rows { first: 0, count: steps * rows };
        self.selector.backward_hidden(b, at, &self.tape, None);
        self.masked(rows).suffix(b, &self.selector, &self.tape, steps);
    }

    /// The gradients of both networks' weights.
    fn weight_gradients(&self, b: &mut PlanBuilder, micro: Micro) {
        let (rows, accumulate) = (micro.rows, micro.accumulate);
        let steps = self.batches.sizes.horizon;
        let (divisor, states) = (self.batches.sizes.batch * steps, self.successor.extent(steps).states);
        let (tape, count) = (&self.relaxed.predictor, states * rows);
        self.predictor.backward_weights(b, count, tape, divisor, accumulate);
        match self.successor {
            Successor::Relaxed => {
                self.predictor.backward_first(b, count, self.relaxed.input, tape, divisor, accumulate);
            }
            Successor::Straight => {
                self.masked(rows).gradient(b, &self.predictor, tape, states, divisor, accumulate);
            }
        }
        self.selector.backward_weights(b, steps * rows, &self.tape, divisor, accumulate);
        self.masked(rows).gradient(b, &self.selector, &self.tape, steps, divisor, accumulate);
    }

    /// From the gradient of the successors' inputs to that of the logits that chose.
    fn backward_choices(&self, b: &mut PlanBuilder, rows: usize, grad_input: BufferId) {
        let s = &self.batches.sizes;
        b.call(
            MaskGrad {
                rows: word(s.horizon * rows),
                batch: word(rows),
                columns: word(s.columns),
                features: word(s.features),
                x_pitch: word(pitch(s.columns)),
                input_pitch: word(pitch(self.batches.inputs().width())),
                pitch: word(pitch(s.features)),
            },
            &[self.batches.groups, self.batches.x, grad_input, self.mask_grad],
        );
        b.call(
            ConcreteGrad {
                rows: word(rows),
                steps: word(s.horizon),
                features: word(s.features),
                pitch: word(pitch(s.features)),
            },
            &[
                self.tape.logits(),
                self.relaxed.masks,
                self.mask_grad,
                self.acquired_at,
                self.batches.settings,
            ],
        );
    }

    fn masked(&self, rows: usize) -> Masked {
        let (inputs, x) = (self.batches.inputs(), self.batches.x);
        Masked { inputs, x, path: self.path, acquired_at: self.acquired_at, rows }
    }

    /// The predictor alone, on masks of uniform cardinality. In a common group the selector's gradient stays zero, so Adam
    /// leaves it.
    pub(super) fn warm_up_step(&self, b: &mut PlanBuilder) -> Section {
        let s = &self.batches.sizes;
        b.section("warm_up", |b| {
            b.together(|b| self.predictor.transpose(b, 1..self.predictor.stack.layers.len()));
            self.batches.each_micro_batch(b, "warm_up", |b, micro| {
                let rows = micro.rows;
                let (at, tape) = (Rows { first: 0, count: rows }, &self.relaxed.predictor);
                b.chain(rows, 1, |b| {
                    self.batches.gather(b, micro);
                    let masks = Masks::Uniform { stream: stream::CARDINALITY, most: 1.0 };
                    self.batches.draw_masks(b, micro, (self.relaxed.masks, pitch(s.features)), masks);
                    self.dropout.draw(b, &self.batches, micro, 1);
                    let dense = self.relaxed.dense(self.batches.x, s.features);
                    self.batches.inputs().expand(b, rows, 0, false, dense);
                    self.predictor.forward(b, 0, at, Some(dense.at(0)), tape, self.dropout.multipliers());
                    let losses = [tape.logits(), self.batches.y, self.relaxed.losses];
                    self.batches.loss(b, [rows; 2], None, losses);
                    self.predictor.backward_hidden(b, at, tape, self.dropout.multipliers());
                });
                let counted = MeanLoss {
                    rows: word(rows),
                    batch: word(rows),
                    divisor: 1,
                    word: word(counted::OBJECTIVE),
                    ..MeanLoss::default()
                };
                self.mean_loss(b, counted, self.relaxed.losses, true);
                b.together(|b| {
                    let (input, accumulate) = (self.relaxed.input, micro.accumulate);
                    self.predictor.backward_weights(b, rows, tape, s.batch, accumulate);
                    self.predictor.backward_first(b, rows, input, tape, s.batch, accumulate);
                });
            });
            self.update(b, false);
        })
    }
}
