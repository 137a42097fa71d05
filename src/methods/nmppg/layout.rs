//! The buffers of a run and its whole plan: training step, warm-up step, greedy evaluation.

use super::config::{Config, Rollout};
use super::kernels::{hyper, scalars};
use super::rollout::Sections;
use crate::data::Dataset;
use crate::engine::Engine;
use crate::engine::Kind;
use crate::engine::gpu::{buffer_bytes, check_grid, check_limits};
use crate::engine::kernels::words::{METRICS, clock, losses};
use crate::engine::plan::{BufferId, Elem, Plan, PlanBuilder, Scope};
use crate::error::{Error, Result};
use crate::nn::{Mlp, Net, pitch};
use crate::problem::Problem;

/// Where noise and dropout come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Drawn on the device, a pure function of the seed; batches are shuffled.
    Drawn,
    /// Written into the tape by the host, for replaying a given step; the batch is the data in order.
    Given,
}

/// Instances of a micro-batch on the CPU: what a core takes through the whole rollout at a time.
const CPU_ROWS: usize = 32;
/// Most lanes of a plan for the CPU.
const CPU_LANES: usize = 8;
/// Instances evaluated at a time on the GPU, for each of a micro-batch: there is no tape to keep.
const GPU_EVALUATION: usize = 8;

/// Bytes a configuration takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What outlives a step: the data, weights and Adam's moments.
    pub state: u64,
    /// Tapes and gradients.
    pub working: u64,
    /// Instances of a micro-batch.
    pub rows: usize,
    /// Micro-batches of a batch.
    pub micro_batches: usize,
    /// The largest single buffer: a device must allow bindings of this size.
    pub largest: u64,
}

/// One split's place in the data on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRange {
    /// Its first row.
    pub start: usize,
    /// Its rows.
    pub len: usize,
}

/// Sizes of a run.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Columns of the table.
    pub columns: usize,
    /// Features that can be acquired, d.
    pub features: usize,
    /// Classes.
    pub classes: usize,
    /// Horizon, k.
    pub steps: usize,
    /// Shorter horizons, from the shortest, 0 for none: a quarter, a half and three quarters of the full
    /// one. A run goes on with one of them when hardly anything is asked beyond it.
    pub marks: [usize; 3],
    /// Instances of a training step.
    pub batch: usize,
    /// Training steps of an epoch.
    pub batches: usize,
    /// Instances of a micro-batch.
    pub rows: usize,
    /// Lanes.
    pub lanes: usize,
    /// Instances of a lane in an evaluation chunk.
    pub evaluation_rows: usize,
    /// Training, validation and test rows.
    pub splits: [SplitRange; 3],
    /// Relaxed masks forward as well.
    pub soft: bool,
    /// The predictor also learns on sub-masks of what was asked.
    pub submasks: bool,
    /// Training rows get noise.
    pub input_noise: bool,
    /// There are training steps without the relaxed gradient; in such a step: it is one of them.
    pub scored: bool,
    /// Dropout's threshold out of 65536; `None`: no dropout.
    pub dropout: Option<u32>,
    /// Where noise comes from.
    pub noise: Noise,
    /// The data are bytes, to be divided by this.
    pub bytes: Option<u32>,
}

impl Sizes {
    /// Width of the networks' input.
    pub fn inputs(&self) -> usize {
        self.columns + self.features
    }

    /// The shorter horizons there are.
    pub fn shorter(&self) -> impl Iterator<Item = usize> + use<> {
        self.marks.into_iter().filter(|&mark| mark > 0)
    }

    /// The micro-batches of a batch: first instance and number of instances of each.
    pub fn micro_batches(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (batch, rows) = (self.batch, self.rows);
        (0..batch).step_by(rows).map(move |first| (first, rows.min(batch - first)))
    }
}

/// Activations of one network on the tape, and their gradients.
#[derive(Clone, Copy, Debug)]
pub struct Tape {
    /// Running sum of the first layer.
    pub sum: BufferId,
    /// First hidden layer.
    pub hidden1: BufferId,
    /// Second hidden layer.
    pub hidden2: BufferId,
    /// Logits; after the backward pass their gradient.
    pub logits: BufferId,
    /// Gradient of the first hidden pre-activation.
    pub grad1: BufferId,
    /// Gradient of the second hidden pre-activation.
    pub grad2: BufferId,
    /// Gradient of the input.
    pub grad_input: BufferId,
}

