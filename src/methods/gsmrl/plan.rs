//! GSMRL's networks, tapes and sections.

use super::config::{Acquire, Config};
use crate::engine::kernels::kept;
use crate::engine::kernels::words::losses;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::nn::{Flow, FlowTape, Inputs, Network, POINTS, Stack, Tape, Weights, pitch};
use crate::train::{Batches, Dropout, Micro};

/// The method in a plan.
#[derive(Clone, Debug)]
pub struct Gsmrl {
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
    /// A chunk of the validation rows under random masks.
    pub random_masks: Section,
}

/// Networks and tapes.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub batches: Batches,
    /// The surrogate: a flow, and the classes before anything was acquired.
    pub flow: Flow,
    pub prior: Network,
    pub predictor: Network,
    pub policy: Network,
    pub critic: Network,
    /// What chooses the next feature.
    pub acquire: Acquire,
    /// Updates on the steps of a batch.
    pub passes: usize,
    pub dropout: Dropout,
    pub flow_tape: FlowTape,
    pub prior_tape: Tape,
    pub predictor_tape: Tape,
    pub policy_tape: Tape,
    pub critic_tape: Tape,
    /// What the prior reads, and the predictor in its pretraining.
    pub prior_input: BufferId,
    pub input: BufferId,
    /// The masks of every state.
    pub masks: BufferId,
    pub gumbel: BufferId,
    /// The entropy of the surrogate's belief in every state.
    pub doubts: BufferId,
    pub losses: BufferId,
    pub surrogate_losses: BufferId,
    /// What a gradient is multiplied by.
    pub factor: BufferId,
    /// What is kept of a rollout, for each micro-batch of a lane.
    kept: Vec<Kept>,
    pub chunk: ChunkNets,
}

/// What several passes over a micro-batch's rollout need of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// What the policy reads in every state.
    pub input: BufferId,
    pub acquired_at: BufferId,
    pub path: BufferId,
    /// Words of every step (`kept`).
    pub steps: BufferId,
}

/// What evaluating a chunk takes besides the general buffers.
#[derive(Clone, Debug)]
pub(super) struct ChunkNets {
    pub flow: FlowTape,
    pub prior: Tape,
    pub policy: Tape,
    pub predictor: Tape,
    /// What the prior reads, and the predictor under random masks.
    pub prior_input: BufferId,
    pub input: BufferId,
    pub masks: BufferId,
    pub doubts: BufferId,
}

/// How wide what the policy reads is: `(x ⊙ m, m)`, the belief, then each column's mean and standard deviation.
pub(super) fn policy_width([columns, features, classes]: [usize; 3]) -> usize {
    3 * columns + features + classes
}

/// The stacks of the surrogate: those of its flow, then the prior.
pub(super) fn surrogate(
    sizes @ [columns, features, classes]: [usize; 3],
    config: &Config,
) -> (Vec<Stack>, Stack) {
    let stacks = Flow::stacks(0, sizes, &config.surrogate_hidden, config.couplings);
    let end = stacks.last().map_or(0, Stack::end);
    let widths = [&[columns + features][..], &config.surrogate_hidden, &[classes]].concat();
    (stacks, Stack::new(end, &widths))
}

impl Gsmrl {
    pub(super) fn new(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        let layout = Layout::declare(b, batches.clone(), config);
        let step = layout.training_step(b);
        let warm_up = layout.warm_up_step(b);
        let (evaluate, validate) = batches.evaluations(b, |b, at| layout.greedy_chunk(b, at));
        let random_masks = batches.evaluation(b, 1, "random_masks", |b, at| layout.masked_chunk(b, at));
        Self { layout, sections: Sections { step, warm_up, evaluate, validate, random_masks } }
    }
}

