//! The run's state on its way to the host: copied on the device between two epochs, then brought over a
//! little at a time, so that no frame has to carry much. It is what a run continues from when the device
//! is lost.

use super::checkpoint::Checkpoint;
use super::procedure::Progress;
use super::stepper::Stepper;
use crate::engine::gpu::{GpuProgram, Recording};
use crate::engine::plan::{BufferId, Elem};
use crate::error::Result;
use std::ops::Range;

/// Names of the best weights in a checkpoint.
pub(super) const BEST: [&str; 2] = ["best.policy", "best.predictor"];

/// A buffer of the state and its copy.
#[derive(Debug)]
struct Part {
    name: String,
    id: BufferId,
    elem: Elem,
    words: usize,
    copy: wgpu::Buffer,
}

/// A snapshot that is under way.
#[derive(Debug)]
struct Taking {
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
    taking: Option<Taking>,
}

impl Snapshots {
    pub fn new(program: &GpuProgram, stepper: &Stepper) -> Result<Self> {
        let nets = [stepper.layout().policy, stepper.layout().predictor];
        let best = BEST.into_iter().zip(nets).map(|(name, net)| (name.to_string(), net.best));
        let gpu = program.gpu();
        let parts = gpu.scoped("the state's copy", || {
            best.chain(stepper.state_buffers())
                .map(|(name, id)| Part {
                    copy: gpu.device().create_buffer(&wgpu::BufferDescriptor {
                        label: Some(&format!("querent copy of {name}")),
                        size: program.buffer(id).size(),
                        usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
                        mapped_at_creation: false,
                    }),
                    elem: program.plan().buffer(id).elem,
                    words: program.plan().buffer(id).len,
                    name,
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
    pub fn encode(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        program: &GpuProgram,
        stepper: &Stepper,
        progress: &Progress,
    ) {
        for part in &self.parts {
            let source = program.buffer(part.id);
            encoder.copy_buffer_to_buffer(source, 0, &part.copy, 0, source.size());
        }
        let mut checkpoint = Checkpoint::new(stepper.config(), stepper.stage());
        checkpoint.progress = serde_json::to_string(progress).unwrap_or_default();
        let bytes = vec![0; self.total as usize];
        self.taking = Some(Taking { checkpoint, has_best: progress.best.is_some(), bytes, sent: 0 });
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
                recording.bring(encoder, &part.copy, first - start..last - start, at);
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
        let Taking { mut checkpoint, has_best, bytes, .. } = self.taking.take()?;
        let mut start = 0;
        for part in &self.parts {
            let words = bytes[start..].chunks_exact(4).take(part.words);
            let words = words.map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            start += part.copy.size() as usize;
            if BEST.contains(&part.name.as_str()) && !has_best {
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
