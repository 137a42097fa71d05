//! NM-PPG's buffers and sections.

use super::config::{Config, Networks, Rollout};
use super::kernels::scalars;
use crate::engine::kernels::words::losses;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::methods::alpha::shows_half;
use crate::nn::{Dense, Inputs, Masked, Network, Stack, Tape, Weights, pitch};
use crate::random::stream;
use crate::train::{Batches, ByRows, Dropout, Masks};

/// Sizes of a training step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Acquisitions of a rollout, k.
    pub steps: usize,
    /// Shorter horizons, from the shortest, 0 for none: a quarter, a half and three quarters of the full
    /// one. A run goes on with one of them when hardly anything is asked beyond it.
    pub marks: [usize; 3],
    /// Relaxed masks forward as well.
    pub soft: bool,
    /// The predictor also learns on sub-masks of what was asked.
    pub submasks: bool,
    /// The choices follow REINFORCE alone: the step leaves out what only the relaxed gradient needs.
    pub reinforced: bool,
    /// The relaxed gradient also goes through what later choices read.
    pub through_policy: bool,
    /// What the predictor sees in the warm-up.
    pub warm_up_masks: Masks,
}

impl Shape {
    /// The shorter horizons there are.
    pub fn shorter(&self) -> impl Iterator<Item = usize> + use<> {
        self.marks.into_iter().filter(|&mark| mark > 0)
    }
}

/// What evaluating a chunk takes besides the general buffers.
#[derive(Clone, Debug)]
pub(super) struct ChunkNets {
    pub policy: Tape,
    pub predictor: Tape,
    pub dense: Dense,
}

/// The method in a plan.
#[derive(Clone, Debug)]
pub struct NmPpg {
    pub(super) layout: Layout,
    pub(super) sections: Sections,
}

/// Its networks and its tape.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) batches: Batches,
    pub(super) shape: Shape,
    /// Rollouts of an instance, at most: neighbours, which read one another's values.
    pub(super) rollouts: usize,
    pub(super) policy: Network,
    pub(super) predictor: Network,
    pub(super) acquired_at: BufferId,
    pub(super) path: BufferId,
    pub(super) masks: BufferId,
    pub(super) scalars: BufferId,
    pub(super) losses: BufferId,
    pub(super) gumbel: BufferId,
    pub(super) dropout: Dropout,
    pub(super) input: BufferId,
    /// The policy's dense input under relaxed masks: the same, unless it also reads a condition.
    pub(super) policy_input: BufferId,
    pub(super) mask_grad: BufferId,
    pub(super) loss_mask_grad: BufferId,
    pub(super) policy_tape: Tape,
    pub(super) predictor_tape: Tape,
    pub(super) chunk: ChunkNets,
}

/// The sections of a run's plan.
#[derive(Clone, Debug)]
pub(super) struct Sections {
    pub steps: Vec<TrainingStep>,
    /// The predictor alone, on masks drawn feature by feature.
    pub warm_up: Section,
    /// The predictor alone, on everything.
    pub reference: Section,
    /// A chunk of the training, validation and test rows under the greedy policy.
    pub evaluate: [Section; 3],
    /// The same with everything seen at no cost.
    pub evaluate_all: [Section; 3],
    /// A chunk of the validation rows, counting what was asked.
    pub validate: Section,
    /// A chunk of the validation rows with nothing and with everything seen.
    pub survey: Section,
}

/// A training step.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrainingStep {
    /// Acquisitions of its rollouts.
    pub horizon: usize,
    /// The choices follow REINFORCE alone: nothing in it goes through the relaxation.
    pub reinforced: bool,
    pub section: Section,
}

impl NmPpg {
    pub(super) fn new(b: &mut PlanBuilder, batches: &Batches, config: &Config) -> Self {
        let s = &batches.sizes;
        let shape = Shape {
            steps: s.horizon,
            marks: if config.schedule.tail > 0.0 { marks(s.horizon) } else { [0; 3] },
            soft: config.rollout == Rollout::Soft,
            submasks: config.predictor.submasks > 0.0,
            reinforced: config.reinforces() && config.gradient.exact_stop,
            through_policy: config.gradient.through_policy,
            warm_up_masks: warm_up_masks(s.horizon, s.features),
        };
        let layout = Layout::declare(b, batches.clone(), shape, config);
        let sections = layout.write_sections(b);
        Self { layout, sections }
    }
}

