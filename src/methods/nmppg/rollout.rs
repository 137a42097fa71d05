//! Forward: the rollout of a micro-batch, the warm-up step, and the greedy evaluation.

use super::layout::{Layout, Noise, Sizes, SplitRange, word};
use crate::engine::kernels as k;
use crate::engine::plan::{BufferId, PlanBuilder};
use crate::engine::state::{advance, hyper, stream};
use crate::nn::{Operand, pitch};

/// The section of a training step of so many acquisitions, of at most `full`; `scored` if nothing in it
/// goes through the relaxation.
pub(super) fn step_section(steps: usize, full: usize, scored: bool) -> String {
    let length = if steps == full { String::new() } else { format!(".{steps}") };
    format!("step{length}{}", if scored { ".scored" } else { "" })
}

/// The section that evaluates a chunk of the validation rows and counts what was asked.
pub(super) const VALIDATE: &str = "validate";

/// A micro-batch: where it starts in the batch, its instances, and whether its gradients are added
/// to those of an earlier one of its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Micro {
    pub first: usize,
    pub rows: usize,
    pub accumulate: bool,
}

impl Layout {
    /// The section `step` (everything) with `prepare`, `micro.0`, `micro.1`, … and `update` in it; and for each
    /// shorter horizon the same as `step.8`, `step.8.micro.0`, …: the tapes are those of the full one,
    /// not used to the end. `step.scored`, `step.8.scored`, … leave out what only the relaxed gradient
    /// needs: m̃ and r̃ forward, M and the gradients of both networks' inputs backward.
    pub(super) fn training_steps(&self, b: &mut PlanBuilder) {
        let full = self.sizes.steps;
        let kinds = if self.sizes.scored { &[false, true][..] } else { &[false] };
        for steps in std::iter::once(full).chain(self.sizes.shorter()) {
            for &scored in kinds {
                let sizes = Sizes { steps, scored, ..self.sizes.clone() };
                Self { sizes, ..self.clone() }.training_step(b, &step_section(steps, full, scored));
            }
        }
    }

    fn training_step(&self, b: &mut PlanBuilder, name: &str) {
        let s = &self.sizes;
        let prefix = if name == "step" { String::new() } else { format!("{name}.") };
        b.begin(name);
        // The inputs' gradients are only there to go through the masks.
        let layers = if s.scored { 1..3 } else { 0..3 };
        b.begin(format!("{prefix}prepare"));
        self.policy.transpose(b, layers.clone());
        self.predictor.transpose(b, layers);
        b.end();
        self.each_micro_batch(b, &format!("{prefix}micro"), |b, micro| {
            self.gather_batch(b, micro);
            self.rollout(b, micro);
            self.backward(b, micro);
            self.learn_parts(b, micro);
        });
        b.begin(format!("{prefix}update"));
        self.policy.adam(b, s.lanes, hyper::RATE_POLICY, 0, self.adam_state());
        self.predictor.adam(b, s.lanes, hyper::RATE_PREDICTOR, 2, self.adam_state());
        self.advance(b, advance::POLICY | advance::PREDICTOR);
        b.end();
        b.end();
    }

    /// The sections `warm_up` and `reference`: a step of the predictor alone, on masks drawn feature by
    /// feature, or on everything.
    pub(super) fn predictor_steps(&self, b: &mut PlanBuilder) {
        let s = &self.sizes;
        for (name, all) in [("warm_up", false), ("reference", true)] {
            b.begin(name);
            self.predictor.transpose(b, 1..3);
            self.each_micro_batch(b, &format!("{name}.micro"), |b, micro| {
                self.gather_batch(b, micro);
                self.draw_masks(b, micro, self.relax, all);
                self.expand(b, micro.rows, 0, false, self.dense());
                self.draw_dropout(b, micro, 1);
                self.predict(b, micro.rows, micro.rows, Operand::from(self.input), false);
                b.call(
                    k::Outcome { rows: word(micro.rows), steps: 0, mark0: 0, mark1: 0, mark2: 0 },
                    &[self.scalars, self.losses, self.hyper, self.metrics],
                );
                self.warm_up_backward(b, micro);
            });
            self.predictor.adam(b, s.lanes, hyper::RATE_PREDICTOR, 2, self.adam_state());
            self.advance(b, advance::PREDICTOR);
            b.end();
        }
    }

