//! How large a run's micro-batches can be: the plan is built again, smaller, until it fits.

use super::batches::Batches;
use super::method::{Method, Settings};
use super::sizes::{Noise, Sizes, SplitRange};
use crate::data::Dataset;
use crate::engine::gpu::{buffer_bytes, check_grid, check_limits};
use crate::engine::plan::{Elem, Plan, PlanBuilder, Scope};
use crate::engine::{Engine, Kind};
use crate::error::{Error, Result};
use crate::problem::Problem;

/// Instances of a micro-batch on the CPU: what a core takes through the whole rollout at a time.
const CPU_ROWS: usize = 32;
/// The fewest: a batch that would be one micro-batch is split in two of at least so many, so that it has work for two cores
/// as well. Products of so few rows are still as fast, those of fewer are not.
const CPU_FEWEST_ROWS: usize = 16;
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

/// What a plan is built for.
pub enum Target {
    /// The CPU engine, with reals of so many bytes.
    Cpu(usize),
    /// A device of these limits.
    Gpu(Box<wgpu::Limits>),
}

/// What is learned from: the problem, the rows of each split, and what bytes are divided by.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    pub problem: &'a Problem,
    pub splits: [usize; 3],
    pub bytes: Option<u32>,
}

impl<'a> From<&'a Dataset> for Table<'a> {
    fn from(data: &'a Dataset) -> Self {
        Self { problem: data.problem(), splits: data.sizes(), bytes: data.divisor() }
    }
}

/// A method with its plan and all that the plan's general buffers are.
pub(crate) struct Built<M> {
    pub method: M,
    pub batches: Batches,
    pub plan: Plan,
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

    /// Builds the plan of a run: micro-batches as large as the limits and the memory budget allow.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or limits or a budget too small for a single instance.
    pub(crate) fn build<M: Method>(
        &self,
        table: Table,
        config: &M::Config,
        noise: Noise,
    ) -> Result<Built<M>> {
        let Table { problem, splits, bytes } = table;
        config.check(problem)?;
        let batch = config.batch().min(splits[0]);
        if batch == 0 {
            return Err(Error::Data("the training split has no rows".into()));
        }
        let mut start = 0;
        let splits_at = splits.map(|len| {
            start += len;
            SplitRange { start: start - len, len }
        });
        let on_gpu = matches!(self, Target::Gpu(_));
        let most = splits.into_iter().max().unwrap_or(1).max(1);
        let demand = M::demand(config, problem, splits[0] / batch);
        let sizes = Sizes {
            columns: problem.columns(),
            known_columns: problem.known_columns(),
            widest: problem.widest(),
            features: problem.features().len(),
            classes: problem.classes().len(),
            horizon: demand.horizon,
            conditions: demand.conditions,
            availability: demand.availability,
            passes: demand.passes,
            batch,
            batches: splits[0] / batch,
            rows: 0,
            lanes: 0,
            evaluation_rows: 0,
            splits: splits_at,
            input_noise: demand.input_noise && noise == Noise::Drawn,
            noise,
            bytes,
        };
        // A step replayed from outside is one micro-batch, so that its noise is one tape.
        let given = noise == Noise::Given || demand.whole;
        let whole = on_gpu || given;
        // An instance's rows stay together.
        let copies = demand.together.min(batch);
        let together = |rows: usize| (rows - rows % copies).max(copies);
        let usual = if batch > CPU_ROWS { CPU_ROWS } else { batch.div_ceil(2).max(CPU_FEWEST_ROWS) };
        let mut rows = if whole { batch } else { together(usual).min(batch) };
        let mut lanes = if whole { 1 } else { CPU_LANES.min(batch.div_ceil(rows)) };
        loop {
            let evaluation_rows = if on_gpu { (rows * GPU_EVALUATION).min(most) } else { rows };
            let sizes = Sizes { rows, lanes, evaluation_rows, ..sizes.clone() };
            let mut b = PlanBuilder::new(lanes);
            let batches = Batches::declare(&mut b, sizes, &demand);
            let method = M::build(&mut b, &batches, config);
            let plan = b.finish()?;
            let Err(error) = self.check(&plan, config.memory_budget()) else {
                return Ok(Built { method, batches, plan });
            };
            // Fewer at a time, and when there is only one, smaller ones.
            if lanes > 1 {
                lanes = lanes.div_ceil(2);
            } else if rows > copies && !given {
                rows = together(rows.div_ceil(2));
            } else {
                return Err(error);
            }
        }
    }

    /// What a configuration takes, before anything is allocated.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or limits or a budget too small for a single instance.
    pub(crate) fn memory<M: Method>(&self, data: &Dataset, config: &M::Config) -> Result<Memory> {
        let Built { batches, plan, .. } = self.build::<M>(data.into(), config, Noise::Drawn)?;
        let total = plan.bytes(self.real_bytes());
        let working = working_bytes(&plan, self.real_bytes());
        Ok(Memory {
            state: total - working,
            working,
            rows: batches.sizes.rows,
            micro_batches: batches.sizes.micro_batches().count(),
            largest: plan.buffers().iter().map(buffer_bytes).max().unwrap_or(0),
        })
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