impl Layout {
    fn declare(b: &mut PlanBuilder, batches: Batches, shape: Shape, config: &Config) -> Self {
        let s = batches.sizes.clone();
        let rows = s.rows;
        let (policy_rows, predictor_rows) = (shape.steps * rows, (shape.steps + 1) * rows);
        let [policy_width, predictor_width] =
            [batches.conditioned_inputs(), batches.inputs()].map(|i| i.width());
        let network = |b: &mut PlanBuilder, name, inputs, hidden: [usize; 2], outputs, slot| {
            let stack = Stack::new(0, &[inputs, hidden[0], hidden[1], outputs]);
            let weights = Weights::declare(b, name, stack.len, slot);
            Network::new(stack, weights, batches.none)
        };
        let policy = network(b, "policy", policy_width, config.networks.policy, s.features + 1, 0);
        let predictor = network(b, "predictor", predictor_width, config.networks.predictor, s.classes, 1);

        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        let masks = reals("masks", predictor_rows * 2 * pitch(s.features));
        let scalars = reals("scalars", predictor_rows * scalars::LEN);
        let losses = reals("losses", predictor_rows * losses::LEN);
        let gumbel = reals("gumbel", policy_rows * pitch(s.features + 1));
        let Networks { dropout, predictor: hidden, .. } = config.networks;
        let dropout = Dropout::declare(b, dropout, &hidden, predictor_rows);
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        let input = reals("input", if shape.soft { predictor_rows } else { rows } * pitch(predictor_width));
        let policy_input = match shape.soft && policy_width != predictor_width {
            true => reals("policy.input", policy_rows * pitch(policy_width)),
            false => input,
        };
        let mask_grad = reals("mask_grad", rows * pitch(s.features));
        let loss_mask_grad = reals("loss_mask_grad", predictor_rows * pitch(s.features));
        let policy_tape = Tape::declare(b, "policy", &policy.stack, [rows, policy_rows, rows]);
        let predictor_tape =
            Tape::declare(b, "predictor", &predictor.stack, [rows, predictor_rows, predictor_rows]);
        let chunk = ChunkNets::declare(b, &batches, &policy.stack, &predictor.stack);
        let acquired_at = b.buffer("acquired_at", Elem::U32, rows * s.features, Scope::Lane);
        let path = b.buffer("path", Elem::U32, policy_rows, Scope::Lane);
        Self {
            shape,
            rollouts: config.gradient.rollouts,
            policy,
            predictor,
            acquired_at,
            path,
            masks,
            scalars,
            losses,
            gumbel,
            dropout,
            input,
            policy_input,
            mask_grad,
            loss_mask_grad,
            policy_tape,
            predictor_tape,
            chunk,
            batches,
        }
    }

    fn write_sections(&self, b: &mut PlanBuilder) -> Sections {
        let steps = self.training_steps(b);
        let [warm_up, reference] =
            [("warm_up", false), ("reference", true)].map(|(name, all)| self.predictor_step(b, name, all));
        let (batches, steps_asked) = (&self.batches, self.batches.sizes.horizon);
        let greedy = ByRows {
            rows: &|b, _| self.greedy_chunk(b),
            sums: &|b, at| batches.tally(b, at, steps_asked, 0),
        };
        let (evaluate, validate) = batches.evaluations_by_rows(b, &greedy);
        let everything = ByRows {
            rows: &|b, at| self.chunk_of(b, at, Masks::All),
            sums: &|b, at| batches.tally(b, at, 0, 0),
        };
        let evaluate_all =
            [0, 1, 2].map(|split| batches.evaluation_by_rows(b, split, "evaluate_all", &everything));
        let gain =
            ByRows { rows: &|b, _| self.chunk_under_masks(b, true), sums: &|b, at| self.survey_sums(b, at) };
        let survey = batches.evaluation_by_rows(b, 1, "survey", &gain);
        Sections { steps, warm_up, reference, evaluate, evaluate_all, validate, survey }
    }