    /// The predictor's step on parts of what was asked; its gradient is added to that of the rollout.
    fn learn_parts(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.sizes;
        if !s.parts {
            return;
        }
        b.call(
            k::PartMask {
                rows: word(micro.rows),
                steps: word(s.steps),
                features: word(s.features),
                pitch: word(pitch(s.features)),
                first: word(micro.first),
            },
            &[self.clock, self.when, self.hyper, self.scalars, self.relax],
        );
        self.expand(b, micro.rows, 0, false, self.dense());
        self.predict(b, micro.rows, micro.rows, Operand::from(self.input), true);
        self.warm_up_backward(b, Micro { accumulate: true, ..micro });
    }

    fn draw_masks(&self, b: &mut PlanBuilder, micro: Micro, relax: BufferId, all: bool) {
        let s = &self.sizes;
        b.call(
            k::RandomMask {
                rows: word(micro.rows),
                features: word(s.features),
                pitch: word(pitch(s.features)),
                first: word(micro.first),
                all: u32::from(all),
            },
            &[self.clock, relax],
        );
    }

    /// The sections `evaluate.0`, `.1`, `.2`, for the training, validation and test rows: one chunk
    /// of the split each time they are run; and `evaluate_all.0` …, the predictor on everything. The
    /// section `validate` is `evaluate.1` and counts what was asked.
    pub(super) fn evaluation(&self, b: &mut PlanBuilder) {
        for (name, all) in [("evaluate", false), ("evaluate_all", true)] {
            for (index, &split) in self.sizes.splits.iter().enumerate() {
                let validates = index == 1 && !all;
                if validates {
                    b.begin(VALIDATE);
                }
                b.begin(format!("{name}.{index}"));
                for lane in 0..self.sizes.lanes {
                    b.lane(Some(lane));
                    let first = lane * self.sizes.evaluation_rows;
                    self.gather_chunk(b, split, first);
                    if all { self.chunk_of_everything(b, first) } else { self.greedy_chunk(b) }
                }
                b.lane(None);
                self.advance(b, advance::CHUNK);
                b.end();
                if validates {
                    self.count_asked(b);
                    b.end();
                }
            }
        }
    }

    /// What was asked in the chunk evaluated last, added to the counts.
    fn count_asked(&self, b: &mut PlanBuilder) {
        let (s, chunk) = (&self.sizes, &self.chunk);
        for lane in 0..s.lanes {
            b.lane(Some(lane));
            b.call(
                k::Asked { rows: word(s.evaluation_rows), steps: word(s.steps), features: word(s.features) },
                &[chunk.path, chunk.y, chunk.asked],
            );
        }
        b.lane(None);
    }

    /// Instances of an evaluation chunk.
    pub(super) fn chunk_rows(&self) -> usize {
        self.sizes.lanes * self.sizes.evaluation_rows
    }

    fn each_micro_batch(
        &self,
        b: &mut PlanBuilder,
        name: &str,
        mut calls: impl FnMut(&mut PlanBuilder, Micro),
    ) {
        let lanes = self.sizes.lanes;
        for (index, (first, rows)) in self.sizes.micro_batches().enumerate() {
            b.lane(Some(index % lanes));
            b.begin(format!("{name}.{index}"));
            calls(b, Micro { first, rows, accumulate: index >= lanes });
            b.end();
        }
        b.lane(None);
    }