/// Buffers of the greedy evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    pub x: BufferId,
    pub y: BufferId,
    pub acquired_at: BufferId,
    pub path: BufferId,
    pub policy: [BufferId; 4],
    pub predictor: [BufferId; 4],
    pub losses: BufferId,
    pub metrics: BufferId,
    pub asked: BufferId,
    pub masks: BufferId,
    pub input: BufferId,
}

/// The buffers of a run, by what they are for.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) sizes: Sizes,
    pub(crate) none: BufferId,
    pub(crate) clock: BufferId,
    pub(crate) settings: BufferId,
    pub(crate) powers: BufferId,
    pub(crate) status: BufferId,
    pub(crate) groups: BufferId,
    pub(crate) costs: BufferId,
    pub(crate) spread: BufferId,
    pub(crate) data_x: BufferId,
    pub(crate) data_y: BufferId,
    pub(crate) policy: Net,
    pub(crate) predictor: Net,
    pub(crate) metrics: BufferId,
    pub(crate) x: BufferId,
    pub(crate) y: BufferId,
    pub(crate) acquired_at: BufferId,
    pub(crate) path: BufferId,
    pub(crate) masks: BufferId,
    pub(crate) scalars: BufferId,
    pub(crate) losses: BufferId,
    pub(crate) gumbel: BufferId,
    pub(crate) dropout: [BufferId; 2],
    pub(crate) input: BufferId,
    pub(crate) mask_grad: BufferId,
    pub(crate) loss_mask_grad: BufferId,
    pub(crate) policy_tape: Tape,
    pub(crate) predictor_tape: Tape,
    pub(crate) chunk: Chunk,
}

impl Layout {
    fn declare(b: &mut PlanBuilder, sizes: Sizes, config: &Config) -> Self {
        let s = &sizes;
        let rows = s.rows;
        let (policy_rows, predictor_rows) = (s.steps * rows, (s.steps + 1) * rows);
        let policy_mlp = Mlp::new(s.inputs(), config.policy_hidden, s.features + 1);
        let predictor_mlp = Mlp::new(s.inputs(), config.predictor_hidden, s.classes);
        let data: usize = s.splits.iter().map(|split| split.len).sum();

        let mut shared = |name: &str, elem, len| b.buffer(name, elem, len, Scope::Shared);
        let none = shared("none", Elem::F32, 4);
        let clock = shared("clock", Elem::U32, clock::LEN);
        let settings = shared("settings", Elem::F32, hyper::LEN);
        let powers = shared("powers", Elem::F32, 4);
        let status = shared("status", Elem::U32, 4);
        let groups = shared("groups", Elem::U32, s.features + 1 + 2 * s.columns);
        let costs = shared("costs", Elem::F32, s.features + s.classes);
        let spread = shared("spread", Elem::F32, s.columns);
        let data_x = match s.bytes {
            None => shared("data.x", Elem::F32, data * s.columns),
            Some(_) => shared("data.x", Elem::U32, (data * s.columns).div_ceil(4)),
        };
        let data_y = shared("data.y", Elem::U32, data);
        let policy = Net::declare(b, "policy", policy_mlp, none);
        let predictor = Net::declare(b, "predictor", predictor_mlp, none);

        let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Lane);
        let metrics = reals("metrics", METRICS);
        let x = reals("x", rows * pitch(s.columns));
        let masks = reals("masks", predictor_rows * 2 * pitch(s.features));
        let scalars = reals("scalars", predictor_rows * scalars::LEN);
        let losses_id = reals("losses", predictor_rows * losses::LEN);
        let gumbel = reals("gumbel", policy_rows * pitch(s.features + 1));
        let dropped = if s.dropout.is_some() { predictor_rows } else { 0 };
        let dropout = [
            reals("dropout.0", dropped * pitch(config.predictor_hidden[0])),
            reals("dropout.1", dropped * pitch(config.predictor_hidden[1])),
        ];
        let input = reals("input", if s.soft { predictor_rows } else { rows } * pitch(s.inputs()));
        let mask_grad = reals("mask_grad", rows * pitch(s.features));
        let loss_mask_grad = reals("loss_mask_grad", predictor_rows * pitch(s.features));
        let mut tape = |name: &str, mlp: &Mlp, tape_rows: usize, input_rows: usize| {
            let [l0, l1, l2] = mlp.layers;
            let mut part = |what: &str, len| reals(&format!("{name}.{what}"), len);
            Tape {
                sum: part("sum", rows * pitch(l0.outputs)),
                hidden1: part("hidden1", tape_rows * pitch(l0.outputs)),
                hidden2: part("hidden2", tape_rows * pitch(l1.outputs)),
                logits: part("logits", tape_rows * pitch(l2.outputs)),
                grad1: part("grad1", tape_rows * pitch(l0.outputs)),
                grad2: part("grad2", tape_rows * pitch(l1.outputs)),
                grad_input: part("grad_input", input_rows * pitch(l0.inputs)),
            }
        };
        let policy_tape = tape("policy", &policy_mlp, policy_rows, rows);
        let predictor_tape = tape("predictor", &predictor_mlp, predictor_rows, predictor_rows);

