//! The predictor, the list, and the sections: a training step, the evaluation of the list, the trial of what could be
//! its next feature.

use super::config::Config;
use super::kernels::{Choose, Collect, Follow, Mask, Total, hyper};
use super::trials::{Ground, Trials};
use crate::engine::kernels::Tally;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::nn::{Tape, Weights, pitch, word};
use crate::train::{Batches, ChunkRows, Lesson, Micro};

/// The word of the training metrics that has the predictor's loss: the general tally leaves it zero.
pub(super) const LOST: usize = 3;
/// The word of the evaluation's that has the loss over the beginnings of the list: the first behind the general ones.
pub(super) const ALONG: usize = 5;

/// The method in a plan.
#[derive(Clone, Debug)]
pub struct Fixed {
    pub(super) layout: Layout,
    pub(super) sections: Sections,
}

/// Its sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sections {
    pub step: Section,
    pub evaluate: [Section; 3],
    pub validate: Section,
}

/// Networks and tape.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub batches: Batches,
    pub lesson: Lesson,
    /// The list: features as reals, and d where it has not come to yet. It is a group of weights that no gradient
    /// changes, so it is kept with the best ones, saved, restored and given to the model as they are.
    pub list: Weights,
    /// What could be the next of the list, then d for nothing.
    pub candidates: BufferId,
    /// What the validation rows lose with each candidate.
    pub scores: BufferId,
    chunk: Tape,
    trials: Trials,
}

impl Fixed {
    pub(super) fn new(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        let layout = Layout::declare(b, batches.clone(), config);
        let step = layout.training_step(b);
        let chunk = |b: &mut PlanBuilder, at| layout.follow_chunk(b, at);
        let mut validation = None;
        // Choices are made by the validation rows, so candidates are tried on those alone.
        let validate = b.section("validate", |b| {
            validation = Some(batches.evaluation(b, 1, "evaluate", chunk));
            batches.count_asked(b);
            layout.try_candidates(b);
        });
        let [training, test] = [0, 2].map(|split| batches.evaluation(b, split, "evaluate", chunk));
        let evaluate = [training, validation.unwrap_or(validate), test];
        Self { layout, sections: Sections { step, evaluate, validate } }
    }
}

impl Layout {
    fn declare(b: &mut PlanBuilder, batches: Batches, config: &Config) -> Self {
        let s = batches.sizes.clone();
        let lesson = Lesson::declare(b, &batches, &config.hidden, config.dropout, 0);
        let list = Weights::declare(b, "list", s.horizon, 1);
        let candidates = b.buffer("candidates", Elem::U32, s.features + 1, Scope::Shared);
        let scores = b.buffer("scores", Elem::F32, s.features + 1, Scope::Shared);
        let stack = &lesson.predictor.stack;
        let chunk = Tape::forward_only(b, "evaluation.predictor", stack, [s.evaluation_rows; 2]);
        let trials = Trials::declare(b, stack, s.evaluation_rows, s.features + 1);
        Self { batches, lesson, list, candidates, scores, chunk, trials }
    }

    /// The predictor on random masks and on the beginnings of the list. Pretraining is the same step, as what differs is
    /// in the settings; it has a name of its own for whoever looks for it.
    fn training_step(&self, b: &mut PlanBuilder) -> Section {
        let s = &self.batches.sizes;
        let step = |b: &mut PlanBuilder| {
            b.call(
                Choose { features: word(s.features), steps: word(s.horizon) },
                &[
                    self.scores,
                    self.batches.costs,
                    self.batches.settings,
                    self.candidates,
                    self.list.values,
                    self.list.average,
                ],
            );
            self.lesson.prepare(b);
            self.batches.each_micro_batch(b, "step", |b, micro| {
                self.batches.gather(b, micro);
                self.draw(b, micro);
                self.lesson.forward(b, &self.batches, micro);
                self.count(b, micro.rows);
                self.lesson.backward(b, &self.batches, micro);
            });
            self.lesson.predictor.weights.adam(b, hyper::RATE, &self.batches.optimizer());
            self.batches.advance(b, 1);
        };
        b.section("step", |b| {
            b.section("warm_up", step);
        })
    }

    /// Masks of a micro-batch.
    fn draw(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.batches.sizes;
        b.call(
            Mask {
                rows: word(micro.rows),
                features: word(s.features),
                pitch: word(pitch(s.features)),
                steps: word(s.horizon),
                first: word(micro.first),
            },
            &[self.batches.clock, self.batches.settings, self.list.values, self.lesson.masks],
        );
    }

    /// What a micro-batch adds to the training's sums. It has no path, so it has no cost.
    fn count(&self, b: &mut PlanBuilder, rows: usize) {
        let Batches { clock, y, costs, metrics, ref chunk, .. } = self.batches;
        let features = word(self.batches.sizes.features);
        b.call(
            // Whatever the clock says of chunks: the training's sums are one pass.
            Tally { rows: word(rows), steps: 0, features, chunks: u32::MAX, slot: 0 },
            &[clock, self.lesson.losses, chunk.path, y, costs, metrics],
        );
        self.total(b, rows, LOST, 1, [self.lesson.losses, metrics]);
    }

    fn total(&self, b: &mut PlanBuilder, rows: usize, to: usize, divisor: usize, buffers: [BufferId; 2]) {
        let total = Total { rows: word(rows), blocks: 1, first: word(to), divisor: word(divisor), fresh: 0 };
        b.call(total, &buffers);
    }

    /// The list on a chunk: the predictor's loss after each question.
    fn follow_chunk(&self, b: &mut PlanBuilder, at: ChunkRows) {
        let (s, chunk) = (&self.batches.sizes, &self.batches.chunk);
        let masked = self.batches.masked_chunk(self.batches.inputs());
        let (rows, predictor) = (s.evaluation_rows, self.lesson.predictor.averaged());
        let follow = Follow { rows: word(rows), steps: word(s.horizon) };
        b.call(follow, &[self.list.average, chunk.path]);
        masked.forward(b, &predictor, &self.chunk, 0..1, None, false);
        for t in 1..=s.horizon {
            masked.forward_all(b, &predictor, &self.chunk, t..t + 1, None, false);
            self.batches.loss(b, [rows; 2], None, [self.chunk.logits(), chunk.y, chunk.losses]);
            self.total(b, rows, ALONG, s.horizon, [chunk.losses, chunk.metrics]);
        }
        self.batches.tally(b, at, s.horizon, 0);
    }

    /// Each candidate on top of the list, on the chunk that was evaluated last.
    fn try_candidates(&self, b: &mut PlanBuilder) {
        let (s, chunk) = (&self.batches.sizes, &self.batches.chunk);
        let ground = Ground {
            inputs: self.batches.inputs(),
            rows: s.evaluation_rows,
            classes: s.classes,
            x: chunk.x,
            y: chunk.y,
            sum: self.chunk.sum,
            candidates: self.candidates,
            costs: self.batches.costs,
        };
        for lane in 0..s.lanes {
            b.lane(Some(lane));
            for block in self.trials.blocks() {
                self.trials.calls(b, &self.lesson.predictor.averaged(), ground, block);
            }
        }
        b.lane(None);
        b.call(
            Collect { len: word(s.features + 1), lanes: word(s.lanes) },
            &[self.trials.totals, self.batches.clock, self.scores],
        );
    }
}
