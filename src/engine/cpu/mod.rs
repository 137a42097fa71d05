//! The CPU engine: runs a plan's calls by the kernels' Rust twins, the lanes on all cores.

mod args;
pub(crate) mod instructions;
pub(crate) mod matmul;
pub(crate) mod pack;
mod real;

pub use args::{Args, MAX_BINDINGS};
pub(crate) use pack::{Pack, Pair};
pub use real::Real;

use super::kernels::Access;
use super::plan::{BufferId, Call, Elem, Plan, Scope};
use crate::error::Result;
use crate::memory::reserve;
use args::Slot;
use rayon::prelude::*;
use std::cell::UnsafeCell;
use std::ops::Range;

/// A buffer's memory. Twins on several threads write disjoint parts of it while a plan runs;
/// outside of that it is reached through the program's own borrow.
struct Cells<T>(Box<[UnsafeCell<T>]>);

// SAFETY: see `Buffers::run` for which accesses may happen at the same time.
unsafe impl<T: Sync> Sync for Cells<T> {}

impl<T: Copy + Default> Cells<T> {
    fn new(len: usize, name: &str) -> Result<Self> {
        let mut cells = Vec::new();
        reserve(&mut cells, len, &format!("the buffer `{name}`"))?;
        cells.resize_with(len, || UnsafeCell::new(T::default()));
        Ok(Self(cells.into_boxed_slice()))
    }

    fn as_slice(&self) -> &[T] {
        // SAFETY: a plan runs only under `&mut CpuProgram`, so nothing writes while `self` is
        // borrowed from a program; UnsafeCell<T> has T's layout.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<T>(), self.0.len()) }
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<T>(), self.0.len()) }
    }

    /// # Safety
    /// The contract of `Buffers::run`.
    unsafe fn part(&self, range: Range<usize>) -> &[T] {
        let cells = &self.0[range];
        // SAFETY: in bounds; nothing writes this part meanwhile.
        unsafe { std::slice::from_raw_parts(cells.as_ptr().cast::<T>(), cells.len()) }
    }

    /// # Safety
    /// The contract of `Buffers::run`.
    #[allow(clippy::mut_from_ref)]
    unsafe fn part_mut(&self, range: Range<usize>) -> &mut [T] {
        let cells = &self.0[range];
        // SAFETY: in bounds; nothing else reaches this part meanwhile.
        unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }
}

enum Storage<T> {
    Reals(Cells<T>),
    Words(Cells<u32>),
}

/// A plan with its buffers in memory.
pub struct CpuProgram<T> {
    plan: Plan,
    storage: Vec<Storage<T>>,
}

