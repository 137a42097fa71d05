//! Dropout of a network's hidden layers: where its multipliers lie, and when they are drawn.

use super::batches::{Batches, Micro};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};
use crate::nn::{pitch, word};
use crate::random::stream;

/// Where the number of a turn begins in that of its stream: above those of all layers.
const TURN_BITS: u32 = 16;

/// The multipliers of each hidden layer; none are read or drawn where nothing is dropped.
#[derive(Clone, Debug)]
pub struct Dropout {
    /// Units are dropped whose 16 bits are below this.
    threshold: u32,
    widths: Vec<usize>,
    buffers: Vec<BufferId>,
}

impl Dropout {
    /// For a tape of so many rows; `rate` is the probability that a unit is dropped.
    pub fn declare(b: &mut PlanBuilder, rate: f64, hidden: &[usize], rows: usize) -> Self {
        Self::named(b, "dropout", rate, hidden, rows)
    }

    /// The same for a second network: with a name for its buffers.
    pub fn named(b: &mut PlanBuilder, name: &str, rate: f64, hidden: &[usize], rows: usize) -> Self {
        let threshold = (rate * 65536.0).round() as u32;
        let rows = if threshold > 0 { rows } else { 0 };
        let layers = hidden.iter().enumerate().map(|(layer, &width)| {
            b.buffer(format!("{name}.{layer}"), Elem::F32, rows * pitch(width), Scope::Lane)
        });
        Self { threshold, buffers: layers.collect(), widths: hidden.to_vec() }
    }

    /// What a network's way forward and back is told.
    pub fn multipliers(&self) -> Option<&[BufferId]> {
        (self.threshold > 0).then_some(&self.buffers[..])
    }

    /// Draws them for some steps of a micro-batch.
    pub fn draw(&self, b: &mut PlanBuilder, batches: &Batches, micro: Micro, steps: usize) {
        self.draw_turn(b, batches, micro, steps, 0);
    }

    /// The same where a training step draws several times: each turn has bits of its own.
    pub fn draw_turn(&self, b: &mut PlanBuilder, batches: &Batches, micro: Micro, steps: usize, turn: usize) {
        if self.threshold == 0 {
            return;
        }
        for (layer, (&width, &multiplier)) in self.widths.iter().zip(&self.buffers).enumerate() {
            let stream = stream::dropout(word(layer)) + (word(turn) << TURN_BITS);
            batches.draw_dropout(b, micro, steps, (stream, width), self.threshold, multiplier);
        }
    }
}
