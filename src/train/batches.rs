//! The table on the device, batches of it, and the chunks it is evaluated in.

use super::method::Demand;
use super::sizes::Sizes;
use crate::data::Dataset;
use crate::engine::kernels as k;
use crate::engine::kernels::words::{METRICS, clock, losses};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};
use crate::engine::{Program, groups};
use crate::nn::{Inputs, Masked, Optimizer, Weights, pitch, word};
use crate::problem::Problem;

/// A micro-batch: where it starts in the batch, its instances, and whether its gradients are added
/// to those of an earlier one of its lane.
#[derive(Clone, Copy, Debug)]
pub struct Micro {
    /// Its first instance.
    pub first: usize,
    /// Its instances.
    pub rows: usize,
    /// Whether gradients are added to what is there.
    pub accumulate: bool,
}

/// Passes over the validation rows at most: a slice brings back the sums of each.
pub const MOST_PASSES: usize = 8;

/// Which rows a lane evaluates: of which split, and where they start in a chunk.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRows {
    /// The split.
    pub split: usize,
    /// The lane's first row.
    pub first: usize,
}

/// Buffers of an evaluation chunk.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// The rows.
    pub x: BufferId,
    /// Their labels.
    pub y: BufferId,
    /// The step each feature was acquired at.
    pub acquired_at: BufferId,
    /// What was done at each step.
    pub path: BufferId,
    /// Losses and guesses.
    pub losses: BufferId,
    /// Sums over the rows.
    pub metrics: BufferId,
    /// Counts of what was asked at each step.
    pub asked: BufferId,
}

/// The general buffers of a run.
#[derive(Clone, Debug)]
pub struct Batches {
    /// Sizes.
    pub sizes: Sizes,
    /// Bound where a kernel's optional input is not used.
    pub none: BufferId,
    /// The clock.
    pub clock: BufferId,
    /// The settings, general and the method's.
    pub settings: BufferId,
    /// Powers of Adam's decays.
    pub powers: BufferId,
    /// The first step with a gradient that was not finite.
    pub status: BufferId,
    /// Which columns a feature reveals.
    pub groups: BufferId,
    /// The same with the columns of what networks are told besides, which are known from the start.
    pub conditioned_groups: BufferId,
    /// The features' costs, then the classes' weights.
    pub costs: BufferId,
    /// Each column's standard deviation.
    pub spread: BufferId,
    /// The table's rows.
    pub data_x: BufferId,
    /// Their labels.
    pub data_y: BufferId,
    /// Sums over the training instances.
    pub metrics: BufferId,
    /// The micro-batch's rows.
    pub x: BufferId,
    /// Their labels.
    pub y: BufferId,
    /// What is evaluated.
    pub chunk: Chunk,
}

