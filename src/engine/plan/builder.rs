//! Builds a plan and checks it, call by call.

use super::{Bond, BufferDecl, BufferId, Call, Elem, Fused, MOST_FUSED, Plan, Scope, Section};
use crate::engine::kernels::{Access, Params};
use crate::error::{Error, Result};

/// Builds a [`Plan`] and checks, call by call, the rules that make running it safe: every binding
/// has the kernel's element type, no call has a buffer it writes twice, and lane calls write lane buffers only.
#[derive(Debug)]
pub struct PlanBuilder {
    plan: Plan,
    lane: Option<u32>,
    error: Option<Error>,
}

impl PlanBuilder {
    /// An empty plan with so many lanes.
    pub fn new(lanes: usize) -> Self {
        let plan = Plan {
            lanes: lanes.max(1),
            buffers: Vec::new(),
            calls: Vec::new(),
            sections: Vec::new(),
            fused: Vec::new(),
        };
        Self { plan, lane: None, error: None }
    }

    fn fail(&mut self, what: String) {
        self.error.get_or_insert(Error::Internal(what));
    }

    /// Declares a buffer. Zero-length buffers get one element, as bindings cannot be empty.
    pub fn buffer(&mut self, name: impl Into<String>, elem: Elem, len: usize, scope: Scope) -> BufferId {
        let name = name.into();
        if self.plan.find(&name).is_some() {
            self.fail(format!("buffer `{name}` is declared twice"));
        }
        let id = BufferId(self.plan.buffers.len() as u32);
        self.plan.buffers.push(BufferDecl { name, elem, len: len.max(1), scope });
        id
    }

    /// Following calls belong to this lane (`None`: to all).
    pub fn lane(&mut self, lane: Option<usize>) {
        if lane.is_some_and(|lane| lane >= self.plan.lanes) {
            self.fail(format!("lane {lane:?} of {}", self.plan.lanes));
        }
        self.lane = lane.map(|lane| lane as u32);
    }

    /// A section: the calls that are appended meanwhile. Sections may nest; names are for tools and tests.
    pub fn section(&mut self, name: impl Into<String>, calls: impl FnOnce(&mut Self)) -> Section {
        let name = name.into();
        let start = self.plan.calls.len() as u32;
        calls(self);
        let section = Section { start, end: self.plan.calls.len() as u32 };
        if start == section.end {
            self.fail(format!("section `{name}` has no calls"));
        }
        if self.plan.find_section(&name).is_some() {
            self.fail(format!("section `{name}` is there twice"));
        }
        self.plan.sections.push((name, section));
        section
    }

    /// The calls that are appended meanwhile may be one dispatch, as each instance's rows need no other's but those of its
    /// `kin`. Sections may be inside.
    pub fn chain(&mut self, rows: usize, kin: usize, calls: impl FnOnce(&mut Self)) {
        let start = self.plan.calls.len();
        calls(self);
        let strange = self.plan.calls[start..].iter().find(|call| {
            call.grid.rows().is_none_or(|(all, _)| rows == 0 || !(all as usize).is_multiple_of(rows))
        });
        if let Some(call) = strange {
            let (name, grid) = (call.kernel.name, call.grid);
            self.fail(format!("{name}: a grid of {grid:?} in a chain of {rows} instances"));
        }
        self.fuse(start, Bond::Chain { rows, kin: kin.max(1) });
    }

    /// The calls that are appended meanwhile may be one dispatch, as none needs what another does. Several may write into one
    /// buffer, each its own part: that is not checked.
    pub fn together(&mut self, calls: impl FnOnce(&mut Self)) {
        let start = self.plan.calls.len();
        calls(self);
        let made = &self.plan.calls[start..];
        let uses = |call: &Call, wanted: Access| -> Vec<BufferId> {
            let of_access = call.buffers.iter().zip(call.kernel.bindings);
            of_access.filter(|(_, binding)| binding.access == wanted).map(|(&id, _)| id).collect()
        };
        let clash = made.iter().enumerate().find_map(|(index, call)| {
            let read = uses(call, Access::Read);
            let mut others = made.iter().enumerate().filter(|&(other, _)| other != index);
            others.find_map(|(_, other)| uses(other, Access::Write).into_iter().find(|id| read.contains(id)))
        });
        if let Some(id) = clash {
            self.fail(format!("`{}` is read and written side by side", self.plan.buffer(id).name));
        }
        self.fuse(start, Bond::Together);
    }