    /// The training step of the full horizon first; and for each shorter horizon the same: the tapes are those of the
    /// full one, not used to the end. Steps of REINFORCE alone leave out what only the relaxed gradient needs: m̃ and r̃
    /// forward, M and the gradients of both networks' inputs backward.
    fn training_steps(&self, b: &mut PlanBuilder) -> Vec<TrainingStep> {
        let full = self.shape.steps;
        let kinds = if self.shape.reinforced { &[false, true][..] } else { &[false] };
        let horizons = std::iter::once(full).chain(self.shape.shorter());
        let all = horizons.flat_map(|steps| kinds.iter().map(move |&reinforced| (steps, reinforced)));
        all.map(|(steps, reinforced)| {
            let length = if steps == full { String::new() } else { format!(".{steps}") };
            let name = format!("step{length}{}", if reinforced { ".reinforce" } else { "" });
            let shape = Shape { steps, reinforced, ..self.shape };
            Self { shape, ..self.clone() }.training_step(b, &name)
        })
        .collect()
    }

    /// What the policy reads: the row, the trade-off where there is more than one, and what cannot be had.
    pub(super) fn policy_inputs(&self) -> Inputs {
        self.batches.conditioned_inputs()
    }

    /// What the predictor reads: the row. Given what was seen, the label depends neither on the trade-off nor on what
    /// cannot be had.
    pub(super) fn predictor_inputs(&self) -> Inputs {
        self.batches.inputs()
    }

    /// The micro-batch's rows under hard masks.
    pub(super) fn masked(&self, inputs: Inputs, rows: usize) -> Masked {
        let x = self.batches.x;
        Masked { inputs, x, path: self.path, acquired_at: self.acquired_at, rows }
    }

    /// The micro-batch's rows under the tape's masks, as dense inputs.
    pub(super) fn dense(&self) -> Dense {
        Dense {
            x: self.batches.x,
            masks: self.masks,
            mask_stride: 2 * pitch(self.batches.sizes.features),
            input: self.input,
        }
    }
}

impl ChunkNets {
    fn declare(b: &mut PlanBuilder, batches: &Batches, policy: &Stack, predictor: &Stack) -> Self {
        let s = &batches.sizes;
        let rows = s.evaluation_rows;
        let mut tape =
            |name: &str, stack| Tape::forward_only(b, &format!("evaluation.{name}"), stack, [rows, rows]);
        let (policy, predictor) = (tape("policy", policy), tape("predictor", predictor));
        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        let mask_stride = 2 * pitch(s.features);
        let dense = Dense {
            x: batches.chunk.x,
            masks: reals("evaluation.masks", rows * mask_stride),
            mask_stride,
            input: reals("evaluation.input", rows * pitch(batches.inputs().width())),
        };
        Self { policy, predictor, dense }
    }
}

impl Sections {
    /// The training step of so many acquisitions, with or without what only the relaxed gradient needs.
    pub fn step(&self, horizon: usize, reinforced: bool) -> TrainingStep {
        let is = |step: &&TrainingStep| (step.horizon, step.reinforced) == (horizon, reinforced);
        *self.steps.iter().find(is).unwrap_or(&self.steps[0])
    }
}

/// What the predictor sees in the warm-up: half of the features, a row another half; where that is more than a policy can
/// ever show, between none and twice the horizon, so that it learns on what it will be asked about.
fn warm_up_masks(steps: usize, features: usize) -> Masks {
    if shows_half(steps, features) {
        return Masks::Halves;
    }
    Masks::Uniform { stream: stream::MASK, most: (2 * steps) as f64 / features as f64 }
}

/// A quarter, a half and three quarters of a horizon; none where that is less than two steps or no less
/// than the next.
fn marks(steps: usize) -> [usize; 3] {
    let mut next = steps;
    let mut marks = [3, 2, 1].map(|quarters| {
        let mark = (steps * quarters).div_ceil(4);
        if mark < 2 || mark >= next {
            return 0;
        }
        next = mark;
        mark
    });
    marks.reverse();
    marks
}

#[cfg(test)]
mod tests {
    use super::marks;

    #[test]
    fn shorter_horizons_rise_and_stay_below_the_full_one() {
        assert_eq!(marks(30), [8, 15, 23]);
        assert_eq!(marks(11), [3, 6, 9]);
        assert_eq!(marks(4), [0, 2, 3]);
        assert_eq!(marks(2), [0, 0, 0]);
        assert_eq!(marks(1), [0, 0, 0]);
    }
}
