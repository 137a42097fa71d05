//! Forward: the rollout of a micro-batch, the warm-up step, and the greedy evaluation.

use super::kernels::{self as own, hyper, scalars};
use super::layout::{Layout, Noise, Sizes, SplitRange, word};
use crate::engine::kernels as k;
use crate::engine::plan::{BufferId, PlanBuilder, Section};
use crate::nn::{Operand, pitch};
use crate::random::stream;

/// The sections of a run's plan.
#[derive(Clone, Debug)]
pub(super) struct Sections {
    steps: Vec<TrainingStep>,
    /// The predictor alone, on masks drawn feature by feature.
    pub warm_up: Section,
    /// The predictor alone, on everything.
    pub reference: Section,
    /// A chunk of the training, validation and test rows under the greedy policy.
    pub evaluate: [Section; 3],
    /// The same with everything seen at no cost.
    pub evaluate_all: [Section; 3],
    /// A chunk of the validation rows, counting what was asked.
    pub validate: Section,
}

/// A training step and its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrainingStep {
    /// Acquisitions of its rollouts.
    horizon: usize,
    /// Nothing in it goes through the relaxation.
    scored: bool,
    pub whole: Section,
    /// What comes before the micro-batches.
    pub prepare: Section,
    /// The first micro-batch.
    pub first: Section,
    /// What comes after them.
    pub update: Section,
}

impl Sections {
    pub fn new(layout: &Layout, b: &mut PlanBuilder) -> Self {
        let steps = layout.training_steps(b);
        let [warm_up, reference] =
            [("warm_up", false), ("reference", true)].map(|(name, all)| layout.predictor_step(b, name, all));
        let (evaluate, validate) = layout.evaluation(b);
        let evaluate_all = layout.evaluation_of_everything(b);
        Self { steps, warm_up, reference, evaluate, evaluate_all, validate }
    }

    /// The training step of so many acquisitions, with or without what only the relaxed gradient needs.
    pub fn step(&self, horizon: usize, scored: bool) -> TrainingStep {
        let is = |step: &&TrainingStep| (step.horizon, step.scored) == (horizon, scored);
        *self.steps.iter().find(is).unwrap_or(&self.steps[0])
    }
}

/// The networks' places among Adam's powers, as bits.
const POLICY: u32 = 1;
const PREDICTOR: u32 = 2;

/// A micro-batch: where it starts in the batch, its instances, and whether its gradients are added
/// to those of an earlier one of its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Micro {
    pub first: usize,
    pub rows: usize,
    pub accumulate: bool,
}

impl Layout {
    /// The training step of the full horizon first; and for each shorter horizon the same: the tapes are those of the
    /// full one, not used to the end. Scored steps leave out what only the relaxed gradient needs: m̃ and r̃
    /// forward, M and the gradients of both networks' inputs backward.
    fn training_steps(&self, b: &mut PlanBuilder) -> Vec<TrainingStep> {
        let full = self.sizes.steps;
        let kinds = if self.sizes.scored { &[false, true][..] } else { &[false] };
        let horizons = std::iter::once(full).chain(self.sizes.shorter());
        let all = horizons.flat_map(|steps| kinds.iter().map(move |&scored| (steps, scored)));
        all.map(|(steps, scored)| {
            let length = if steps == full { String::new() } else { format!(".{steps}") };
            let name = format!("step{length}{}", if scored { ".scored" } else { "" });
            let sizes = Sizes { steps, scored, ..self.sizes.clone() };
            Self { sizes, ..self.clone() }.training_step(b, &name)
        })
        .collect()
    }

