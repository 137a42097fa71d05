//! SEFA on a chunk of a split: encoded once, then from step to step the belief and the score of every feature.

use super::kernels::{ClassGrad, Score, SeenLatents, metrics};
use super::plan::Layout;
use crate::engine::kernels::MeanLoss;
use crate::engine::kernels::words::losses;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};
use crate::nn::{Network, Operand, Rows, Tape, Weights, pitch, word};
use crate::train::{Batches, ChunkRows};

/// Buffers of an evaluation.
#[derive(Clone, Debug)]
pub(super) struct Evaluation {
    /// Networks with their norms folded in, where the group has its weights.
    folded: BufferId,
    predictor: Network,
    input: BufferId,
    /// Each encoder layer's outputs: for all rows, and one that sees nothing.
    encoded: Vec<BufferId>,
    z: BufferId,
    dz: BufferId,
    tape: Tape,
    /// The same tape with the gradient of a class's probability in the logits' place.
    back: Tape,
    belief: BufferId,
    scores: BufferId,
}

impl Evaluation {
    pub fn declare(b: &mut PlanBuilder, of: &Layout) -> Self {
        let s = &of.batches.sizes;
        let (rows, blocks) = (s.evaluation_rows, of.encoder.stack.blocks);
        let all = rows * of.validation_samples;
        let stack = of.predictor.stack.folded();
        let tape = Tape::declare(b, "evaluation.predictor", &stack, [0, all, 0]);
        let mut reals = |name: &str, len| b.buffer(format!("evaluation.{name}"), Elem::F32, len, Scope::Lane);
        let (folded, transposed) = (reals("folded", of.weights.len), reals("transposed", of.weights.len));
        let mut back = tape.clone();
        back.outputs.pop();
        back.outputs.push(reals("class_grad", all * pitch(s.classes)));
        let encoded = of.encoder.stack.layers.iter().enumerate().map(|(index, layer)| {
            reals(&format!("encoder{}", index + 1), blocks * (rows + 1) * pitch(layer.layer.outputs))
        });
        let encoded = encoded.collect();
        let inputs = of.encoder.stack.layers[0].layer.inputs;
        Self {
            folded,
            predictor: Network::new(
                stack,
                Weights { values: folded, transposed, ..of.weights },
                of.batches.none,
            ),
            input: reals("input", blocks * (rows + 1) * pitch(inputs)),
            encoded,
            z: reals("latents", all * pitch(of.latents())),
            dz: reals("latents.grad", all * pitch(of.latents())),
            tape,
            back,
            belief: reals("belief", rows * pitch(s.classes)),
            scores: reals("scores", rows * pitch(s.features)),
        }
    }

    /// A chunk to the horizon: the loss before anything is known and after each acquisition, which decides what is kept.
    pub fn chunk(&self, b: &mut PlanBuilder, of: &Layout, at: ChunkRows) {
        let (s, chunk) = (&of.batches.sizes, &of.batches.chunk);
        let (rows, samples) = (s.evaluation_rows, of.validation_samples);
        self.encode(b, of);
        let along = MeanLoss {
            rows: word(rows),
            batch: word(rows),
            divisor: word(s.horizon + 1),
            stride: word(losses::LEN),
            at: word(losses::LOSS),
            word: word(metrics::ALONG),
            training: 0,
        };
        let loss = of.mixture(rows, samples, false);
        for t in 0..=s.horizon {
            self.latents(b, of, t);
            let input = Some(Operand::at(self.z, 0));
            let all = Rows { first: 0, count: rows * samples };
            self.predictor.forward(b, 0, all, input, &self.tape, None);
            let logits = self.tape.logits();
            b.call(loss, &[logits, chunk.y, of.batches.costs, chunk.losses, self.belief]);
            b.call(along, &[chunk.losses, chunk.y, chunk.metrics]);
            if t < s.horizon {
                self.score(b, of);
                of.batches.greedy(b, t, self.scores, false);
            }
        }
        of.batches.tally(b, at, s.horizon, 0);
    }

    /// What every feature looks like once it is acquired, and before.
    fn encode(&self, b: &mut PlanBuilder, of: &Layout) {
        let (s, chunk) = (&of.batches.sizes, &of.batches.chunk);
        of.encoder.fold(b, self.folded);
        of.predictor.fold(b, self.folded);
        self.predictor.transpose(b, 0..self.predictor.stack.layers.len());
        of.normal_scores(b, s.evaluation_rows, of.weights.average, chunk.x);
        let inputs = of.block_inputs(s.evaluation_rows, false);
        b.call(inputs, &[of.batches.groups, chunk.x, of.batches.none, self.input]);
        of.encoder.forward_folded(b, self.folded, s.evaluation_rows + 1, self.input, &self.encoded);
    }

    fn latents(&self, b: &mut PlanBuilder, of: &Layout, step: usize) {
        let s = &of.batches.sizes;
        let latents = SeenLatents {
            rows: word(s.evaluation_rows),
            samples: word(of.validation_samples),
            blocks: word(of.encoder.stack.blocks),
            features: word(s.features),
            latent: word(of.latent),
            heads_pitch: word(pitch(2 * of.latent)),
            z_pitch: word(pitch(of.latents())),
            noisy: u32::from(of.noisy),
            step: word(step),
        };
        let heads = self.encoded[self.encoded.len() - 1];
        b.call(latents, &[heads, of.batches.chunk.acquired_at, of.samples, self.z]);
    }

    /// The score of every feature: each class's probability back to the latents. Of two classes, one says it all.
    fn score(&self, b: &mut PlanBuilder, of: &Layout) {
        let s = &of.batches.sizes;
        let all = Rows { first: 0, count: s.evaluation_rows * of.validation_samples };
        let classes = if s.classes == 2 { 1 } else { s.classes };
        for class in 0..classes {
            let grad = ClassGrad {
                rows: word(all.count),
                classes: word(s.classes),
                pitch: word(pitch(s.classes)),
                label: word(class),
            };
            b.call(grad, &[self.tape.logits(), self.back.logits()]);
            self.predictor.backward_hidden(b, all, &self.back, None);
            self.predictor.backward_input(b, all, &self.back, self.dz);
            let score = Score {
                rows: word(s.evaluation_rows),
                samples: word(of.validation_samples),
                blocks: word(of.encoder.stack.blocks),
                features: word(s.features),
                latent: word(of.latent),
                z_pitch: word(pitch(of.latents())),
                belief_pitch: word(pitch(s.classes)),
                scores_pitch: word(pitch(s.features)),
                label: word(class),
                whole: u32::from(classes == 1),
            };
            let Batches { costs, .. } = of.batches;
            b.call(score, &[self.dz, self.belief, costs, self.scores]);
        }
    }
}