impl<T: Real> CpuProgram<T> {
    /// Allocates the plan's buffers, all zero.
    ///
    /// # Errors
    /// There is no memory for one of them.
    pub fn new(plan: Plan) -> Result<Self> {
        let buffers = plan.buffers().iter().map(|buffer| {
            let copies = if buffer.scope == Scope::Lane { plan.lanes() } else { 1 };
            let (len, name) = (copies * buffer.len, buffer.name.as_str());
            Ok(match buffer.elem {
                Elem::F32 => Storage::Reals(Cells::new(len, name)?),
                Elem::U32 => Storage::Words(Cells::new(len, name)?),
            })
        });
        let storage = buffers.collect::<Result<_>>()?;
        Ok(Self { plan, storage })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A buffer of reals, all lanes.
    pub fn reals(&self, id: BufferId) -> &[T] {
        match &self.storage[id.0 as usize] {
            Storage::Reals(cells) => cells.as_slice(),
            Storage::Words(_) => &[],
        }
    }

    /// A buffer of reals, all lanes, to write.
    pub fn reals_mut(&mut self, id: BufferId) -> &mut [T] {
        match &mut self.storage[id.0 as usize] {
            Storage::Reals(cells) => cells.as_mut_slice(),
            Storage::Words(_) => &mut [],
        }
    }

    /// A buffer of integers, all lanes.
    pub fn words(&self, id: BufferId) -> &[u32] {
        match &self.storage[id.0 as usize] {
            Storage::Words(cells) => cells.as_slice(),
            Storage::Reals(_) => &[],
        }
    }

    /// A buffer of integers, all lanes, to write.
    pub fn words_mut(&mut self, id: BufferId) -> &mut [u32] {
        match &mut self.storage[id.0 as usize] {
            Storage::Words(cells) => cells.as_mut_slice(),
            Storage::Reals(_) => &mut [],
        }
    }

    /// Runs a range of the plan's calls so many times and returns when they are done. Calls of different lanes
    /// run at the same time; each lane's own run in order.
    pub fn run(&mut self, range: Range<usize>, times: usize) {
        // All on rayon's threads: to enter from outside takes longer than to go on there.
        rayon::scope(|_| (0..times).for_each(|_| self.run_once(range.clone())));
    }

    fn run_once(&mut self, range: Range<usize>) {
        let buffers = Buffers { plan: &self.plan, storage: &self.storage, arch: instructions::best() };
        let calls = &self.plan.calls()[range];
        let mut at = 0;
        while at < calls.len() {
            let section = calls[at..].iter().take_while(|call| call.lane.is_some()).count();
            if section == 0 {
                // SAFETY: nothing else runs now.
                unsafe { buffers.run(&calls[at]) };
                at += 1;
                continue;
            }
            let section_calls = &calls[at..at + section];
            at += section;
            if section_calls.iter().all(|call| call.lane == section_calls[0].lane) {
                // SAFETY: nothing else runs now.
                section_calls.iter().for_each(|call| unsafe { buffers.run(call) });
                continue;
            }
            (0..self.plan.lanes() as u32).into_par_iter().with_max_len(1).for_each(|lane| {
                for call in section_calls.iter().filter(|call| call.lane == Some(lane)) {
                    // SAFETY: only calls of other lanes run now.
                    unsafe { buffers.run(call) };
                }
            });
        }
    }
}

/// The buffers while a range runs: borrowed exclusively by `run`, reached from several threads.
struct Buffers<'a, T> {
    plan: &'a Plan,
    storage: &'a [Storage<T>],
    arch: pulp::Arch,
}

impl<T: Real> Buffers<'_, T> {
    /// Runs one call.
    ///
    /// # Safety
    /// No other call may run at the same time, except that calls of different lanes may. That is
    /// enough: `PlanBuilder` made sure that no call has a buffer it writes twice and that a call of a lane
    /// writes only to its own lane's part of lane buffers.
    unsafe fn run(&self, call: &Call) {
        let mut slots = [const { Slot::Taken }; MAX_BINDINGS];
        for (slot, (id, binding)) in slots.iter_mut().zip(call.buffers.iter().zip(call.kernel.bindings)) {
            let decl = self.plan.buffer(*id);
            // A lane's part, or all of it: shared buffers, and lane buffers seen from outside a lane.
            let part = call.lane.filter(|_| decl.scope == Scope::Lane);
            let range = |cells: usize| match part {
                Some(lane) => lane as usize * decl.len..(lane as usize + 1) * decl.len,
                None => 0..cells,
            };
            // SAFETY: this function's contract.
            *slot = unsafe {
                match (&self.storage[id.0 as usize], binding.access) {
                    (Storage::Reals(cells), Access::Read) => Slot::Reals(cells.part(range(cells.0.len()))),
                    (Storage::Reals(cells), Access::Write) => {
                        Slot::RealsMut(cells.part_mut(range(cells.0.len())))
                    }
                    (Storage::Words(cells), Access::Read) => Slot::Words(cells.part(range(cells.0.len()))),
                    (Storage::Words(cells), Access::Write) => {
                        Slot::WordsMut(cells.part_mut(range(cells.0.len())))
                    }
                }
            };
        }
        call.kernel.twin.run(self.arch, &call.words, Args::new(slots));
    }
}
