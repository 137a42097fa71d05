//! DIME's network, tape and sections: a training step forward and backward, the pretraining, the evaluation.

use super::config::Config;
use super::kernels::{Choose, ValueGrad, bounds, hyper, metrics, stream};
use crate::engine::kernels::words::{losses, metrics as counted};
use crate::engine::kernels::{Loss, MeanLoss};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::nn::{Dense, Masked, Network, Rows, Stack, Tape, Weights, pitch, word};
use crate::train::{Batches, ChunkRows, Dropout, Masks, Micro};

/// The method in a plan.
#[derive(Clone, Debug)]
pub struct Dime {
    pub(super) layout: Layout,
    pub(super) sections: Sections,
}

/// Its sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sections {
    pub step: Section,
    pub warm_up: Section,
    pub evaluate: [Section; 3],
    pub validate: Section,
}

/// Network and tape.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub batches: Batches,
    /// The predictor and the values: its outputs are the classes' logits, then v of each feature.
    pub network: Network,
    dropout: Dropout,
    acquired_at: BufferId,
    path: BufferId,
    losses: BufferId,
    bounds: BufferId,
    tape: Tape,
    /// The pretraining's masks, and the input that they leave.
    masks: BufferId,
    input: BufferId,
    chunk: Tape,
    chunk_bounds: BufferId,
}

impl Dime {
    pub(super) fn new(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        let layout = Layout::declare(b, batches.clone(), config);
        let step = layout.training_step(b);
        let warm_up = layout.warm_up_step(b);
        let (evaluate, validate) = batches.evaluations(b, |b, at| layout.greedy_chunk(b, at));
        Self { layout, sections: Sections { step, warm_up, evaluate, validate } }
    }
}

impl Layout {
    fn declare(b: &mut PlanBuilder, batches: Batches, config: &Config) -> Self {
        let s = batches.sizes.clone();
        let (rows, inputs) = (s.rows, batches.inputs().width());
        let all = rows * (s.horizon + 1);
        let stack = Stack::new(0, &[&[inputs][..], &config.hidden, &[s.classes + s.features]].concat());
        let weights = Weights::declare(b, "dime", stack.end(), 0);
        let network = Network::new(stack, weights, batches.none);
        let dropout = Dropout::declare(b, config.dropout, &config.hidden, all);
        let tape = Tape::declare(b, "network", &network.stack, [rows, all, 0]);
        let chunk = Tape::forward_only(b, "evaluation.network", &network.stack, [s.evaluation_rows; 2]);
        let mut words = |name: &str, len| b.buffer(name, Elem::U32, len, Scope::Lane);
        let acquired_at = words("acquired_at", rows * s.features);
        let path = words("path", rows * s.horizon);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        Self {
            losses: reals("losses", all * losses::LEN),
            bounds: reals("bounds", all * bounds::LEN),
            masks: reals("masks", rows * pitch(s.features)),
            input: reals("input", rows * pitch(inputs)),
            chunk_bounds: reals("evaluation.bounds", s.evaluation_rows * bounds::LEN),
            batches,
            network,
            dropout,
            acquired_at,
            path,
            tape,
            chunk,
        }
    }

    /// A rollout under hard masks: at each step the best feature for its cost, or one by chance; then the loss of every
    /// step and the error of every value, which go back through the hidden layers together.
    fn training_step(&self, b: &mut PlanBuilder) -> Section {
        let s = &self.batches.sizes;
        let steps = s.horizon;
        b.section("step", |b| {
            self.network.transpose(b, 1..self.network.stack.layers.len());
            self.batches.each_micro_batch(b, "step", |b, micro| {
                let (rows, all) = (micro.rows, (steps + 1) * micro.rows);
                self.batches.gather(b, micro);
                self.dropout.draw(b, &self.batches, micro, steps + 1);
                let masked = self.masked(rows);
                for t in 0..=steps {
                    masked.forward_all(
                        b,
                        &self.network,
                        &self.tape,
                        t..t + 1,
                        self.dropout.multipliers(),
                        true,
                    );
                    if t < steps {
                        self.choose(b, micro, t);
                    }
                }
                self.losses(b, rows, steps);
                let divisor = s.batch * (steps + 1);
                self.backward(b, all, divisor, micro.accumulate);
                masked.backward(b, &self.network, &self.tape, steps + 1, divisor, micro.accumulate);
            });
            self.network.weights.adam(b, hyper::RATE, &self.batches.optimizer());
            self.batches.advance(b, 1);
        })
    }

    /// The predictor alone, on masks of uniform cardinality. The gradient of the values' outputs is zero, so Adam leaves
    /// them.
    fn warm_up_step(&self, b: &mut PlanBuilder) -> Section {
        let s = &self.batches.sizes;
        b.section("warm_up", |b| {
            self.network.transpose(b, 1..self.network.stack.layers.len());
            self.batches.each_micro_batch(b, "warm_up", |b, micro| {
                let rows = micro.rows;
                self.batches.gather(b, micro);
                let masks = Masks::Uniform { stream: stream::CARDINALITY, most: 1.0 };
                self.batches.draw_masks(b, micro, (self.masks, pitch(s.features)), masks);
                self.dropout.draw(b, &self.batches, micro, 1);
                let (x, masks, input) = (self.batches.x, self.masks, self.input);
                let dense = Dense { x, masks, mask_stride: pitch(s.features), input };
                self.batches.inputs().expand(b, rows, 0, false, dense);
                let (at, dropout) = (Rows { first: 0, count: rows }, self.dropout.multipliers());
                self.network.forward(b, 0, at, Some(dense.at(0)), &self.tape, dropout);
                self.losses(b, rows, 0);
                self.backward(b, rows, s.batch, micro.accumulate);
                self.network.backward_first(b, rows, input, &self.tape, s.batch, micro.accumulate);
            });
            self.network.weights.adam(b, hyper::RATE, &self.batches.optimizer());
            self.batches.advance(b, 1);
        })
    }