    /// In pieces, if there are more than a dispatch may have.
    fn fuse(&mut self, start: usize, bond: Bond) {
        let all = start..self.plan.calls.len();
        if self.plan.fused.last().is_some_and(|last| last.calls.end > start) {
            self.fail(format!("{bond:?}: something in it is fused already"));
            return;
        }
        let pieces = all.clone().step_by(MOST_FUSED).map(|first| first..all.end.min(first + MOST_FUSED));
        let pieces = pieces.filter(|calls| calls.len() > 1).map(|calls| Fused { calls, bond });
        self.plan.fused.extend(pieces);
    }

    /// Appends a call.
    pub fn call<P: Params>(&mut self, params: P, buffers: &[BufferId]) {
        let kernel = P::KERNEL;
        if buffers.len() != kernel.bindings.len() {
            let (got, want) = (buffers.len(), kernel.bindings.len());
            self.fail(format!("{}: {got} buffers for {want} bindings", kernel.name));
            return;
        }
        for (slot, (&id, binding)) in buffers.iter().zip(kernel.bindings).enumerate() {
            let decl = self.plan.buffer(id);
            let writes_shared =
                binding.access != Access::Read && self.lane.is_some() && decl.scope == Scope::Shared;
            let complaint = if decl.elem != binding.view.elem() {
                Some("has another element type")
            } else if writes_shared {
                Some("is shared, but written in a lane")
            } else if buffers[..slot].iter().zip(kernel.bindings).any(|(&other, earlier)| {
                other == id && (earlier.access != Access::Read || binding.access != Access::Read)
            }) {
                Some("is bound twice and written")
            } else {
                None
            };
            if let Some(complaint) = complaint {
                let what = format!("{}.{}: buffer `{}` {complaint}", kernel.name, binding.name, decl.name);
                self.fail(what);
            }
        }
        let work = params.work();
        self.plan.calls.push(Call {
            kernel,
            words: params.words(),
            grid: params.grid(),
            buffers: buffers.to_vec(),
            lane: self.lane,
            flops: work.flops,
            bytes: 4 * work.numbers,
        });
    }

    /// The finished plan.
    ///
    /// # Errors
    /// The first rule that was broken.
    pub fn finish(self) -> Result<Plan> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.plan),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kernels::{Advance, Gumbel};

    fn refused(build: impl FnOnce(&mut PlanBuilder)) -> String {
        let mut builder = PlanBuilder::new(1);
        build(&mut builder);
        builder.finish().expect_err("should have been refused").to_string()
    }

    #[test]
    fn broken_rules_are_named() {
        let noise = Gumbel { rows: 1, steps: 1, actions: 2, pitch: 4, first: 0 };
        let two = |b: &mut PlanBuilder, scope| {
            (b.buffer("clock", Elem::U32, 8, Scope::Shared), b.buffer("gumbel", Elem::F32, 4, scope))
        };
        assert!(
            refused(|b| {
                b.buffer("a", Elem::F32, 1, Scope::Lane);
                b.buffer("a", Elem::F32, 1, Scope::Lane);
            })
            .contains("declared twice")
        );
        assert!(
            refused(|b| {
                let (clock, _) = two(b, Scope::Lane);
                b.call(noise, &[clock]);
            })
            .contains("1 buffers for 2 bindings")
        );
        assert!(
            refused(|b| {
                let (clock, gumbel) = two(b, Scope::Lane);
                b.call(noise, &[gumbel, clock]);
            })
            .contains("another element type")
        );
        assert!(
            refused(|b| {
                let (clock, gumbel) = two(b, Scope::Shared);
                b.lane(Some(0));
                b.call(noise, &[clock, gumbel]);
            })
            .contains("written in a lane")
        );
        assert!(
            refused(|b| {
                let (_, gumbel) = two(b, Scope::Shared);
                let clock = b.find_or_panic("clock");
                b.call(Advance { slots: 1, chunk: 0, batches: 1 }, &[clock, gumbel, gumbel]);
            })
            .contains("bound twice and written")
        );
        assert!(
            refused(|b| {
                b.section("step", |_| ());
            })
            .contains("has no calls")
        );
        let twice = refused(|b| {
            let (clock, gumbel) = two(b, Scope::Lane);
            for _ in 0..2 {
                b.section("step", |b| b.call(noise, &[clock, gumbel]));
            }
        });
        assert!(twice.contains("is there twice"), "{twice}");
        assert!(refused(|b| b.lane(Some(3))).contains("of 1"));
    }

    impl PlanBuilder {
        fn find_or_panic(&self, name: &str) -> BufferId {
            self.plan.find(name).expect("declared")
        }
    }
}
