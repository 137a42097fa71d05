//! GDFS's networks, tape and sections: a training step forward and backward, the pretraining, the evaluation.

use super::config::Config;
use super::kernels::{Concrete, ConcreteGrad, hyper, metrics, stream};
use crate::engine::kernels::words::{losses, metrics as counted};
use crate::engine::kernels::{Greedy, MaskGrad, MeanLoss};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::nn::{Dense, Masked, Network, Rows, Stack, Tape, Weights, pitch, word};
use crate::train::{Batches, ChunkRows, Dropout, Masks, Micro};

/// The method in a plan.
#[derive(Clone, Debug)]
pub struct Gdfs {
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

/// Relaxed masks and what the predictor makes of them.
#[derive(Clone, Debug)]
struct Relaxed {
    gumbel: BufferId,
    masks: BufferId,
    input: BufferId,
    losses: BufferId,
    predictor: Tape,
}

/// Networks and tape.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub batches: Batches,
    pub selector: Network,
    pub predictor: Network,
    dropout: Dropout,
    acquired_at: BufferId,
    path: BufferId,
    mask_grad: BufferId,
    tape: Tape,
    relaxed: Relaxed,
    /// In an evaluation: the selector, the predictor under hard masks, and under relaxed ones.
    chunk_selector: Tape,
    chunk_predictor: Tape,
    chunk_relaxed: Relaxed,
    scratch: BufferId,
}

impl Relaxed {
    fn declare(
        b: &mut PlanBuilder,
        name: &str,
        batches: &Batches,
        net: &Stack,
        [rows, steps]: [usize; 2],
    ) -> Self {
        let (d, inputs) = (pitch(batches.sizes.features), pitch(batches.inputs().width()));
        let all = rows * steps;
        let trained = name.is_empty();
        let predictor = if trained {
            Tape::declare(b, "predictor", net, [rows, all, all])
        } else {
            Tape::forward_only(b, &format!("{name}predictor"), net, [rows, all])
        };
        let mut reals = |what: &str, len| b.buffer(format!("{name}{what}"), Elem::F32, len, Scope::Lane);
        Self {
            gumbel: reals("gumbel", 2 * all * d),
            masks: reals("masks", all * d),
            input: reals("input", all * inputs),
            losses: reals("losses", all * losses::LEN),
            predictor,
        }
    }

    fn dense(&self, x: BufferId, features: usize) -> Dense {
        Dense { x, masks: self.masks, mask_stride: pitch(features), input: self.input }
    }
}

impl Gdfs {
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
        let (rows, steps, inputs) = (s.rows, s.horizon, batches.inputs().width());
        let widths = |outputs| [&[inputs][..], &config.hidden, &[outputs]].concat();
        // One loss, one Adam: both networks are in one group.
        let selector = Stack::new(0, &widths(s.features));
        let predictor = Stack::new(selector.end(), &widths(s.classes));
        let weights = Weights::declare(b, "gdfs", predictor.end(), 0);
        let [selector, predictor] =
            [selector, predictor].map(|stack| Network::new(stack, weights, batches.none));

