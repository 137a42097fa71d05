//! The run's state on its way to the host: copied on the device between two epochs, then brought over a
//! little at a time, so that no frame has to carry much. It is what a run continues from when the device
//! is lost.

use super::checkpoint::Checkpoint;
use super::method::Method;
use super::procedure::Place;
use super::stepper::Stepper;
use crate::engine::gpu::{GpuProgram, Recording};
use crate::engine::plan::{BufferId, Elem};
use crate::error::Result;
use std::ops::Range;

/// A buffer of the state and its copy.
#[derive(Debug)]
struct Part {
    name: String,
    /// It is only there once an epoch was good enough to keep.
    is_best: bool,
    id: BufferId,
    elem: Elem,
    words: usize,
    copy: wgpu::Buffer,
}

/// A snapshot that is under way.
#[derive(Debug)]
struct InProgress {
    checkpoint: Checkpoint,
    has_best: bool,
    bytes: Vec<u8>,
    /// How many of them are on their way or there.
    sent: u64,
}

/// Copies of the state on the device, and the snapshot under way.
#[derive(Debug)]
pub(super) struct Snapshots {
    parts: Vec<Part>,
    total: u64,
    taking: Option<InProgress>,
}

impl Snapshots {
    pub fn new<M: Method>(program: &GpuProgram, stepper: &Stepper<M>) -> Result<Self> {
        let weights = stepper.method.weights();
        let best = weights.iter().map(|w| (w.best_name(), w.best, true));
        let rest = stepper.state_buffers().into_iter().map(|(name, id)| (name, id, false));
        let gpu = program.gpu();
        let parts = gpu.scoped("the state's copy", || {
            best.chain(rest)
                .map(|(name, id, is_best)| Part {
                    copy: gpu.device().create_buffer(&wgpu::BufferDescriptor {
                        label: Some(&format!("querent copy of {name}")),
                        size: program.buffer(id).size(),
                        usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
                        mapped_at_creation: false,
                    }),
                    elem: program.plan().buffer(id).elem,
                    words: program.plan().buffer(id).len,
                    name,
                    is_best,
                    id,
                })
                .collect::<Vec<_>>()
        })?;
        let total = parts.iter().map(|part| part.copy.size()).sum();
        Ok(Self { parts, total, taking: None })
    }

    /// Whether there is something to bring over.
    pub fn is_under_way(&self) -> bool {
        self.taking.as_ref().is_some_and(|taking| taking.sent < self.total)
    }

    /// Bytes on their way or there; `None` without a snapshot.
    pub fn sent(&self) -> Option<u64> {
        self.taking.as_ref().map(|taking| taking.sent)
    }

    /// Goes back to an earlier [`Snapshots::sent`]: what was recorded since did not run.
    pub fn back_to(&mut self, sent: Option<u64>) {
        match (sent, &mut self.taking) {
            (Some(sent), Some(taking)) => taking.sent = sent,
            _ => self.taking = None,
        }
    }

    /// Whether another snapshot may begin: the last one has arrived.
    pub fn is_free(&self) -> bool {
        self.taking.is_none()
    }

    /// Records the copies.
    ///
    /// # Errors
    /// The place cannot be stored.
    pub fn encode<M: Method>(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        program: &GpuProgram,
        stepper: &Stepper<M>,
        place: &Place<M::State>,
    ) -> Result<()> {
        for part in &self.parts {
            let source = program.buffer(part.id);
            encoder.copy_buffer_to_buffer(source.buffer(), source.offset(), &part.copy, 0, source.size());
        }
        let mut checkpoint = Checkpoint::new::<M>(stepper.config(), stepper.stage())?;
        checkpoint.set_place(place)?;
        let bytes = vec![0; self.total as usize];
        self.taking = Some(InProgress { checkpoint, has_best: place.best.is_some(), bytes, sent: 0 });
        Ok(())
    }

    /// Records the way of the next bytes into a part of a slice's way back; says which they are.
    pub fn encode_next(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        recording: &Recording,
        room: Range<u64>,
    ) -> Option<Range<u64>> {
        let taking = self.taking.as_mut()?;
        let from = taking.sent;
        let to = self.total.min(from + (room.end - room.start));
        let mut start = 0;
        for part in &self.parts {
            let end = start + part.copy.size();
            let (first, last) = (from.max(start), to.min(end));
            if first < last {
                let at = room.start + first - from;
                recording.bring(encoder, part.copy.slice(..), first - start..last - start, at);
            }
            start = end;
        }
        taking.sent = to;
        (from < to).then_some(from..to)
    }

    /// Takes bytes that have arrived; gives the checkpoint when they are the last.
    pub fn arrived(&mut self, part: &Range<u64>, bytes: &[u8]) -> Option<Checkpoint> {
        let taking = self.taking.as_mut()?;
        taking.bytes.get_mut(part.start as usize..part.end as usize)?.copy_from_slice(bytes);
        if part.end < self.total {
            return None;
        }
        let InProgress { mut checkpoint, has_best, bytes, .. } = self.taking.take()?;
        let mut start = 0;
        for part in &self.parts {
            let words = bytes[start..].chunks_exact(4).take(part.words);
            let words = words.map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            start += part.copy.size() as usize;
            if part.is_best && !has_best {
                continue;
            }
            match part.elem {
                Elem::F32 => {
                    checkpoint.reals.insert(part.name.clone(), words.map(f32::from_bits).collect());
                }
                Elem::U32 => {
                    checkpoint.words.insert(part.name.clone(), words.collect());
                }
            }
        }
        Some(checkpoint)
    }
}
