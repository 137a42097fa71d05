//! SEFA's networks, tape and training step, forward and backward.

use super::config::Config;
use super::kernels::{hyper, stream};
use super::knots::KNOTS;
use crate::engine::kernels::words::{losses, metrics as counted};
use crate::engine::kernels::{
    BlockInputs, LatentGrad, Latents, MeanLoss, MixtureLoss, NormalScores, Normals,
};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::nn::{NormedNetwork, NormedStack, NormedTape, Weights, pitch, word};
use crate::problem::Problem;
use crate::train::{Batches, Masks, Micro, Noise};

/// The method in a plan.
#[derive(Clone, Debug)]
pub struct Sefa {
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

/// How wide everything is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Widths {
    /// Encoders: one a feature, and one for what is known from the start, if there is something.
    pub blocks: usize,
    /// Of an encoder: the mask and the columns of the feature that has most, the hidden layers, means and deviations.
    pub encoder: Vec<usize>,
    /// Of the predictor: all latents, the hidden layers, the classes.
    pub predictor: Vec<usize>,
}

impl Widths {
    /// For a problem.
    pub fn new(problem: &Problem, config: &Config) -> Self {
        let (features, classes) = (problem.features().len(), problem.classes().len());
        Self::of(config, [features, classes], [problem.known_columns(), problem.widest()])
    }

    fn of(config: &Config, [features, classes]: [usize; 2], [known, most]: [usize; 2]) -> Self {
        let blocks = features + usize::from(known > 0);
        Self {
            blocks,
            encoder: [&[1 + most][..], &config.encoder, &[2 * config.latent]].concat(),
            predictor: [&[blocks * config.latent][..], &config.hidden, &[classes]].concat(),
        }
    }
}

/// Networks and tape.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub batches: Batches,
    pub weights: Weights,
    pub encoder: NormedNetwork,
    pub predictor: NormedNetwork,
    /// Where the columns' knots lie among the weights.
    pub knots: usize,
    /// The noise of an evaluation's samples.
    pub samples: BufferId,
    pub latent: usize,
    pub training_samples: usize,
    pub validation_samples: usize,
    pub noisy: bool,
    masks: BufferId,
    input: BufferId,
    noise: BufferId,
    z: BufferId,
    dz: BufferId,
    paid: BufferId,
    losses: BufferId,
    belief: BufferId,
    encoder_tape: NormedTape,
    predictor_tape: NormedTape,
}

impl Sefa {
    pub(super) fn new(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        let layout = Layout::declare(b, batches.clone(), config);
        let evaluation = super::evaluate::Evaluation::declare(b, &layout);
        // It learns on masks alone, which is what other methods do before anything else.
        let mut step = None;
        let warm_up = b.section("warm_up", |b| step = Some(layout.training_step(b)));
        let (evaluate, validate) = batches.evaluations(b, |b, at| evaluation.chunk(b, &layout, at));
        Self { layout, sections: Sections { step: step.unwrap_or(warm_up), evaluate, validate } }
    }
}

impl Layout {
    fn declare(b: &mut PlanBuilder, batches: Batches, config: &Config) -> Self {
        let s = batches.sizes.clone();
        let (rows, widths) =
            (s.rows, Widths::of(config, [s.features, s.classes], [s.known_columns, s.widest]));
        let encoder = NormedStack::new(0, widths.blocks, &widths.encoder, true);
        let predictor = NormedStack::new(encoder.end(), 1, &widths.predictor, false);
        let knots = predictor.end();
        let weights = Weights::declare(b, super::NAME, knots + 2 * KNOTS * s.columns, 0);
        let (samples, validation_samples) =
            (config.taken(config.training_samples), config.taken(config.validation_samples));
        let encoder_tape = NormedTape::declare(b, "encoder", &encoder, rows);
        let predictor_tape = NormedTape::declare(b, "predictor", &predictor, rows * samples);
        let latents = pitch(widths.predictor[0]);
        let shared = b.buffer("samples", Elem::F32, validation_samples * latents, Scope::Shared);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        Self {
            masks: reals("masks", rows * pitch(s.features)),
            input: reals("input", widths.blocks * rows * pitch(widths.encoder[0])),
            noise: reals("noise", rows * samples * latents),
            z: reals("latents", rows * samples * latents),
            dz: reals("latents.grad", rows * samples * latents),
            paid: reals("divergence", rows * latents),
            losses: reals("losses", rows * losses::LEN),
            belief: reals("belief", rows * pitch(s.classes)),
            encoder: NormedNetwork::new(encoder, weights, batches.none),
            predictor: NormedNetwork::new(predictor, weights, batches.none),
            batches,
            weights,
            knots,
            samples: shared,
            latent: config.latent,
            training_samples: samples,
            validation_samples,
            noisy: !config.deterministic,
            encoder_tape,
            predictor_tape,
        }
    }

    /// Numbers of all latents of an instance.
    pub fn latents(&self) -> usize {
        self.predictor.stack.layers[0].layer.inputs
    }