        let dropout = Dropout::declare(b, config.dropout, &config.hidden, rows * steps);
        let mask_grad = b.buffer("mask_grad", Elem::F32, rows * steps * pitch(s.features), Scope::Lane);
        let tape = Tape::declare(b, "selector", &selector.stack, [rows, rows * steps, 0]);
        let relaxed = Relaxed::declare(b, "", &batches, &predictor.stack, [rows, steps]);
        let chunk_rows = s.evaluation_rows;
        let mut forward = |name: &str, stack| Tape::forward_only(b, name, stack, [chunk_rows; 2]);
        let chunk_selector = forward("evaluation.selector", &selector.stack);
        let chunk_predictor = forward("evaluation.predictor", &predictor.stack);
        let chunk_relaxed =
            Relaxed::declare(b, "evaluation.soft.", &batches, &predictor.stack, [chunk_rows, 1]);
        let mut words = |name: &str, len| b.buffer(name, Elem::U32, len, Scope::Lane);
        Self {
            acquired_at: words("acquired_at", rows * s.features),
            path: words("path", rows * steps),
            // What a relaxed choice also samples is not what an evaluation asks.
            scratch: words("evaluation.scratch", chunk_rows),
            batches,
            selector,
            predictor,
            dropout,
            mask_grad,
            tape,
            relaxed,
            chunk_selector,
            chunk_predictor,
            chunk_relaxed,
        }
    }

    fn mean_loss(&self, b: &mut PlanBuilder, p: MeanLoss, losses: BufferId, training: bool) {
        let (y, to) = if training {
            (self.batches.y, self.batches.metrics)
        } else {
            (self.batches.chunk.y, self.batches.chunk.metrics)
        };
        let (stride, at) = (word(losses::LEN), word(losses::LOSS));
        b.call(MeanLoss { stride, at, training: u32::from(training), ..p }, &[losses, y, to]);
    }

    /// k one-step losses: the rollout goes on hard masks, each step's relaxed successor is what the predictor is
    /// tried on, and no gradient goes from one step to another.
    fn training_step(&self, b: &mut PlanBuilder) -> Section {
        let layers = self.selector.stack.layers.len();
        b.section("step", |b| {
            self.selector.transpose(b, 1..layers);
            self.predictor.transpose(b, 0..layers);
            self.batches.each_micro_batch(b, "step", |b, micro| {
                self.batches.gather(b, micro);
                self.forward(b, micro);
                self.backward(b, micro);
            });
            self.predictor.weights.adam(b, hyper::RATE, &self.batches.optimizer());
            self.batches.advance(b, 1);
        })
    }

    fn forward(&self, b: &mut PlanBuilder, micro: Micro) {
        let (s, rows) = (&self.batches.sizes, micro.rows);
        let (steps, all) = (s.horizon, s.horizon * rows);
        self.batches.draw_gumbel(b, micro, 2 * steps, s.features, self.relaxed.gumbel);
        self.dropout.draw(b, &self.batches, micro, steps);
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
                fresh_row: word((steps + t) * rows),
                sample: 1,
                ..Concrete::default()
            };
            self.concrete(b, at, buffers);
            self.batches.inputs().expand(b, rows, t, false, dense);
        }
        let at = Rows { first: 0, count: all };
        let tape = &self.relaxed.predictor;
        self.predictor.forward(b, 0, at, Some(dense.at(0)), tape, self.dropout.multipliers());
        self.batches.loss(b, [rows, all], None, [tape.logits(), self.batches.y, self.relaxed.losses]);
        let counted = MeanLoss {
            rows: word(all),
            batch: word(rows),
            divisor: word(steps),
            word: word(counted::OBJECTIVE),
            ..MeanLoss::default()
        };
        self.mean_loss(b, counted, self.relaxed.losses, true);
    }

    fn backward(&self, b: &mut PlanBuilder, micro: Micro) {
        let (s, rows) = (&self.batches.sizes, micro.rows);
        let (steps, at) = (s.horizon, Rows { first: 0, count: s.horizon * rows });
        let divisor = s.batch * steps;
        let tape = &self.relaxed.predictor;
        self.predictor.backward_hidden(b, at, tape, self.dropout.multipliers());
        self.predictor.backward_weights(b, at.count, tape, divisor, micro.accumulate);
        self.predictor.backward_first(b, at.count, self.relaxed.input, tape, divisor, micro.accumulate);
        let grad_input = tape.grad_input.unwrap_or(self.batches.none);
        self.predictor.backward_input(b, at, tape, grad_input);
        b.call(
            MaskGrad {
                rows: word(at.count),
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
                steps: word(steps),
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
        self.selector.backward_hidden(b, at, &self.tape, None);
        self.selector.backward_weights(b, at.count, &self.tape, divisor, micro.accumulate);
        self.masked(rows).backward(b, &self.selector, &self.tape, steps, divisor, micro.accumulate);
    }

    fn masked(&self, rows: usize) -> Masked {
        let (inputs, x) = (self.batches.inputs(), self.batches.x);
        Masked { inputs, x, path: self.path, acquired_at: self.acquired_at, rows }
    }

    fn concrete(&self, b: &mut PlanBuilder, at: Concrete, buffers: [BufferId; 5]) {
        let features = self.batches.sizes.features;
        let [logits, gumbel, acquired_at, masks, path] = buffers;
        b.call(
            Concrete { features: word(features), pitch: word(pitch(features)), ..at },
            &[logits, gumbel, acquired_at, masks, path, self.batches.settings],
        );
    }

    /// The predictor alone, on masks of uniform cardinality. The selector's gradient stays zero, so Adam leaves it.
    fn warm_up_step(&self, b: &mut PlanBuilder) -> Section {
        let s = &self.batches.sizes;
        b.section("warm_up", |b| {
            self.predictor.transpose(b, 1..self.predictor.stack.layers.len());
            self.batches.each_micro_batch(b, "warm_up", |b, micro| {
                let rows = micro.rows;
                let (at, tape) = (Rows { first: 0, count: rows }, &self.relaxed.predictor);
                self.batches.gather(b, micro);
                let masks = Masks::Uniform { stream: stream::CARDINALITY, most: 1.0 };
                self.batches.draw_masks(b, micro, (self.relaxed.masks, pitch(s.features)), masks);
                self.dropout.draw(b, &self.batches, micro, 1);
                let dense = self.relaxed.dense(self.batches.x, s.features);
                self.batches.inputs().expand(b, rows, 0, false, dense);
                self.predictor.forward(b, 0, at, Some(dense.at(0)), tape, self.dropout.multipliers());
                self.batches.loss(b, [rows; 2], None, [tape.logits(), self.batches.y, self.relaxed.losses]);
                let counted = MeanLoss {
                    rows: word(rows),
                    batch: word(rows),
                    divisor: 1,
                    word: word(counted::OBJECTIVE),
                    ..MeanLoss::default()
                };
                self.mean_loss(b, counted, self.relaxed.losses, true);
                self.predictor.backward_hidden(b, at, tape, self.dropout.multipliers());
                self.predictor.backward_weights(b, rows, tape, s.batch, micro.accumulate);
                self.predictor.backward_first(b, rows, self.relaxed.input, tape, s.batch, micro.accumulate);
            });
            self.predictor.weights.adam(b, hyper::RATE, &self.batches.optimizer());
            self.batches.advance(b, 1);
        })
    }

    /// The greedy selector on a chunk to the horizon: the predictor's loss after each acquisition under hard masks, which
    /// decides what is kept, and on the relaxed choice, which decides when a temperature is over.
    fn greedy_chunk(&self, b: &mut PlanBuilder, at: ChunkRows) {
        let (s, chunk) = (&self.batches.sizes, &self.batches.chunk);
        let masked = self.batches.masked_chunk(self.batches.inputs());
        let (selector, predictor) = (self.selector.averaged(), self.predictor.averaged());
        let rows = s.evaluation_rows;
        let counted = |at: usize| MeanLoss {
            rows: word(rows),
            batch: word(rows),
            divisor: word(s.horizon),
            word: word(at),
            ..MeanLoss::default()
        };
        masked.forward(b, &predictor, &self.chunk_predictor, 0..1, None, false);
        for t in 0..s.horizon {
            masked.forward_all(b, &selector, &self.chunk_selector, t..t + 1, None, false);
            self.soft_chunk(b, t, at.first);
            self.mean_loss(b, counted(metrics::SOFT), self.chunk_relaxed.losses, false);
            b.call(
                Greedy {
                    rows: word(rows),
                    step: word(t),
                    features: word(s.features),
                    logit_pitch: word(pitch(s.features)),
                    stop: 0,
                },
                &[self.chunk_selector.logits(), chunk.acquired_at, chunk.path],
            );
            masked.forward_all(b, &predictor, &self.chunk_predictor, t + 1..t + 2, None, false);
            self.batches.loss(b, [rows; 2], None, [self.chunk_predictor.logits(), chunk.y, chunk.losses]);
            self.mean_loss(b, counted(metrics::HARD), chunk.losses, false);
        }
        self.batches.tally(b, at, s.horizon, 0);
    }

    /// The predictor on the relaxed choice of a step of a chunk.
    fn soft_chunk(&self, b: &mut PlanBuilder, t: usize, first: usize) {
        let (s, chunk, soft) = (&self.batches.sizes, &self.batches.chunk, &self.chunk_relaxed);
        let rows = s.evaluation_rows;
        // Other noise for each row of a chunk, and at each step.
        let noise = Micro { first: (t << 20) + first, rows, accumulate: false };
        self.batches.draw_gumbel(b, noise, 1, s.features, soft.gumbel);
        let at = Concrete { rows: word(rows), step: word(t), ..Concrete::default() };
        let logits = self.chunk_selector.logits();
        self.concrete(b, at, [logits, soft.gumbel, chunk.acquired_at, soft.masks, self.scratch]);
        let dense = soft.dense(chunk.x, s.features);
        self.batches.inputs().expand(b, rows, 0, false, dense);
        let at = Rows { first: 0, count: rows };
        self.predictor.averaged().forward(b, 0, at, Some(dense.at(0)), &soft.predictor, None);
        self.batches.loss(b, [rows; 2], None, [soft.predictor.logits(), chunk.y, soft.losses]);
    }
}