    fn advance(&self, b: &mut PlanBuilder, what: u32) {
        let batches = word(self.sizes.batches);
        b.call(k::Advance { what, batches }, &[self.clock, self.powers, self.hyper]);
    }

    fn gather_batch(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.sizes;
        let rows = k::Gather {
            rows: word(micro.rows),
            columns: word(s.columns),
            pitch: word(pitch(s.columns)),
            first: word(micro.first),
            batch: word(s.batch),
            split_start: word(s.splits[0].start),
            split_len: word(s.splits[0].len),
            shuffled: u32::from(s.noise == Noise::Drawn),
        };
        self.gather(b, rows, [self.x, self.y]);
        if s.blur {
            b.call(
                k::Blur {
                    rows: word(micro.rows),
                    columns: word(s.columns),
                    pitch: word(pitch(s.columns)),
                    first: word(micro.first),
                },
                &[self.clock, self.spread, self.hyper, self.x],
            );
        }
    }

    fn draw_dropout(&self, b: &mut PlanBuilder, micro: Micro, steps: usize) {
        let Some(threshold) = self.sizes.dropout else { return };
        for (layer, stream) in [stream::DROPOUT_1, stream::DROPOUT_2].into_iter().enumerate() {
            b.call(
                k::Dropout {
                    rows: word(micro.rows),
                    steps: word(steps),
                    pitch: word(pitch(self.predictor.mlp.layers[layer].outputs)),
                    first: word(micro.first),
                    threshold,
                    stream,
                },
                &[self.clock, self.dropout[layer]],
            );
        }
    }

    fn dense(&self) -> Dense {
        Dense { x: self.x, relax: self.relax, input: self.input }
    }

    /// The dense input of both networks at step t.
    fn expand(&self, b: &mut PlanBuilder, rows: usize, t: usize, nothing_seen: bool, io: Dense) {
        let s = &self.sizes;
        b.call(
            k::Expand {
                rows: word(rows),
                step: word(t),
                columns: word(s.columns),
                features: word(s.features),
                x_pitch: word(pitch(s.columns)),
                relax_pitch: word(pitch(s.features)),
                input_pitch: word(pitch(s.inputs())),
                nothing_seen: u32::from(nothing_seen),
            },
            &[self.groups, io.x, io.relax, io.input],
        );
    }

    /// The predictor's layers after the first, then the losses and their unit gradient, on all rows
    /// of the tape at once: the predictor never influences the path.
    fn predict(
        &self,
        b: &mut PlanBuilder,
        batch: usize,
        rows: usize,
        dense_input: impl Into<Option<Operand>>,
        weighted: bool,
    ) {
        let (net, tape) = (&self.predictor, &self.predictor_tape);
        if let Some(input) = dense_input.into() {
            net.forward(b, 0, rows, input, tape.hidden1.into(), self.multipliers(0));
        }
        net.forward(b, 1, rows, tape.hidden1.into(), tape.hidden2.into(), self.multipliers(1));
        net.forward(b, 2, rows, tape.hidden2.into(), tape.logits.into(), None);
        let io = Scored { logits: tape.logits, y: self.y, losses: self.losses };
        self.loss(b, batch, rows, weighted, io);
    }

    /// The losses of `rows` rows, whose labels repeat after `batch`; if `weighted`, their gradient is
    /// multiplied by the tape's weights.
    fn loss(&self, b: &mut PlanBuilder, batch: usize, rows: usize, weighted: bool, io: Scored) {
        let s = &self.sizes;
        b.call(
            k::Loss {
                rows: word(rows),
                batch: word(batch),
                classes: word(s.classes),
                pitch: word(pitch(s.classes)),
                weights: word(s.features),
                weighted: u32::from(weighted),
            },
            &[io.logits, io.y, self.costs, io.losses, self.scalars],
        );
    }