impl Batches {
    pub(super) fn declare(b: &mut PlanBuilder, sizes: Sizes, demand: &Demand) -> Self {
        let s = &sizes;
        let data: usize = s.splits.iter().map(|split| split.len).sum();
        let mut shared = |name: &str, elem, len| b.buffer(name, elem, len, Scope::Shared);
        let none = shared("none", Elem::F32, 4);
        let clock = shared("clock", Elem::U32, clock::LEN);
        let settings = shared("settings", Elem::F32, demand.settings);
        let powers = shared("powers", Elem::F32, 2 * demand.groups);
        let status = shared("status", Elem::U32, 4);
        let groups = shared("groups", Elem::U32, s.features + 1 + 2 * s.columns);
        let conditioned_groups = match s.told() {
            0 => groups,
            _ => shared("groups.conditioned", Elem::U32, s.features + 1 + 2 * s.row_columns()),
        };
        let costs = shared("costs", Elem::F32, s.features + s.classes);
        let spread = shared("spread", Elem::F32, s.columns);
        let data_x = match s.bytes {
            None => shared("data.x", Elem::F32, data * s.columns),
            Some(_) => shared("data.x", Elem::U32, (data * s.columns).div_ceil(4)),
        };
        let data_y = shared("data.y", Elem::U32, data);
        let rows = s.evaluation_rows;
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        let metrics = reals("metrics", METRICS);
        let x = reals("x", s.rows * pitch(s.row_columns()));
        let chunk_x = reals("evaluation.x", rows * pitch(s.row_columns()));
        let chunk_losses = reals("evaluation.losses", rows * losses::LEN);
        let chunk_metrics = reals("evaluation.metrics", MOST_PASSES * METRICS);
        let mut words = |name: &str, len| b.buffer(name, Elem::U32, len, Scope::Lane);
        let chunk = Chunk {
            x: chunk_x,
            y: words("evaluation.y", rows),
            acquired_at: words("evaluation.acquired_at", rows * s.features),
            path: words("evaluation.path", rows * s.horizon),
            losses: chunk_losses,
            metrics: chunk_metrics,
            asked: words("evaluation.asked", s.horizon * (s.features + 1)),
        };
        let y = words("y", s.rows);
        Self {
            none,
            clock,
            settings,
            powers,
            status,
            groups,
            conditioned_groups,
            costs,
            spread,
            data_x,
            data_y,
            metrics,
            x,
            y,
            chunk,
            sizes,
        }
    }

    /// Writes the table, the costs and the clock, and what everything starts from.
    pub(super) fn upload(&self, program: &mut Program, problem: &Problem, data: &Dataset, seed: u64) {
        let s = &self.sizes;
        let costs: Vec<f64> = problem
            .features()
            .iter()
            .map(|f| f.cost)
            .chain(problem.class_weights().iter().copied())
            .collect();
        program.write_words(self.groups, 0, &groups::words(s.features, problem.group_of_column()));
        if s.told() > 0 {
            let known = std::iter::repeat_n(word(s.features), s.told());
            let all: Vec<u32> = problem.group_of_column().iter().copied().chain(known).collect();
            program.write_words(self.conditioned_groups, 0, &groups::words(s.features, &all));
        }
        program.write(self.costs, 0, &costs);
        if s.input_noise {
            program.write(self.spread, 0, &data.spread());
        }
        match data.packed() {
            Some(words) => program.write_words(self.data_x, 0, &words),
            None => {
                for (split, at) in data.splits().iter().zip(s.splits) {
                    program.write(self.data_x, at.start * s.columns, &split.x);
                }
            }
        }
        for (split, at) in data.splits().iter().zip(s.splits) {
            program.write_words(self.data_y, at.start, &split.y);
        }
        let powers = program.plan().buffer(self.powers).len;
        program.write(self.powers, 0, &vec![1.0; powers]);
        program.write_words(self.status, 0, &[u32::MAX]);
        program.write_words(self.clock, clock::SEED_LO, &[seed as u32, (seed >> 32) as u32]);
    }

    /// Which columns a feature reveals, and the widths.
    pub fn inputs(&self) -> Inputs {
        let Sizes { columns, features, .. } = self.sizes;
        Inputs { groups: self.groups, columns, row_columns: self.sizes.row_columns(), features }
    }

    /// The same for a network that also reads the condition, and what cannot be had.
    pub fn conditioned_inputs(&self) -> Inputs {
        let columns = self.sizes.row_columns();
        Inputs { groups: self.conditioned_groups, columns, ..self.inputs() }
    }

    /// The evaluation chunk's rows under hard masks.
    pub fn masked_chunk(&self, inputs: Inputs) -> Masked {
        let Chunk { x, path, acquired_at, .. } = self.chunk;
        Masked { inputs, x, path, acquired_at, rows: self.sizes.evaluation_rows }
    }

    /// What Adam reads besides the weights.
    pub fn optimizer(&self) -> Optimizer {
        let Self { settings, powers, clock, status, .. } = *self;
        Optimizer { settings, powers, clock, status, lanes: self.sizes.lanes }
    }

