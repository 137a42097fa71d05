//! The buffers of one call, handed to a twin.

use super::real::Real;

/// One binding: whole buffers, as slices.
#[derive(Debug)]
pub enum Slot<'a, T> {
    /// Reals to read.
    Reals(&'a [T]),
    /// Reals to write.
    RealsMut(&'a mut [T]),
    /// Integers to read.
    Words(&'a [u32]),
    /// Integers to write.
    WordsMut(&'a mut [u32]),
    /// Already handed out.
    Taken,
}

/// Most bindings a kernel may have: WebGPU's default limit of storage buffers in a stage.
pub const MAX_BINDINGS: usize = 8;

/// The bindings of a call in the kernel table's order. A twin takes each once; taking it as
/// something else than the table says is a mistake in the twin and panics.
pub struct Args<'a, T> {
    slots: [Slot<'a, T>; MAX_BINDINGS],
    next: usize,
}

impl<'a, T: Real> Args<'a, T> {
    pub(super) fn new(slots: [Slot<'a, T>; MAX_BINDINGS]) -> Self {
        Self { slots, next: 0 }
    }

    fn take(&mut self) -> Slot<'a, T> {
        let slot = std::mem::replace(&mut self.slots[self.next], Slot::Taken);
        self.next += 1;
        slot
    }

    /// The next binding: reals to read.
    pub fn reals(&mut self) -> &'a [T] {
        match self.take() {
            Slot::Reals(slice) => slice,
            other => panic!("binding {} is not reals to read but {other:?}", self.next - 1),
        }
    }

    /// The next binding: reals to write.
    pub fn reals_mut(&mut self) -> &'a mut [T] {
        match self.take() {
            Slot::RealsMut(slice) => slice,
            other => panic!("binding {} is not reals to write but {other:?}", self.next - 1),
        }
    }

    /// The next binding: integers to read.
    pub fn words(&mut self) -> &'a [u32] {
        match self.take() {
            Slot::Words(slice) => slice,
            other => panic!("binding {} is not integers to read but {other:?}", self.next - 1),
        }
    }

    /// The next binding: integers to write.
    pub fn words_mut(&mut self) -> &'a mut [u32] {
        match self.take() {
            Slot::WordsMut(slice) => slice,
            other => panic!("binding {} is not integers to write but {other:?}", self.next - 1),
        }
    }
}