    fn rollout(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.sizes;
        let rows = micro.rows;
        let (policy, tape) = (&self.policy, &self.policy_tape);
        if s.noise == Noise::Drawn {
            b.call(
                k::Noise {
                    rows: word(rows),
                    steps: word(s.steps),
                    actions: word(s.features + 1),
                    pitch: word(pitch(s.features + 1)),
                    first: word(micro.first),
                },
                &[self.clock, self.gumbel],
            );
            self.draw_dropout(b, micro, s.steps + 1);
        }
        for t in 0..s.steps {
            let at = |buffer| Operand::at(buffer, t * rows);
            if s.soft {
                self.expand(b, rows, t, t == 0, self.dense());
                policy.forward(b, 0, rows, at(self.input), at(tape.hidden1), None);
            } else {
                let io = Embedded { x: self.x, path: self.path, sum: tape.sum, hidden: tape.hidden1 };
                self.embed(b, policy, io, rows, t..t + 1, None, true);
            }
            policy.forward(b, 1, rows, at(tape.hidden1), at(tape.hidden2), None);
            policy.forward(b, 2, rows, at(tape.hidden2), at(tape.logits), None);
            b.call(
                k::Select {
                    rows: word(rows),
                    step: word(t),
                    steps: word(s.steps),
                    features: word(s.features),
                    logit_pitch: word(pitch(s.features + 1)),
                    relax_pitch: word(pitch(s.features)),
                    soft: u32::from(s.soft),
                    relaxed: u32::from(!s.scored),
                },
                &[
                    tape.logits,
                    self.gumbel,
                    self.when,
                    self.relax,
                    self.path,
                    self.scalars,
                    self.costs,
                    self.hyper,
                ],
            );
        }
        let all = (s.steps + 1) * rows;
        if s.soft {
            self.expand(b, rows, s.steps, false, self.dense());
            self.predict(b, rows, all, Operand::from(self.input), true);
        } else {
            let tape = &self.predictor_tape;
            let io = Embedded { x: self.x, path: self.path, sum: tape.sum, hidden: tape.hidden1 };
            self.embed(b, &self.predictor, io, rows, 0..s.steps + 1, self.multipliers(0), true);
            self.predict(b, rows, all, None, true);
        }
        let [mark0, mark1, mark2] = s.marks.map(word);
        b.call(
            k::Outcome { rows: word(rows), steps: word(s.steps), mark0, mark1, mark2 },
            &[self.scalars, self.losses, self.hyper, self.metrics],
        );
    }

    /// A network's first layer under hard masks, for a range of steps.
    #[allow(clippy::too_many_arguments)]
    fn embed(
        &self,
        b: &mut PlanBuilder,
        net: &crate::nn::Net,
        io: Embedded,
        rows: usize,
        steps: std::ops::Range<usize>,
        dropout: Option<BufferId>,
        tape: bool,
    ) {
        let s = &self.sizes;
        let layer = net.mlp.layers[0];
        b.call(
            k::Embed {
                rows: word(rows),
                first_step: word(steps.start),
                steps: word(steps.len()),
                columns: word(s.columns),
                features: word(s.features),
                hidden_pitch: word(pitch(layer.outputs)),
                x_pitch: word(pitch(s.columns)),
                weight: word(layer.weight),
                bias: word(layer.bias),
                dropout: dropout.is_some() as u32,
                tape: u32::from(tape),
            },
            &[self.groups, io.x, io.path, net.values, dropout.unwrap_or(self.none), io.sum, io.hidden],
        );
    }

    fn gather_chunk(&self, b: &mut PlanBuilder, split: SplitRange, first: usize) {
        let (s, chunk) = (&self.sizes, &self.chunk);
        let rows = k::Gather {
            rows: word(s.evaluation_rows),
            columns: word(s.columns),
            pitch: word(pitch(s.columns)),
            first: word(first),
            batch: word(self.chunk_rows()),
            split_start: word(split.start),
            split_len: word(split.len),
            shuffled: 0,
        };
        self.gather(b, rows, [chunk.x, chunk.y]);
    }