    /// Writes the calls of each micro-batch on its lane.
    pub fn each_micro_batch(
        &self,
        b: &mut PlanBuilder,
        name: &str,
        mut calls: impl FnMut(&mut PlanBuilder, Micro),
    ) {
        let lanes = self.sizes.lanes;
        for (index, (first, rows)) in self.sizes.micro_batches().enumerate() {
            b.lane(Some(index % lanes));
            let micro = Micro { first, rows, accumulate: index >= lanes };
            b.section(format!("{name}.micro.{index}"), |b| calls(b, micro));
        }
        b.lane(None);
    }

    /// The same where something follows each micro-batch that is no lane's own, such as writing into what all share: it is
    /// given the lane, and comes when every lane has done its next one, so that they run side by side.
    pub fn each_round(
        &self,
        b: &mut PlanBuilder,
        name: &str,
        mut calls: impl FnMut(&mut PlanBuilder, Micro),
        mut after: impl FnMut(&mut PlanBuilder, Micro, usize),
    ) {
        let lanes = self.sizes.lanes;
        let all: Vec<(usize, usize)> = self.sizes.micro_batches().collect();
        for (round, micros) in all.chunks(lanes).enumerate() {
            let micro = |&(first, rows): &(usize, usize)| Micro { first, rows, accumulate: round > 0 };
            for (lane, at) in micros.iter().enumerate() {
                b.lane(Some(lane));
                b.section(format!("{name}.micro.{}", round * lanes + lane), |b| calls(b, micro(at)));
            }
            b.lane(None);
            for (lane, at) in micros.iter().enumerate() {
                after(b, micro(at), lane);
            }
        }
    }

    /// Moves the powers of Adam's decays on, of some optimiser groups, between two updates of one training step.
    pub fn advance_powers(&self, b: &mut PlanBuilder, slots: u32) {
        b.call(k::AdvancePowers { slots }, &[self.powers, self.settings]);
    }

    /// Adam of some optimiser groups, each with the word of the settings that has its rate, then the averages; and the
    /// clock moves on.
    pub fn update(&self, b: &mut PlanBuilder, groups: &[(Weights, usize)]) {
        let optimizer = self.optimizer();
        b.together(|b| groups.iter().for_each(|(weights, rate)| weights.step(b, *rate, &optimizer)));
        b.together(|b| {
            groups.iter().for_each(|(weights, _)| weights.follow(b, &optimizer));
            self.advance(b, groups.iter().map(|(weights, _)| 1 << weights.slot).sum());
        });
    }

    /// Moves the clock on after a training step of some optimiser groups, a bit for each.
    pub fn advance(&self, b: &mut PlanBuilder, slots: u32) {
        self.advance_clock(b, slots, 0);
    }

    pub(super) fn advance_clock(&self, b: &mut PlanBuilder, slots: u32, chunk: u32) {
        let batches = word(self.sizes.batches);
        b.call(k::Advance { slots, chunk, batches }, &[self.clock, self.powers, self.settings]);
    }

    /// The losses of `rows` rows, whose labels repeat after `batch`, and their unit gradient; with `row_weights`
    /// (buffer, stride, word) the gradient is multiplied by each row's.
    pub fn loss(
        &self,
        b: &mut PlanBuilder,
        [batch, rows]: [usize; 2],
        row_weights: Option<(BufferId, usize, usize)>,
        [logits, y, losses]: [BufferId; 3],
    ) {
        let s = &self.sizes;
        let (weights, stride, at) = row_weights.unwrap_or((self.none, 0, 0));
        b.call(
            k::Loss {
                rows: word(rows),
                batch: word(batch),
                classes: word(s.classes),
                pitch: word(pitch(s.classes)),
                weights: word(s.features),
                weight_stride: word(stride),
                weight_word: word(at),
                from_row: 0,
            },
            &[logits, y, self.costs, losses, weights],
        );
    }
}
