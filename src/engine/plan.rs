//! A method's work as data: a list of kernel calls over named buffers, built once for given
//! shapes and replayed. Either engine can execute it; neither knows what it computes.
//!
//! **Lanes.** The rows of a batch are independent until their gradients are added up, so a plan
//! cuts a batch into micro-batches and gives each a *lane*: its own copy of every
//! [`Scope::Lane`] buffer (tape, gradients). The CPU engine runs the lanes on its cores without
//! a barrier between kernels; a GPU plan has one lane and runs its micro-batches one after the
//! other. Which micro-batch goes to which lane depends on the shapes only, never on the number
//! of threads, so the sums come out the same with any number of cores.

mod builder;

pub use builder::PlanBuilder;

use super::kernels::{Grid, Kernel, WORDS};
use std::ops::Range;

/// What a buffer holds. `F32` is the engine's real number: f32, or f64 on the CPU when asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elem {
    /// Real numbers.
    F32,
    /// Unsigned integers.
    U32,
}

/// Whether all micro-batches share a buffer or each lane has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One buffer: weights, data, clocks. Lane calls may only read it.
    Shared,
    /// One copy a lane: tapes and gradients.
    Lane,
}

/// A buffer's declaration.
#[derive(Clone, Debug)]
pub struct BufferDecl {
    /// Unique within the plan; also its label on the GPU.
    pub name: String,
    /// Element type.
    pub elem: Elem,
    /// Elements (in one lane).
    pub len: usize,
    /// Shared or one a lane.
    pub scope: Scope,
}

/// A buffer of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub(crate) u32);

/// One kernel call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// Its parameters, as the shader's uniform block.
    pub words: [u32; WORDS],
    /// What its threads are over.
    pub grid: Grid,
    /// The buffers, in the order of the kernel's bindings.
    pub buffers: Vec<BufferId>,
    /// The lane it belongs to, or `None` for work on what all lanes share.
    pub lane: Option<u32>,
    /// About how many floating-point operations it is, for budgets.
    pub flops: u64,
    /// Bytes it has to read and write at least.
    pub bytes: u64,
}

/// Why several calls one after the other may be one dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// What a call does with an instance's rows needs no other instance's: a workgroup can take a few instances through
    /// all of the calls.
    Chain {
        /// Instances. A tape has their rows one step after the other, so the rows of a call are a multiple of it.
        rows: usize,
        /// Instances, counted from the first, that do need one another's rows: a workgroup has all of them.
        kin: usize,
    },
    /// No call needs what another does: they can be done side by side.
    Together,
}

/// Calls of one dispatch, at most: their table has to fit a uniform binding of WebGPU's default limit.
pub const MOST_FUSED: usize = 448;

/// Some calls that are one dispatch on a device. The CPU engine runs them one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fused {
    /// The calls.
    pub calls: Range<usize>,
    /// What makes them one.
    pub bond: Bond,
}

/// A list of kernel calls over named buffers. See the module's text.
#[derive(Clone, Debug)]
pub struct Plan {
    lanes: usize,
    buffers: Vec<BufferDecl>,
    calls: Vec<Call>,
    sections: Vec<(String, Section)>,
    fused: Vec<Fused>,
}

/// A section of a plan: some of its calls, one after the other. Only the plan's builder makes them, so a section that
/// does not exist cannot be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Section {
    start: u32,
    end: u32,
}

impl Section {
    /// The calls.
    pub fn calls(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Plan {
    /// How many copies there are of each lane buffer.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The buffers, indexed by [`BufferId`].
    pub fn buffers(&self) -> &[BufferDecl] {
        &self.buffers
    }

    /// The declaration of one buffer.
    pub fn buffer(&self, id: BufferId) -> &BufferDecl {
        &self.buffers[id.0 as usize]
    }

    /// The calls, in order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Looks a buffer up by name.
    pub fn find(&self, name: &str) -> Option<BufferId> {
        self.buffers.iter().position(|buffer| buffer.name == name).map(|index| BufferId(index as u32))
    }

    /// The calls that are one dispatch on a device, in order.
    pub fn fused(&self) -> &[Fused] {
        &self.fused
    }

    /// The same plan for a device that gets one call at a time.
    pub(crate) fn unfused(self) -> Self {
        Self { fused: Vec::new(), ..self }
    }

    /// Dispatches of some calls on a GPU: what is fused and lies in the range as a whole is one.
    pub fn dispatches(&self, range: Range<usize>) -> usize {
        let inside = |fused: &&Fused| range.start <= fused.calls.start && fused.calls.end <= range.end;
        let saved: usize = self.fused.iter().filter(inside).map(|fused| fused.calls.len() - 1).sum();
        range.len() - saved
    }

    /// The sections by name, for tools and tests: inner ones before those around them.
    pub fn sections(&self) -> &[(String, Section)] {
        &self.sections
    }

    /// Looks a section up by its name.
    pub fn find_section(&self, name: &str) -> Option<Section> {
        self.sections.iter().find(|(n, _)| n == name).map(|(_, section)| *section)
    }

    /// Bytes of all buffers, with reals of `real_bytes` bytes each.
    pub fn bytes(&self, real_bytes: usize) -> u64 {
        self.buffers
            .iter()
            .map(|buffer| {
                let copies = if buffer.scope == Scope::Lane { self.lanes } else { 1 };
                let size = if buffer.elem == Elem::F32 { real_bytes } else { 4 };
                (copies * buffer.len * size) as u64
            })
            .sum()
    }
}