    fn training_step(&self, b: &mut PlanBuilder, name: &str) -> TrainingStep {
        let s = &self.sizes;
        let mut parts = [None; 3];
        let whole = b.section(name, |b| {
            // The inputs' gradients are only there to go through the masks.
            let layers = if s.scored { 1..3 } else { 0..3 };
            let prepare = b.section(format!("{name}.prepare"), |b| {
                self.policy.transpose(b, layers.clone());
                self.predictor.transpose(b, layers);
            });
            let first = self.each_micro_batch(b, name, |b, micro| {
                self.gather_batch(b, micro);
                self.rollout(b, micro);
                self.backward(b, micro);
                self.learn_submasks(b, micro);
            });
            let update = b.section(format!("{name}.update"), |b| {
                self.policy.adam(b, s.lanes, hyper::RATE_POLICY, 0, self.adam_state());
                self.predictor.adam(b, s.lanes, hyper::RATE_PREDICTOR, 2, self.adam_state());
                self.advance(b, POLICY | PREDICTOR, false);
            });
            parts = [Some(prepare), first, Some(update)];
        });
        let [prepare, first, update] = parts.map(|part| part.unwrap_or(whole));
        TrainingStep { horizon: s.steps, scored: s.scored, whole, prepare, first, update }
    }

    /// A step of the predictor alone, on masks drawn feature by feature, or on everything.
    fn predictor_step(&self, b: &mut PlanBuilder, name: &str, all: bool) -> Section {
        b.section(name, |b| {
            self.predictor.transpose(b, 1..3);
            self.each_micro_batch(b, name, |b, micro| {
                self.gather_batch(b, micro);
                self.draw_masks(b, micro, self.masks, all);
                self.expand(b, micro.rows, 0, false, self.dense());
                self.draw_dropout(b, micro, 1);
                self.predict(b, micro.rows, micro.rows, Operand::from(self.input), false);
                b.call(
                    own::Objective { rows: word(micro.rows), steps: 0, mark0: 0, mark1: 0, mark2: 0 },
                    &[self.scalars, self.losses, self.settings, self.metrics],
                );
                self.warm_up_backward(b, micro);
            });
            self.predictor.adam(b, self.sizes.lanes, hyper::RATE_PREDICTOR, 2, self.adam_state());
            self.advance(b, PREDICTOR, false);
        })
    }

    /// The predictor's step on sub-masks of what was asked; its gradient is added to that of the rollout.
    fn learn_submasks(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.sizes;
        if !s.submasks {
            return;
        }
        b.call(
            own::Submask {
                rows: word(micro.rows),
                steps: word(s.steps),
                features: word(s.features),
                pitch: word(pitch(s.features)),
                first: word(micro.first),
            },
            &[self.clock, self.acquired_at, self.settings, self.scalars, self.masks],
        );
        self.expand(b, micro.rows, 0, false, self.dense());
        self.predict(b, micro.rows, micro.rows, Operand::from(self.input), true);
        self.warm_up_backward(b, Micro { accumulate: true, ..micro });
    }

    fn draw_masks(&self, b: &mut PlanBuilder, micro: Micro, masks: BufferId, all: bool) {
        let s = &self.sizes;
        b.call(
            k::RandomMask {
                rows: word(micro.rows),
                features: word(s.features),
                mask_stride: word(2 * pitch(s.features)),
                first: word(micro.first),
                all: u32::from(all),
            },
            &[self.clock, masks],
        );
    }

    /// One chunk of each split under the greedy policy each time they are run; and for the validation rows the same
    /// with a count of what was asked.
    fn evaluation(&self, b: &mut PlanBuilder) -> ([Section; 3], Section) {
        let mut validation = None;
        let validate = b.section("validate", |b| {
            validation = Some(self.chunks_of(b, 1, "evaluate", |b, _| self.greedy_chunk(b)));
            self.count_asked(b);
        });
        let mut other = |split| self.chunks_of(b, split, "evaluate", |b, _| self.greedy_chunk(b));
        ([other(0), validation.unwrap_or(validate), other(2)], validate)
    }

    /// The same for the predictor alone, everything seen.
    fn evaluation_of_everything(&self, b: &mut PlanBuilder) -> [Section; 3] {
        [0, 1, 2].map(|split| {
            self.chunks_of(b, split, "evaluate_all", |b, first| self.chunk_of_everything(b, first))
        })
    }