        let rows_e = s.evaluation_rows;
        let mut layers = |name: &str, mlp: &Mlp| {
            let [l0, l1, l2] = mlp.layers;
            [("sum", l0), ("hidden1", l0), ("hidden2", l1), ("logits", l2)].map(|(what, layer)| {
                reals(&format!("evaluation.{name}.{what}"), rows_e * pitch(layer.outputs))
            })
        };
        let (chunk_policy, chunk_predictor) =
            (layers("policy", &policy_mlp), layers("predictor", &predictor_mlp));
        let chunk_x = reals("evaluation.x", rows_e * pitch(s.columns));
        let chunk_losses = reals("evaluation.losses", rows_e * losses::LEN);
        let chunk_metrics = reals("evaluation.metrics", METRICS);
        let chunk_masks = reals("evaluation.masks", rows_e * 2 * pitch(s.features));
        let chunk_input = reals("evaluation.input", rows_e * pitch(s.inputs()));
        let mut words = |name: &str, len| b.buffer(name, Elem::U32, len, Scope::Lane);
        let chunk = Chunk {
            x: chunk_x,
            y: words("evaluation.y", rows_e),
            acquired_at: words("evaluation.acquired_at", rows_e * s.features),
            path: words("evaluation.path", rows_e * s.steps),
            policy: chunk_policy,
            predictor: chunk_predictor,
            losses: chunk_losses,
            metrics: chunk_metrics,
            asked: words("evaluation.asked", s.steps * (s.features + 1)),
            masks: chunk_masks,
            input: chunk_input,
        };
        let y = words("y", rows);
        let acquired_at = words("acquired_at", rows * s.features);
        let path = words("path", policy_rows);
        Self {
            none,
            clock,
            settings,
            powers,
            status,
            groups,
            costs,
            spread,
            data_x,
            data_y,
            policy,
            predictor,
            metrics,
            x,
            y,
            acquired_at,
            path,
            masks,
            scalars,
            losses: losses_id,
            gumbel,
            dropout,
            input,
            mask_grad,
            loss_mask_grad,
            policy_tape,
            predictor_tape,
            chunk,
            sizes,
        }
    }

    /// The multipliers of the predictor's hidden layers, if there is dropout.
    pub(crate) fn multipliers(&self, layer: usize) -> Option<BufferId> {
        self.sizes.dropout.map(|_| self.dropout[layer])
    }

    /// The state that `Net::adam` takes.
    pub(crate) fn adam_state(&self) -> [BufferId; 4] {
        [self.settings, self.powers, self.clock, self.status]
    }

    /// Builds the plan of a run for micro-batches of so many instances.
    fn with_rows(
        mut sizes: Sizes,
        config: &Config,
        rows: usize,
        lanes: usize,
        evaluation_rows: usize,
    ) -> Result<(Self, Sections, Plan)> {
        sizes.rows = rows;
        sizes.lanes = lanes;
        sizes.evaluation_rows = evaluation_rows;
        let mut b = PlanBuilder::new(lanes);
        let layout = Self::declare(&mut b, sizes, config);
        let sections = Sections::new(&layout, &mut b);
        Ok((layout, sections, b.finish()?))
    }

    /// Builds the plan of a run: micro-batches as large as the target's limits and the memory budget
    /// allow.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or limits or a budget too small for a single instance.
    pub(crate) fn build(
        target: &Target,
        problem: &Problem,
        splits: [usize; 3],
        bytes: Option<u32>,
        config: &Config,
        noise: Noise,
    ) -> Result<(Self, Sections, Plan)> {
        config.check(problem)?;
        let batch = config.batch.min(splits[0]);
        if batch == 0 {
            return Err(Error::Data("the training split has no rows".into()));
        }
        let mut start = 0;
        let splits_at = splits.map(|len| {
            start += len;
            SplitRange { start: start - len, len }
        });
        let threshold = (config.dropout * 65536.0).round() as u32;
        let on_gpu = matches!(target, Target::Gpu(_));
        let most = splits.into_iter().max().unwrap_or(1).max(1);
        let sizes = Sizes {
            columns: problem.columns(),
            features: problem.features().len(),
            classes: problem.classes().len(),
            steps: config.steps(problem),
            marks: if config.tail > 0.0 { marks(config.steps(problem)) } else { [0; 3] },
            batch,
            batches: splits[0] / batch,
            rows: 0,
            lanes: 0,
            evaluation_rows: 0,
            splits: splits_at,
            soft: config.rollout == Rollout::Soft,
            submasks: config.parts > 0.0,
            input_noise: config.blur_for(splits[0] / batch) > 0.0 && noise == Noise::Drawn,
            scored: config.scores() && config.exact_stop,
            dropout: (threshold > 0).then_some(threshold),
            noise,
            bytes,
        };
        // A step replayed from outside is one micro-batch, so that its noise is one tape.
        let given = noise == Noise::Given;
        let whole = on_gpu || given;
        // An instance's twins stay together.
        let twins = config.most_twins().min(batch);
        let together = |rows: usize| (rows - rows % twins).max(twins);
        let mut rows = if whole { batch } else { together(CPU_ROWS).min(batch) };
        let mut lanes = if whole { 1 } else { CPU_LANES.min(batch.div_ceil(rows)) };
        loop {
            let evaluation_rows = if on_gpu { (rows * GPU_EVALUATION).min(most) } else { rows };
            let (layout, sections, plan) =
                Self::with_rows(sizes.clone(), config, rows, lanes, evaluation_rows)?;
            let Err(error) = target.check(&plan, config.memory_budget) else {
                return Ok((layout, sections, plan));
            };
            // Fewer at a time, and when there is only one, smaller ones.
            if lanes > 1 {
                lanes = lanes.div_ceil(2);
            } else if rows > twins && !given {
                rows = together(rows.div_ceil(2));
            } else {
                return Err(error);
            }
        }
    }

    /// What a configuration takes on an engine, before anything is allocated.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or limits or a budget too small for a single instance.
    pub fn memory(engine: &Engine, data: &Dataset, config: &Config) -> Result<Memory> {
        let target = Target::of(engine);
        let (layout, _, plan) =
            Self::build(&target, data.problem(), data.sizes(), data.divisor(), config, Noise::Drawn)?;
        let total = plan.bytes(target.real_bytes());
        let working = working_bytes(&plan, target.real_bytes());
        Ok(Memory {
            state: total - working,
            working,
            rows: layout.sizes.rows,
            micro_batches: layout.sizes.micro_batches().count(),
            largest: plan.buffers().iter().map(buffer_bytes).max().unwrap_or(0),
        })
    }
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