    fn masked(&self, rows: usize) -> Masked {
        let (inputs, x) = (self.batches.inputs(), self.batches.x);
        Masked { inputs, x, path: self.path, acquired_at: self.acquired_at, rows }
    }

    /// The choice of a step of a micro-batch.
    fn choose(&self, b: &mut PlanBuilder, micro: Micro, step: usize) {
        let at = Choose {
            rows: word(micro.rows),
            step: word(step),
            first_row: word(step * micro.rows),
            first: word(micro.first),
            explore: 1,
            ..self.choice()
        };
        let Batches { clock, costs, settings, .. } = self.batches;
        let outputs = self.tape.logits();
        b.call(at, &[clock, outputs, costs, settings, self.acquired_at, self.path, self.bounds]);
    }

    fn choice(&self) -> Choose {
        let s = &self.batches.sizes;
        Choose {
            features: word(s.features),
            classes: word(s.classes),
            pitch: word(self.outputs_pitch()),
            ..Choose::default()
        }
    }

    fn outputs_pitch(&self) -> usize {
        pitch(self.batches.sizes.classes + self.batches.sizes.features)
    }

    /// The losses of all rows of a tape of so many steps, and the errors of its values; the outputs become the gradient.
    fn losses(&self, b: &mut PlanBuilder, rows: usize, steps: usize) {
        let (s, all) = (&self.batches.sizes, (steps + 1) * rows);
        let outputs = self.tape.logits();
        self.cross_entropy(b, [rows, all], [outputs, self.batches.y, self.losses]);
        let grad = ValueGrad {
            rows: word(rows),
            steps: word(steps),
            features: word(s.features),
            classes: word(s.classes),
            pitch: word(self.outputs_pitch()),
        };
        b.call(grad, &[outputs, self.path, self.losses, self.bounds]);
        let mean =
            MeanLoss { rows: word(all), batch: word(rows), divisor: word(steps + 1), ..MeanLoss::default() };
        let loss = MeanLoss { stride: word(losses::LEN), at: word(losses::LOSS), training: 1, ..mean };
        let error = MeanLoss { stride: word(bounds::LEN), at: word(bounds::ERROR), ..mean };
        let to = [self.batches.y, self.batches.metrics];
        for (call, from, at) in [
            (loss, self.losses, counted::OBJECTIVE),
            (error, self.bounds, counted::OBJECTIVE),
            (error, self.bounds, counted::OWN),
        ] {
            b.call(MeanLoss { word: word(at), ..call }, &[from, to[0], to[1]]);
        }
    }

    /// The predictor's loss of `rows` rows, whose labels repeat after `batch`; its outputs are the first.
    fn cross_entropy(&self, b: &mut PlanBuilder, [batch, rows]: [usize; 2], buffers: [BufferId; 3]) {
        let s = &self.batches.sizes;
        let [outputs, y, losses] = buffers;
        let loss = Loss {
            rows: word(rows),
            batch: word(batch),
            classes: word(s.classes),
            pitch: word(self.outputs_pitch()),
            weights: word(s.features),
            ..Loss::default()
        };
        b.call(loss, &[outputs, y, self.batches.costs, losses, self.batches.none]);
    }

    /// From the gradient of the outputs to those of all layers above the first.
    fn backward(&self, b: &mut PlanBuilder, rows: usize, divisor: usize, accumulate: bool) {
        let at = Rows { first: 0, count: rows };
        self.network.backward_hidden(b, at, &self.tape, self.dropout.multipliers());
        self.network.backward_weights(b, rows, &self.tape, divisor, accumulate);
    }

    /// A chunk to the horizon, by the values alone: the predictor's loss before anything is known and after each
    /// acquisition, which decides what is kept and when an ε is over.
    fn greedy_chunk(&self, b: &mut PlanBuilder, at: ChunkRows) {
        let (s, chunk) = (&self.batches.sizes, &self.batches.chunk);
        let (masked, network) = (self.batches.masked_chunk(self.batches.inputs()), self.network.averaged());
        let (rows, outputs) = (s.evaluation_rows, self.chunk.logits());
        let along = MeanLoss {
            rows: word(rows),
            batch: word(rows),
            divisor: word(s.horizon + 1),
            stride: word(losses::LEN),
            at: word(losses::LOSS),
            word: word(metrics::ALONG),
            training: 0,
        };
        let Batches { clock, costs, settings, .. } = self.batches;
        for t in 0..=s.horizon {
            masked.forward_all(b, &network, &self.chunk, t..t + 1, None, false);
            if t < s.horizon {
                let step = Choose { rows: word(rows), step: word(t), ..self.choice() };
                let to = [chunk.acquired_at, chunk.path, self.chunk_bounds];
                b.call(step, &[clock, outputs, costs, settings, to[0], to[1], to[2]]);
            }
            self.cross_entropy(b, [rows; 2], [outputs, chunk.y, chunk.losses]);
            b.call(along, &[chunk.losses, chunk.y, chunk.metrics]);
        }
        self.batches.tally(b, at, s.horizon, 0);
    }
}
