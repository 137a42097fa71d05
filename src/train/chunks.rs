//! The chunks a table is evaluated in: a section for each split, and the sums over its rows.

use super::batches::{Batches, ChunkRows};
use crate::engine::kernels as k;
use crate::engine::plan::{BufferId, PlanBuilder, Section};
use crate::nn::{pitch, word};

/// An evaluation's calls of a lane, in two parts.
pub struct ByRows<'a> {
    /// What is done with each row, whatever the others are.
    pub rows: &'a dyn Fn(&mut PlanBuilder, ChunkRows),
    /// The sums over the rows.
    pub sums: &'a dyn Fn(&mut PlanBuilder, ChunkRows),
}

impl Batches {
    /// A section that evaluates a chunk of a split on all lanes and moves on to the next; `chunk` writes the calls of
    /// a lane, whose first instance it is given.
    pub fn evaluation(
        &self,
        b: &mut PlanBuilder,
        split: usize,
        name: &str,
        chunk: impl Fn(&mut PlanBuilder, ChunkRows),
    ) -> Section {
        self.each_lane(b, split, name, |b, at| {
            self.gather_chunk(b, split, at.first);
            self.condition_chunk(b, split);
            chunk(b, at);
        })
    }

    /// The same in two parts: what is done with each row, whatever the others are, and the sums over the rows.
    pub fn evaluation_by_rows(
        &self,
        b: &mut PlanBuilder,
        split: usize,
        name: &str,
        chunk: &ByRows,
    ) -> Section {
        self.each_lane(b, split, name, |b, at| {
            b.chain(self.sizes.evaluation_rows, 1, |b| {
                self.gather_chunk(b, split, at.first);
                self.condition_chunk(b, split);
                (chunk.rows)(b, at);
            });
            (chunk.sums)(b, at);
        })
    }

    fn each_lane(
        &self,
        b: &mut PlanBuilder,
        split: usize,
        name: &str,
        calls: impl Fn(&mut PlanBuilder, ChunkRows),
    ) -> Section {
        b.section(format!("{name}.{split}"), |b| {
            for lane in 0..self.sizes.lanes {
                b.lane(Some(lane));
                calls(b, ChunkRows { split, first: lane * self.sizes.evaluation_rows });
            }
            b.lane(None);
            self.advance_clock(b, 0, 1);
        })
    }

    /// One chunk of each split under a method's policy each time the sections are run; and for the validation rows
    /// the same with a count of what was asked.
    pub fn evaluations(
        &self,
        b: &mut PlanBuilder,
        chunk: impl Fn(&mut PlanBuilder, ChunkRows),
    ) -> ([Section; 3], Section) {
        self.each_split(b, |b, split| self.evaluation(b, split, "evaluate", &chunk))
    }

    /// The same in two parts.
    pub fn evaluations_by_rows(&self, b: &mut PlanBuilder, chunk: &ByRows) -> ([Section; 3], Section) {
        self.each_split(b, |b, split| self.evaluation_by_rows(b, split, "evaluate", chunk))
    }

    fn each_split(
        &self,
        b: &mut PlanBuilder,
        evaluation: impl Fn(&mut PlanBuilder, usize) -> Section,
    ) -> ([Section; 3], Section) {
        let mut validation = None;
        let validate = b.section("validate", |b| {
            validation = Some(evaluation(b, 1));
            self.count_asked(b);
        });
        ([evaluation(b, 0), validation.unwrap_or(validate), evaluation(b, 2)], validate)
    }

    fn gather_chunk(&self, b: &mut PlanBuilder, split: usize, first: usize) {
        let (s, range) = (&self.sizes, self.sizes.splits[split]);
        let rows = k::Gather {
            rows: word(s.evaluation_rows),
            columns: word(s.columns),
            pitch: word(pitch(s.row_columns())),
            first: word(first),
            batch: word(s.chunk_rows()),
            split_start: word(range.start),
            split_len: word(range.len),
            shuffled: 0,
            chunks: word(s.chunks(split)),
        };
        self.gather_rows(b, rows, [self.chunk.x, self.chunk.y]);
    }

    /// The condition of a pass, into the rows of a chunk.
    fn condition_chunk(&self, b: &mut PlanBuilder, split: usize) {
        let s = &self.sizes;
        if s.conditions == 0 {
            return;
        }
        b.call(
            k::Condition {
                rows: word(s.evaluation_rows),
                columns: word(s.columns),
                extra: word(s.conditions),
                pitch: word(pitch(s.row_columns())),
                passes: word(s.passes),
                chunks: word(s.chunks(split)),
                ..Default::default()
            },
            // An evaluation needs no factors: nothing is written there.
            &[self.clock, self.settings, self.chunk.x, self.chunk.losses],
        );
    }

    /// A step of the greedy policy on a chunk, by logits of the features; with `stops`, that of stopping is behind them.
    pub fn greedy(&self, b: &mut PlanBuilder, step: usize, logits: BufferId, stops: bool) {
        let (s, chunk) = (&self.sizes, &self.chunk);
        b.call(
            k::Greedy {
                rows: word(s.evaluation_rows),
                step: word(step),
                features: word(s.features),
                logit_pitch: word(pitch(s.features + usize::from(stops))),
                stop: u32::from(stops),
            },
            &[logits, chunk.acquired_at, chunk.path],
        );
    }

    /// Adds the chunk's losses, answers and costs to the metrics of its pass, from those of number `slot` on.
    pub fn tally(&self, b: &mut PlanBuilder, at: ChunkRows, steps: usize, slot: usize) {
        let (s, chunk) = (&self.sizes, &self.chunk);
        b.call(
            k::Tally {
                rows: word(s.evaluation_rows),
                steps: word(steps),
                features: word(s.features),
                chunks: word(s.chunks(at.split)),
                slot: word(slot),
            },
            &[self.clock, chunk.losses, chunk.path, chunk.y, self.costs, chunk.metrics],
        );
    }

    /// What was asked in the chunk evaluated last, added to the counts.
    pub fn count_asked(&self, b: &mut PlanBuilder) {
        let (s, chunk) = (&self.sizes, &self.chunk);
        for lane in 0..s.lanes {
            b.lane(Some(lane));
            b.call(
                k::Asked {
                    rows: word(s.evaluation_rows),
                    steps: word(s.horizon),
                    features: word(s.features),
                },
                &[chunk.path, chunk.y, chunk.asked],
            );
        }
        b.lane(None);
    }
}