impl Layout {
    fn declare(b: &mut PlanBuilder, batches: Batches, config: &Config) -> Self {
        let s = batches.sizes.clone();
        let sizes = [s.columns, s.features, s.classes];
        let (rows, states) = (s.rows, s.rows * (s.horizon + 1));
        let (stacks, prior) = surrogate(sizes, config);
        let weights = Weights::declare(b, "surrogate", prior.end(), 0);
        let prior = Network::new(prior, weights, batches.none);
        let flow = Flow::new(batches.inputs(), s.classes, stacks, weights, batches.none);
        let mut network = |name, slot, inputs: usize, outputs: usize| {
            let stack = Stack::new(0, &[&[inputs][..], &config.hidden, &[outputs]].concat());
            let weights = Weights::declare(b, name, stack.end(), slot);
            Network::new(stack, weights, batches.none)
        };
        let predictor = network("predictor", 1, s.columns + s.features, s.classes);
        let policy = network("policy", 2, policy_width(sizes), s.features + 1);
        let critic = network("critic", 3, policy_width(sizes), 1);
        let dropout = Dropout::declare(b, config.dropout, &config.hidden, states);
        let flow_tape = FlowTape::declare(b, "flow", &flow, POINTS * s.classes * rows, true);
        let prior_tape = Tape::declare(b, "prior", &prior.stack, [0, rows, 0]);
        let predictor_tape = Tape::declare(b, "predictor", &predictor.stack, [rows, states, 0]);
        let policy_tape = Tape::declare(b, "policy", &policy.stack, [0, rows * s.horizon, 0]);
        let critic_tape = Tape::declare(b, "critic", &critic.stack, [0, rows * s.horizon, 0]);
        let chunk = ChunkNets::declare(b, &s, (&flow, &prior.stack), [&policy.stack, &predictor.stack]);
        // A lane's micro-batches come one after the other, and each is gone over again.
        let turns = s.micro_batches().count().div_ceil(s.lanes);
        let kept = (0..turns).map(|turn| Kept::declare(b, &batches, turn)).collect();
        let factor = b.buffer("factor", Elem::F32, 4, Scope::Shared);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        let input = pitch(s.columns + s.features);
        Self {
            prior_input: reals("prior_input", rows * input),
            input: reals("input", rows * input),
            masks: reals("masks", states * pitch(s.features)),
            gumbel: reals("gumbel", rows * s.horizon * pitch(s.features + 1)),
            doubts: reals("doubts", states),
            losses: reals("losses", states * losses::LEN),
            surrogate_losses: reals("surrogate_losses", rows * losses::LEN),
            acquire: config.acquire,
            passes: config.passes,
            batches,
            flow,
            prior,
            predictor,
            policy,
            critic,
            dropout,
            flow_tape,
            prior_tape,
            predictor_tape,
            policy_tape,
            critic_tape,
            factor,
            kept,
            chunk,
        }
    }

    /// The columns and masks as the networks read them.
    pub(super) fn inputs(&self) -> Inputs {
        self.batches.inputs()
    }

    /// Columns, features and classes.
    pub(super) fn sizes(&self) -> [usize; 3] {
        let s = &self.batches.sizes;
        [s.columns, s.features, s.classes]
    }

    /// What is kept of a micro-batch's rollout.
    pub(super) fn kept(&self, micro: Micro) -> Kept {
        let s = &self.batches.sizes;
        self.kept[micro.first / s.rows / s.lanes]
    }
}

impl Kept {
    fn declare(b: &mut PlanBuilder, batches: &Batches, turn: usize) -> Self {
        let s = &batches.sizes;
        let states = s.rows * (s.horizon + 1);
        // The first one's names are those of every method.
        let name = |what: &str| if turn == 0 { what.to_string() } else { format!("{what}.{turn}") };
        let mut words = |what, len| b.buffer(name(what), Elem::U32, len, Scope::Lane);
        let (acquired_at, path) =
            (words("acquired_at", s.rows * s.features), words("path", s.rows * s.horizon));
        let mut reals = |what, len| b.buffer(name(what), Elem::F32, len, Scope::Lane);
        let width = policy_width([s.columns, s.features, s.classes]);
        let (input, steps) = (reals("states", states * pitch(width)), reals("kept", states * kept::LEN));
        Self { input, acquired_at, path, steps }
    }
}

impl ChunkNets {
    fn declare(
        b: &mut PlanBuilder,
        s: &crate::train::Sizes,
        (flow, prior): (&Flow, &Stack),
        [policy, predictor]: [&Stack; 2],
    ) -> Self {
        let rows = s.evaluation_rows;
        let flow = FlowTape::declare(b, "evaluation.flow", flow, POINTS * s.classes * rows, false);
        let mut tape =
            |name: &str, stack| Tape::forward_only(b, &format!("evaluation.{name}"), stack, [rows, rows]);
        let (prior, policy, predictor) =
            (tape("prior", prior), tape("policy", policy), tape("predictor", predictor));
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        let width = policy_width([s.columns, s.features, s.classes]);
        Self {
            prior_input: reals("evaluation.prior_input", rows * pitch(s.columns + s.features)),
            input: reals("evaluation.states", rows * pitch(width)),
            masks: reals("evaluation.masks", rows * pitch(s.features)),
            doubts: reals("evaluation.doubts", rows),
            flow,
            prior,
            policy,
            predictor,
        }
    }
}
