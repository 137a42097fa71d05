//! What a micro-batch begins with: its rows, and everything that is drawn for them.

use super::batches::{Batches, Micro};
use super::sizes::Noise;
use crate::engine::kernels as k;
use crate::engine::plan::{BufferId, PlanBuilder};
use crate::nn::{pitch, word};

/// Which masks to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Masks {
    /// Every feature is seen.
    All,
    /// Each feature is seen with probability one half.
    Halves,
    /// Of uniform cardinality: between none and this share of the features are seen.
    Uniform {
        /// The random stream.
        stream: u32,
        /// The largest share.
        most: f64,
    },
}

impl Batches {
    /// The rows of a micro-batch, with noise if they get some.
    pub fn gather(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.sizes;
        let rows = k::Gather {
            rows: word(micro.rows),
            columns: word(s.columns),
            pitch: word(pitch(s.row_columns())),
            first: word(micro.first),
            batch: word(s.batch),
            split_start: word(s.splits[0].start),
            split_len: word(s.splits[0].len),
            shuffled: u32::from(s.noise == Noise::Drawn),
            chunks: 1,
        };
        self.gather_rows(b, rows, [self.x, self.y]);
        if s.input_noise {
            b.call(
                k::InputNoise {
                    rows: word(micro.rows),
                    columns: word(s.columns),
                    pitch: word(pitch(s.row_columns())),
                    first: word(micro.first),
                },
                &[self.clock, self.spread, self.settings, self.x],
            );
        }
    }

    /// Gathers rows out of the data, which are reals or bytes.
    pub(super) fn gather_rows(&self, b: &mut PlanBuilder, rows: k::Gather, [x, y]: [BufferId; 2]) {
        let buffers = [self.clock, self.data_x, self.data_y, x, y];
        match self.sizes.bytes {
            Some(divisor) => b.call(rows.of_bytes(divisor), &buffers),
            None => b.call(rows, &buffers),
        }
    }

    /// Draws the dropout multipliers of a layer, given by its random stream and its width, for some steps of a
    /// micro-batch.
    pub fn draw_dropout(
        &self,
        b: &mut PlanBuilder,
        micro: Micro,
        steps: usize,
        (stream, width): (u32, usize),
        threshold: u32,
        multiplier: BufferId,
    ) {
        b.call(
            k::Dropout {
                rows: word(micro.rows),
                steps: word(steps),
                pitch: word(pitch(width)),
                first: word(micro.first),
                threshold,
                stream,
            },
            &[self.clock, multiplier],
        );
    }

    /// Fills a noise tape with Gumbel numbers for some steps of a micro-batch.
    pub fn draw_gumbel(
        &self,
        b: &mut PlanBuilder,
        micro: Micro,
        steps: usize,
        actions: usize,
        gumbel: BufferId,
    ) {
        b.call(
            k::Gumbel {
                rows: word(micro.rows),
                steps: word(steps),
                actions: word(actions),
                pitch: word(pitch(actions)),
                first: word(micro.first),
            },
            &[self.clock, gumbel],
        );
    }

    /// Draws masks into a buffer, so far apart.
    pub fn draw_masks(
        &self,
        b: &mut PlanBuilder,
        micro: Micro,
        (masks, mask_stride): (BufferId, usize),
        which: Masks,
    ) {
        let [rows, features, mask_stride, first] =
            [micro.rows, self.sizes.features, mask_stride, micro.first].map(word);
        let buffers = [self.clock, masks];
        match which {
            Masks::All | Masks::Halves => {
                let all = u32::from(which == Masks::All);
                b.call(k::RandomMask { rows, features, mask_stride, first, all }, &buffers);
            }
            Masks::Uniform { stream, most } => {
                let most = (most.min(1.0) * 65536.0).ceil() as u32;
                b.call(k::UniformMask { rows, features, mask_stride, first, most, stream }, &buffers);
            }
        }
    }

    /// Draws a condition for each instance of a micro-batch (where there are none, every factor is 1): into its row, and its factor into a word of a row of
    /// `factors` (buffer, stride, word).
    pub fn condition(
        &self,
        b: &mut PlanBuilder,
        micro: Micro,
        (factors, stride, at): (BufferId, usize, usize),
    ) {
        let s = &self.sizes;
        b.call(
            k::Condition {
                rows: word(micro.rows),
                columns: word(s.columns),
                extra: word(s.conditions),
                pitch: word(pitch(s.row_columns())),
                first: word(micro.first),
                batch: word(s.batch),
                passes: 0,
                chunks: 0,
                stride: word(stride),
                word: word(at),
            },
            &[self.clock, self.settings, self.x, factors],
        );
    }

    /// Opens the features of each instance of a micro-batch: all of them, or, of the share of the instances that the
    /// settings say, a random part.
    /// What cannot be had is marked in `acquired_at`, and in the row where the networks are told. (Evaluations have
    /// everything, and nobody else writes there: their rows say so from the beginning.)
    pub fn open(&self, b: &mut PlanBuilder, micro: Micro, acquired_at: BufferId) {
        let s = &self.sizes;
        b.call(
            k::Available {
                rows: word(micro.rows),
                features: word(s.features),
                first: word(micro.first),
                told: u32::from(s.availability),
                column: word(s.columns + s.conditions),
                pitch: word(pitch(s.row_columns())),
            },
            &[self.clock, self.settings, acquired_at, self.x],
        );
    }
}