    /// Gathers rows out of the data, which are reals or bytes.
    fn gather(&self, b: &mut PlanBuilder, rows: k::Gather, [x, y]: [BufferId; 2]) {
        let buffers = [self.clock, self.data_x, self.data_y, x, y];
        let Some(divisor) = self.sizes.bytes else {
            b.call(rows, &buffers);
            return;
        };
        let k::Gather { rows, columns, pitch, first, batch, split_start, split_len, shuffled } = rows;
        b.call(
            k::GatherBytes { rows, columns, pitch, first, batch, split_start, split_len, shuffled, divisor },
            &buffers,
        );
    }

    /// The predictor on a chunk of which everything is seen.
    fn chunk_of_everything(&self, b: &mut PlanBuilder, first: usize) {
        let (chunk, predictor) = (&self.chunk, self.predictor.averaged());
        let rows = self.sizes.evaluation_rows;
        self.draw_masks(b, Micro { first, rows, accumulate: false }, chunk.relax, true);
        self.expand(b, rows, 0, false, Dense { x: chunk.x, relax: chunk.relax, input: chunk.input });
        predictor.forward(b, 0, rows, chunk.input.into(), chunk.predictor[1].into(), None);
        self.score_chunk(b, 0);
    }

    /// The predictor's upper layers on a chunk, and what comes of it.
    fn score_chunk(&self, b: &mut PlanBuilder, steps: usize) {
        let (s, chunk, predictor) = (&self.sizes, &self.chunk, self.predictor.averaged());
        let rows = s.evaluation_rows;
        let [_, hidden1, hidden2, logits] = chunk.predictor;
        predictor.forward(b, 1, rows, hidden1.into(), hidden2.into(), None);
        predictor.forward(b, 2, rows, hidden2.into(), logits.into(), None);
        self.loss(b, rows, rows, false, Scored { logits, y: chunk.y, losses: chunk.losses });
        b.call(
            k::Score { rows: word(rows), steps: word(steps), features: word(s.features) },
            &[chunk.losses, chunk.path, chunk.y, self.costs, chunk.metrics],
        );
    }

    fn greedy_chunk(&self, b: &mut PlanBuilder) {
        let s = &self.sizes;
        let (rows, chunk) = (s.evaluation_rows, &self.chunk);
        let (policy, predictor) = (self.policy.averaged(), self.predictor.averaged());
        let embedded =
            |[sum, hidden, ..]: [BufferId; 4]| Embedded { x: chunk.x, path: chunk.path, sum, hidden };
        let [_, hidden1, hidden2, logits] = chunk.policy;
        for t in 0..s.steps {
            self.embed(b, &policy, embedded(chunk.policy), rows, t..t + 1, None, false);
            policy.forward(b, 1, rows, hidden1.into(), hidden2.into(), None);
            policy.forward(b, 2, rows, hidden2.into(), logits.into(), None);
            b.call(
                k::Greedy {
                    rows: word(rows),
                    step: word(t),
                    features: word(s.features),
                    logit_pitch: word(pitch(s.features + 1)),
                },
                &[logits, chunk.when, chunk.path],
            );
        }
        self.embed(b, &predictor, embedded(chunk.predictor), rows, 0..s.steps + 1, None, false);
        self.score_chunk(b, s.steps);
    }
}

/// What the dense input is made of and where it goes.
#[derive(Clone, Copy)]
struct Dense {
    x: BufferId,
    relax: BufferId,
    input: BufferId,
}

/// What a loss is made of and where it goes.
#[derive(Clone, Copy)]
struct Scored {
    logits: BufferId,
    y: BufferId,
    losses: BufferId,
}

/// What the first layer under hard masks reads and writes.
#[derive(Clone, Copy)]
struct Embedded {
    x: BufferId,
    path: BufferId,
    sum: BufferId,
    hidden: BufferId,
}
