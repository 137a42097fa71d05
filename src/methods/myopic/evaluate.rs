//! The greedy selector on a chunk of a split.

use super::kernels::{Concrete, metrics};
use super::plan::{Layout, Relaxed};
use crate::engine::kernels::{Greedy, MeanLoss};
use crate::engine::plan::PlanBuilder;
use crate::nn::{Rows, pitch, word};
use crate::train::{ChunkRows, Micro};

impl Layout {
    /// The greedy selector on a chunk to the horizon: the predictor's loss after each acquisition under hard masks, and
    /// where relaxed ones are trained, on the relaxed choice.
    pub(super) fn greedy_chunk(&self, b: &mut PlanBuilder, at: ChunkRows) {
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
            if let Some(soft) = &self.chunk_relaxed {
                self.soft_chunk(b, soft, t, at.first);
                self.mean_loss(b, counted(metrics::SOFT), soft.losses, false);
            }
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
    fn soft_chunk(&self, b: &mut PlanBuilder, soft: &Relaxed, t: usize, first: usize) {
        let (s, chunk) = (&self.batches.sizes, &self.batches.chunk);
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
