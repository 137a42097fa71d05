//! Where a plan's buffers lie on a device. A dispatch of many calls uses more buffers than a shader may bind, so what
//! fused calls touch lies in a few large ones, the arenas.
//!
//! A buffer that a kernel writes number by number lies in an arena of single numbers: to write a component of a vector
//! may, on some devices, write the whole vector, and with it a neighbour's number.

use super::super::program::buffer_bytes;
use crate::engine::kernels::{Access, View};
use crate::engine::plan::{BufferId, Elem, Plan};
use std::fmt;

/// Where a buffer lies, as a shader names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Home {
    /// In an arena of vectors.
    Vectors(usize),
    /// In an arena of single numbers.
    Scalars(usize),
    /// In an arena of integers.
    Words(usize),
    /// It is a buffer of its own, by its number among those.
    Alone(usize),
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Home::Vectors(n) => write!(f, "vectors{n}"),
            Home::Scalars(n) => write!(f, "scalars{n}"),
            Home::Words(n) => write!(f, "words{n}"),
            Home::Alone(n) => write!(f, "alone{n}"),
        }
    }
}

/// A buffer's place: its home, and where in it, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub home: Home,
    pub offset: u64,
}

/// The places of a plan's buffers, and the sizes of the arenas.
#[derive(Debug)]
pub(super) struct Arenas {
    pub places: Vec<Place>,
    pub sizes: Vec<(Home, u64)>,
}

/// Distance of buffers in an arena: WebGPU's default alignment of bindings' offsets, for those who bind a part.
const ALIGNMENT: u64 = 256;

/// What no kernel writes and has more bytes than this stays alone: tables may be as large as a device allows.
const LARGE: u64 = 1 << 20;

impl Arenas {
    /// Places the buffers that fused calls touch; all others are alone. No arena is larger than `limit`.
    pub fn new(plan: &Plan, limit: u64) -> Self {
        let mut touched = vec![false; plan.buffers().len()];
        let mut written_singly = vec![false; plan.buffers().len()];
        let mut written = vec![false; plan.buffers().len()];
        let mut atomic = vec![false; plan.buffers().len()];
        for fused in plan.fused() {
            let calls = &plan.calls()[fused.calls.clone()];
            calls.iter().flat_map(|call| &call.buffers).for_each(|&BufferId(id)| touched[id as usize] = true);
        }
        for call in plan.calls() {
            for (&BufferId(id), binding) in call.buffers.iter().zip(call.kernel.bindings) {
                let singly = binding.access == Access::Write && binding.view == View::F32;
                written_singly[id as usize] |= singly;
                written[id as usize] |= binding.access == Access::Write;
                atomic[id as usize] |= binding.view == View::Atomic;
            }
        }
        let mut arenas = Self { places: Vec::new(), sizes: Vec::new() };
        let mut alone = 0;
        for (id, decl) in plan.buffers().iter().enumerate() {
            let bytes = buffer_bytes(decl);
            let place = if !touched[id] || atomic[id] || (!written[id] && bytes > LARGE) {
                alone += 1;
                Place { home: Home::Alone(alone - 1), offset: 0 }
            } else {
                arenas.take(decl.elem, written_singly[id], bytes, limit)
            };
            arenas.places.push(place);
        }
        arenas
    }

    /// A place in the first arena of its kind that has room.
    fn take(&mut self, elem: Elem, singly: bool, bytes: u64, limit: u64) -> Place {
        let mut number = 0;
        loop {
            let home = match (elem, singly) {
                (Elem::U32, _) => Home::Words(number),
                (Elem::F32, true) => Home::Scalars(number),
                (Elem::F32, false) => Home::Vectors(number),
            };
            let Some((_, size)) = self.sizes.iter_mut().find(|(of, _)| *of == home) else {
                self.sizes.push((home, bytes));
                return Place { home, offset: 0 };
            };
            let offset = size.next_multiple_of(ALIGNMENT);
            if offset + bytes <= limit {
                *size = offset + bytes;
                return Place { home, offset };
            }
            number += 1;
        }
    }
}