/// What a plan is built for.
pub(crate) enum Target {
    /// The CPU engine, with reals of so many bytes.
    Cpu(usize),
    /// A device of these limits.
    Gpu(Box<wgpu::Limits>),
}

impl Target {
    pub(crate) fn of(engine: &Engine) -> Self {
        match engine.kind() {
            Kind::Gpu(gpu) => Target::Gpu(Box::new(gpu.device().limits())),
            _ => Target::Cpu(engine.real_bytes()),
        }
    }

    fn real_bytes(&self) -> usize {
        match self {
            Target::Cpu(bytes) => *bytes,
            Target::Gpu(_) => 4,
        }
    }

    /// Whether a plan's tapes and gradients fit. What outlives a step is checked when it is created:
    /// smaller micro-batches would not help it.
    fn check(&self, plan: &Plan, budget: u64) -> Result<()> {
        if let Target::Gpu(limits) = self {
            for decl in plan.buffers().iter().filter(|decl| decl.scope == Scope::Lane) {
                check_limits(limits, decl)?;
            }
            for call in plan.calls() {
                check_grid(call)?;
            }
        }
        let needed = working_bytes(plan, self.real_bytes());
        if needed > budget { Err(Error::Memory { needed, budget }) } else { Ok(()) }
    }
}

fn working_bytes(plan: &Plan, real_bytes: usize) -> u64 {
    plan.buffers()
        .iter()
        .filter(|buffer| buffer.scope == Scope::Lane)
        .map(|buffer| {
            let size = if buffer.elem == Elem::F32 { real_bytes } else { 4 };
            (plan.lanes() * buffer.len * size) as u64
        })
        .sum()
}

/// The kernels' parameters are u32.
pub(super) fn word(value: usize) -> u32 {
    debug_assert!(u32::try_from(value).is_ok(), "{value} does not fit a kernel parameter");
    value as u32
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