    /// A chunk of a split on all lanes, and on to the next.
    fn chunks_of(
        &self,
        b: &mut PlanBuilder,
        split: usize,
        name: &str,
        chunk: impl Fn(&mut PlanBuilder, usize),
    ) -> Section {
        b.section(format!("{name}.{split}"), |b| {
            for lane in 0..self.sizes.lanes {
                b.lane(Some(lane));
                let first = lane * self.sizes.evaluation_rows;
                self.gather_chunk(b, self.sizes.splits[split], first);
                chunk(b, first);
            }
            b.lane(None);
            self.advance(b, 0, true);
        })
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

    /// Gives the first one's section.
    fn each_micro_batch(
        &self,
        b: &mut PlanBuilder,
        name: &str,
        mut calls: impl FnMut(&mut PlanBuilder, Micro),
    ) -> Option<Section> {
        let lanes = self.sizes.lanes;
        let mut first_section = None;
        for (index, (first, rows)) in self.sizes.micro_batches().enumerate() {
            b.lane(Some(index % lanes));
            let micro = Micro { first, rows, accumulate: index >= lanes };
            let section = b.section(format!("{name}.micro.{index}"), |b| calls(b, micro));
            first_section.get_or_insert(section);
        }
        b.lane(None);
        first_section
    }

    /// Moves the clock on: the powers of some networks' Adam, or the evaluation's chunk.
    fn advance(&self, b: &mut PlanBuilder, slots: u32, chunk: bool) {
        let batches = word(self.sizes.batches);
        b.call(
            k::Advance { slots, chunk: u32::from(chunk), batches },
            &[self.clock, self.powers, self.settings],
        );
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
        if s.input_noise {
            b.call(
                k::InputNoise {
                    rows: word(micro.rows),
                    columns: word(s.columns),
                    pitch: word(pitch(s.columns)),
                    first: word(micro.first),
                },
                &[self.clock, self.spread, self.settings, self.x],
            );
        }
    }

    fn draw_dropout(&self, b: &mut PlanBuilder, micro: Micro, steps: usize) {
        let Some(threshold) = self.sizes.dropout else { return };
        for (layer, stream) in (stream::DROPOUT..).take(2).enumerate() {
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
        Dense { x: self.x, masks: self.masks, input: self.input }
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
                mask_stride: word(2 * pitch(s.features)),
                input_pitch: word(pitch(s.inputs())),
                nothing_seen: u32::from(nothing_seen),
            },
            &[self.groups, io.x, io.masks, io.input],
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
                weight_stride: if weighted { word(scalars::LEN) } else { 0 },
                weight_word: word(scalars::WEIGHT),
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
                k::Gumbel {
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
                own::Select {
                    rows: word(rows),
                    step: word(t),
                    steps: word(s.steps),
                    features: word(s.features),
                    logit_pitch: word(pitch(s.features + 1)),
                    mask_pitch: word(pitch(s.features)),
                    soft: u32::from(s.soft),
                    relaxed: u32::from(!s.scored),
                },
                &[
                    tape.logits,
                    self.gumbel,
                    self.acquired_at,
                    self.masks,
                    self.path,
                    self.scalars,
                    self.costs,
                    self.settings,
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
            own::Objective { rows: word(rows), steps: word(s.steps), mark0, mark1, mark2 },
            &[self.scalars, self.losses, self.settings, self.metrics],
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
        b.call(rows.of_bytes(divisor), &buffers);
    }

    /// The predictor on a chunk of which everything is seen.
    fn chunk_of_everything(&self, b: &mut PlanBuilder, first: usize) {
        let (chunk, predictor) = (&self.chunk, self.predictor.averaged());
        let rows = self.sizes.evaluation_rows;
        self.draw_masks(b, Micro { first, rows, accumulate: false }, chunk.masks, true);
        self.expand(b, rows, 0, false, Dense { x: chunk.x, masks: chunk.masks, input: chunk.input });
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
            k::Tally { rows: word(rows), steps: word(steps), features: word(s.features) },
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
                &[logits, chunk.acquired_at, chunk.path],
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
    masks: BufferId,
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