    /// One step on masks of uniform cardinality. The batch is one micro-batch, and the running moments lie among the
    /// weights, so nothing of it is a lane's.
    fn training_step(&self, b: &mut PlanBuilder) -> Section {
        let s = &self.batches.sizes;
        let micro = Micro { first: 0, rows: s.rows, accumulate: false };
        b.section("step", |b| {
            self.batches.gather(b, micro);
            self.normal_scores(b, s.rows, self.weights.values, self.batches.x);
            if s.noise == Noise::Drawn {
                self.draw(b, micro);
            }
            self.forward(b, s.rows);
            self.backward(b, s.rows);
            self.weights.adam(b, hyper::RATE, &self.batches.optimizer());
            self.batches.advance(b, 1);
        })
    }

    /// The masks, and the noise of the latents.
    fn draw(&self, b: &mut PlanBuilder, micro: Micro) {
        let s = &self.batches.sizes;
        let masks = Masks::Uniform { stream: stream::CARDINALITY, most: 1.0 };
        self.batches.draw_masks(b, micro, (self.masks, pitch(s.features)), masks);
        if self.noisy {
            let normals = Normals {
                rows: word(micro.rows),
                samples: word(self.training_samples),
                pitch: word(pitch(self.latents())),
                first: word(micro.first),
                stream: stream::NOISE,
            };
            b.call(normals, &[self.batches.clock, self.noise]);
        }
    }

    fn forward(&self, b: &mut PlanBuilder, rows: usize) {
        let inputs = self.block_inputs(rows, true);
        b.call(inputs, &[self.batches.groups, self.batches.x, self.masks, self.input]);
        self.encoder.forward(b, rows, self.input, &self.encoder_tape);
        let g = self.gradient(rows);
        let latents = Latents {
            rows: g.rows,
            samples: g.samples,
            blocks: g.blocks,
            latent: g.latent,
            heads_pitch: g.heads_pitch,
            z_pitch: g.z_pitch,
            noisy: g.noisy,
        };
        b.call(latents, &[self.encoder_tape.result(), self.noise, self.z]);
        self.predictor.forward(b, rows * self.training_samples, self.z, &self.predictor_tape);
        let logits = self.predictor_tape.result();
        let loss = self.mixture(rows, self.training_samples, true);
        b.call(loss, &[logits, self.batches.y, self.batches.costs, self.losses, self.belief]);
    }

    fn backward(&self, b: &mut PlanBuilder, rows: usize) {
        let (all, batch) = (rows * self.training_samples, self.batches.sizes.batch);
        self.predictor.backward(b, all, self.z, &self.predictor_tape, batch, Some(self.dz));
        let (heads, to) = (self.encoder_tape.result(), self.encoder_tape.result_grad());
        let settings = self.batches.settings;
        b.call(self.gradient(rows), &[self.dz, heads, self.noise, settings, to, self.paid]);
        self.encoder.backward(b, rows, self.input, &self.encoder_tape, batch, None);
        self.count(b, rows);
    }

    /// The losses, and what the divergence costs, into the metrics.
    fn count(&self, b: &mut PlanBuilder, rows: usize) {
        let mean = MeanLoss { rows: word(rows), batch: word(rows), divisor: 1, ..MeanLoss::default() };
        let loss = MeanLoss { stride: word(losses::LEN), at: word(losses::LOSS), training: 1, ..mean };
        // Every number of the divergence is a row of its own: all rows of a batch have labels.
        let divergence = MeanLoss { rows: word(rows * pitch(self.latents())), stride: 1, ..mean };
        let (y, metrics) = (self.batches.y, self.batches.metrics);
        for (call, from, at) in [
            (loss, self.losses, counted::OBJECTIVE),
            (divergence, self.paid, counted::OBJECTIVE),
            (divergence, self.paid, counted::OWN),
        ] {
            b.call(MeanLoss { word: word(at), ..call }, &[from, y, metrics]);
        }
    }

    /// Columns through their empirical distributions, in place.
    pub fn normal_scores(&self, b: &mut PlanBuilder, rows: usize, values: BufferId, x: BufferId) {
        let s = &self.batches.sizes;
        let scores = NormalScores {
            rows: word(rows),
            columns: word(s.columns),
            pitch: word(pitch(s.row_columns())),
            knots: word(KNOTS),
            at: word(self.knots),
        };
        b.call(scores, &[values, x]);
    }

    pub fn block_inputs(&self, rows: usize, given: bool) -> BlockInputs {
        let s = &self.batches.sizes;
        BlockInputs {
            rows: word(rows),
            columns: word(s.columns),
            features: word(s.features),
            blocks: word(self.encoder.stack.blocks),
            x_pitch: word(pitch(s.row_columns())),
            mask_stride: word(pitch(s.features)),
            pitch: word(pitch(self.encoder.stack.layers[0].layer.inputs)),
            given: u32::from(given),
        }
    }

    pub fn mixture(&self, rows: usize, samples: usize, learn: bool) -> MixtureLoss {
        let s = &self.batches.sizes;
        MixtureLoss {
            rows: word(rows),
            samples: word(samples),
            classes: word(s.classes),
            pitch: word(pitch(s.classes)),
            weights: word(s.features),
            learn: u32::from(learn),
        }
    }

    fn gradient(&self, rows: usize) -> LatentGrad {
        LatentGrad {
            rows: word(rows),
            samples: word(self.training_samples),
            blocks: word(self.encoder.stack.blocks),
            latent: word(self.latent),
            heads_pitch: word(pitch(2 * self.latent)),
            z_pitch: word(pitch(self.latents())),
            noisy: u32::from(self.noisy),
            beta: word(hyper::PRICE),
        }
    }
}
