//! The predictor in a plan, what the search has visited, and the sections: a training step on masks, and the validation
//! on the visited paths.

use super::config::Config;
use super::kernels::{Recall, hyper};
use crate::engine::kernels::Tally;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::methods::fixed::kernels::Total;
use crate::nn::{Dense, Rows, Tape, pitch, word};
use crate::train::{Batches, ChunkRows, Lesson, Micro, Noise, SplitRange};

/// The word of the training metrics that has the predictor's loss: the general tally leaves it zero.
const LOST: usize = 3;
/// The word of the evaluation's that has the loss on random masks: the first behind the general ones.
const RANDOM: usize = 5;

/// The method in a plan.
#[derive(Clone, Debug)]
pub struct Aaco {
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
    /// For each row of the table 1 + the number of its rollout, 0 if it has none.
    pub slots: BufferId,
    /// The path of each rollout: 1 + a feature, 0 where it has ended.
    pub visited: BufferId,
    path: BufferId,
    chunk: Tape,
    chunk_masks: BufferId,
    chunk_input: BufferId,
}

impl Aaco {
    pub(super) fn new(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        let layout = Layout::declare(b, batches.clone(), config);
        let step = layout.training_step(b);
        let (evaluate, validate) = batches.evaluations(b, |b, at| layout.evaluate_chunk(b, at));
        Self { layout, sections: Sections { step, evaluate, validate } }
    }
}

impl Layout {
    fn declare(b: &mut PlanBuilder, batches: Batches, config: &Config) -> Self {
        let s = batches.sizes.clone();
        let lesson = Lesson::declare(b, &batches, &config.hidden, config.dropout, 0);
        let all: usize = s.splits.iter().map(|split| split.len).sum();
        let rolled: usize = config.rolled([s.splits[0].len, s.splits[1].len]).iter().sum();
        let mut shared = |name: &str, len| b.buffer(name, Elem::U32, len, Scope::Shared);
        let slots = shared("slots", all);
        let visited = shared("visited", rolled.max(1) * s.horizon);
        let path = b.buffer("path", Elem::U32, s.rows * s.horizon, Scope::Lane);
        let rows = s.evaluation_rows;
        let chunk = Tape::forward_only(b, "evaluation.predictor", &lesson.predictor.stack, [rows; 2]);
        let mut reals = |name: &str, len| b.buffer(format!("evaluation.{name}"), Elem::F32, len, Scope::Lane);
        let chunk_masks = reals("masks", rows * pitch(s.features));
        let chunk_input = reals("input", rows * pitch(batches.inputs().width()));
        Self { batches, lesson, slots, visited, path, chunk, chunk_masks, chunk_input }
    }

    /// The predictor on random masks and on what the search has visited. Pretraining is the same step, as nothing is
    /// visited then; it has a name of its own for whoever looks for it.
    fn training_step(&self, b: &mut PlanBuilder) -> Section {
        let step = |b: &mut PlanBuilder| {
            self.lesson.prepare(b);
            self.batches.each_micro_batch(b, "step", |b, micro| {
                self.batches.gather(b, micro);
                self.recall_batch(b, micro);
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

    /// The masks of a micro-batch: the same rows as its gathering has.
    fn recall_batch(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.batches.sizes;
        let at = Recall {
            rows: word(micro.rows),
            first: word(micro.first),
            batch: word(s.batch),
            shuffled: u32::from(s.noise == Noise::Drawn),
            chunks: 1,
            ..Recall::default()
        };
        self.recall(b, at, s.splits[0], [self.path, self.lesson.masks]);
    }

    fn recall(&self, b: &mut PlanBuilder, at: Recall, split: SplitRange, [path, masks]: [BufferId; 2]) {
        let s = &self.batches.sizes;
        b.call(
            Recall {
                features: word(s.features),
                pitch: word(pitch(s.features)),
                steps: word(s.horizon),
                split_start: word(split.start),
                split_len: word(split.len),
                ..at
            },
            &[self.batches.clock, self.batches.settings, self.slots, self.visited, path, masks],
        );
    }

    /// What a micro-batch adds to the training's sums. It has no price.
    fn count(&self, b: &mut PlanBuilder, rows: usize) {
        let Batches { clock, y, costs, metrics, ref chunk, .. } = self.batches;
        let features = word(self.batches.sizes.features);
        b.call(
            // Whatever the clock says of chunks: the training's sums are one pass.
            Tally { rows: word(rows), steps: 0, features, chunks: u32::MAX, slot: 0 },
            &[clock, self.lesson.losses, chunk.path, y, costs, metrics],
        );
        self.total(b, rows, LOST, [self.lesson.losses, metrics]);
    }

    fn total(&self, b: &mut PlanBuilder, rows: usize, to: usize, buffers: [BufferId; 2]) {
        b.call(Total { rows: word(rows), blocks: 1, first: word(to), divisor: 1, fresh: 0 }, &buffers);
    }

    /// A chunk on random masks, whose loss the pretraining is judged by, then at the ends of the visited paths.
    fn evaluate_chunk(&self, b: &mut PlanBuilder, at: ChunkRows) {
        let (s, chunk) = (&self.batches.sizes, &self.batches.chunk);
        let rows = s.evaluation_rows;
        let recall = |whole| Recall {
            rows: word(rows),
            first: word(at.first),
            batch: word(s.chunk_rows()),
            shuffled: 0,
            chunks: word(s.chunks(at.split)),
            whole,
            judged: 1,
            ..Recall::default()
        };
        self.recall(b, recall(0), s.splits[at.split], [chunk.path, self.chunk_masks]);
        self.predict_chunk(b);
        self.total(b, rows, RANDOM, [chunk.losses, chunk.metrics]);
        self.recall(b, recall(1), s.splits[at.split], [chunk.path, self.chunk_masks]);
        self.predict_chunk(b);
        self.batches.tally(b, at, s.horizon, 0);
    }

    /// The losses of a chunk under its masks.
    fn predict_chunk(&self, b: &mut PlanBuilder) {
        let (s, chunk) = (&self.batches.sizes, &self.batches.chunk);
        let rows = s.evaluation_rows;
        let mask_stride = pitch(s.features);
        let dense = Dense { x: chunk.x, masks: self.chunk_masks, mask_stride, input: self.chunk_input };
        self.batches.inputs().expand(b, rows, 0, false, dense);
        let at = Rows { first: 0, count: rows };
        self.lesson.predictor.averaged().forward(b, 0, at, Some(dense.at(0)), &self.chunk, None);
        self.batches.loss(b, [rows; 2], None, [self.chunk.logits(), chunk.y, chunk.losses]);
    }
}
