//! OL's network, tapes and sections: what they are made of. The training step is in `step.rs`.

use super::config::Config;
use super::kernels::{Choose, metrics, stream};
use crate::engine::kernels::words::losses;
use crate::engine::kernels::{Loss, MeanLoss};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::nn::{Lateral, Network, Tape, Weights, pitch, word};
use crate::train::{Batches, ChunkRows, Dropout, Episodes, Replay};

/// The method in a plan.
#[derive(Clone, Debug)]
pub struct Ol {
    pub(super) layout: Layout,
    pub(super) sections: Sections,
}

/// Its sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sections {
    pub step: Section,
    pub warm_up: Section,
    pub evaluate: [Section; 3],
    pub validate: Section,
}

/// Network and tapes.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub batches: Batches,
    /// The predicting branch P is the main one, the value branch Q the side one.
    pub lateral: Lateral,
    /// Its outputs are the classes' logits, then Q of each feature and Q of stopping.
    pub network: Network,
    pub replay: Replay,
    pub dropout: Dropout,
    pub updates: usize,
    /// Whether stopping is an action.
    pub stops: bool,
    pub acquired_at: BufferId,
    pub path: BufferId,
    pub rollout: Tape,
    /// What each step was rewarded with, where the belief says it.
    pub rewards: BufferId,
    pub sampled: Option<Sampled>,
    /// An update's: the states, then what the actions led to.
    pub tape: Tape,
    /// The same under the target network: what the actions led to.
    pub target: Tape,
    pub input: BufferId,
    pub losses: BufferId,
    /// The pretraining's masks.
    pub masks: BufferId,
    chunk: Tape,
}

/// The predicting branch alone, of which a belief is the mean over samples of dropout.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    pub samples: usize,
    pub predictor: Network,
    pub dropout: Dropout,
    /// A row for every state of an episode.
    pub tape: Tape,
    pub beliefs: BufferId,
}

impl Ol {
    pub(super) fn new(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        let layout = Layout::declare(b, batches.clone(), config);
        let step = layout.training_step(b);
        let warm_up = layout.warm_up_step(b);
        let (evaluate, validate) = batches.evaluations(b, |b, at| layout.greedy_chunk(b, at));
        Self { layout, sections: Sections { step, warm_up, evaluate, validate } }
    }
}

impl Sampled {
    fn declare(
        b: &mut PlanBuilder,
        batches: &Batches,
        config: &Config,
        lateral: &Lateral,
        network: &Network,
    ) -> Self {
        let s = &batches.sizes;
        let (stack, states) = (lateral.main_stack(), s.rows * (s.horizon + 1));
        let values = b.buffer("sample.values", Elem::F32, stack.end(), Scope::Shared);
        Self {
            samples: config.samples,
            dropout: Dropout::named(b, "sample.dropout", config.dropout, &config.hidden, states),
            tape: Tape::forward_only(b, "sample", &stack, [s.rows, states]),
            beliefs: b.buffer("beliefs", Elem::F32, states * s.classes, Scope::Lane),
            predictor: network.clone().reading(stack, values),
        }
    }
}

impl Layout {
    fn declare(b: &mut PlanBuilder, batches: Batches, config: &Config) -> Self {
        let s = batches.sizes.clone();
        let (rows, inputs) = (s.rows, batches.inputs().width());
        let lateral = Lateral::new(0, inputs, &config.hidden, [s.classes, s.features + 1]);
        let weights = Weights::declare(b, "ol", lateral.stack.end(), 0);
        let network = Network::new(lateral.stack.clone(), weights, batches.none);
        let stops = config.stops();
        let replay = Replay::declare(
            b,
            &batches,
            Episodes { count: config.replay, stops, rewarded: !stops, stream: stream::REPLAY },
        );
        let widths: Vec<usize> = config.hidden.iter().map(|width| 2 * width).collect();
        let dropout = Dropout::declare(b, config.dropout, &widths, rows);
        let sampled = (!stops).then(|| Sampled::declare(b, &batches, config, &lateral, &network));
        let stack = &network.stack;
        let rollout = Tape::forward_only(b, "rollout", stack, [rows; 2]);
        let tape = Tape::declare(b, "network", stack, [0, 2 * rows, 0]);
        let target = Tape::forward_only(b, "target", stack, [0, rows]);
        let chunk = Tape::forward_only(b, "evaluation.network", stack, [s.evaluation_rows; 2]);
        let mut words = |name: &str, len| b.buffer(name, Elem::U32, len, Scope::Lane);
        let acquired_at = words("acquired_at", rows * s.features);
        let path = words("path", rows * s.horizon);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        Self {
            rewards: reals("rewards", if stops { 0 } else { rows * s.horizon }),
            input: reals("input", 2 * rows * pitch(inputs)),
            losses: reals("losses", rows * losses::LEN),
            masks: reals("masks", rows * pitch(s.features)),
            updates: config.updates,
            batches,
            lateral,
            network,
            replay,
            dropout,
            sampled,
            stops,
            acquired_at,
            path,
            rollout,
            tape,
            target,
            chunk,
        }
    }

    pub(super) fn outputs_pitch(&self) -> usize {
        pitch(self.batches.sizes.classes + self.batches.sizes.features + 1)
    }

    /// The choice of a step of so many rows.
    pub(super) fn choice(&self, rows: usize, step: usize) -> Choose {
        let s = &self.batches.sizes;
        Choose {
            rows: word(rows),
            step: word(step),
            features: word(s.features),
            classes: word(s.classes),
            pitch: word(self.outputs_pitch()),
            stop: u32::from(self.stops),
            ..Choose::default()
        }
    }

    /// The predictor's loss of so many rows; its outputs are the first.
    pub(super) fn cross_entropy(&self, b: &mut PlanBuilder, rows: usize, buffers: [BufferId; 3]) {
        let s = &self.batches.sizes;
        let [outputs, y, losses] = buffers;
        let loss = Loss {
            rows: word(rows),
            batch: word(rows),
            classes: word(s.classes),
            pitch: word(self.outputs_pitch()),
            weights: word(s.features),
            ..Loss::default()
        };
        b.call(loss, &[outputs, y, self.batches.costs, losses, self.batches.none]);
    }

    /// A chunk under the target network, by the values alone: until it stops or, where stopping is no action, to the
    /// horizon, with the predictor's loss before anything is known and after each acquisition.
    fn greedy_chunk(&self, b: &mut PlanBuilder, at: ChunkRows) {
        let (s, chunk) = (&self.batches.sizes, &self.batches.chunk);
        let (masked, network) = (self.batches.masked_chunk(self.batches.inputs()), self.network.averaged());
        let (rows, outputs) = (s.evaluation_rows, self.chunk.logits());
        let along = MeanLoss {
            rows: word(rows),
            batch: word(rows),
            divisor: word(s.horizon + 1),
            stride: word(losses::LEN),
            at: word(losses::LOSS),
            word: word(metrics::ALONG),
            training: 0,
        };
        let Batches { clock, settings, .. } = self.batches;
        for t in 0..=s.horizon {
            masked.forward_all(b, &network, &self.chunk, t..t + 1, None, false);
            if t < s.horizon {
                let to = [chunk.acquired_at, chunk.path];
                b.call(self.choice(rows, t), &[clock, outputs, settings, to[0], to[1]]);
            }
            if t == s.horizon || !self.stops {
                self.cross_entropy(b, rows, [outputs, chunk.y, chunk.losses]);
            }
            if !self.stops {
                b.call(along, &[chunk.losses, chunk.y, chunk.metrics]);
            }
        }
        self.batches.tally(b, at, s.horizon, 0);
    }
}
