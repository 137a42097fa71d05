//! A plan on a device.

use super::context::{Gpu, Pipeline};
use super::fuse::{Fusion, Made, Part, Whole};
use super::readback::Readback;
use crate::engine::kernels::{Target, WORDS};
use crate::engine::plan::{BufferDecl, BufferId, Call, Plan};
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Distance of parameter blocks: WebGPU's default alignment of uniform offsets.
const BLOCK: u64 = 256;

/// Workgroups in one dimension: WebGPU's default limit.
const MAX_GRID: u32 = 65_535;

/// Bytes of a buffer on a device: vec4 views need whole vectors.
pub(crate) fn buffer_bytes(decl: &BufferDecl) -> u64 {
    (decl.len as u64 * 4).next_multiple_of(16)
}

/// Whether a device of these limits can hold and bind a buffer.
pub(crate) fn check_limits(limits: &wgpu::Limits, decl: &BufferDecl) -> Result<()> {
    let needed = buffer_bytes(decl);
    for (name, limit) in [
        ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size),
        ("max_buffer_size", limits.max_buffer_size),
    ] {
        if needed > limit {
            return Err(Error::Limit { buffer: decl.name.clone(), name, needed, limit });
        }
    }
    Ok(())
}

/// Whether a call's workgroups can be dispatched, whatever kind of device it is.
pub(crate) fn check_grid(call: &Call) -> Result<()> {
    for device in [Target::Gpu, Target::Software] {
        let grid = call.kernel.groups(device, call.grid);
        if grid.iter().any(|&n| n > MAX_GRID) {
            return Err(Error::Internal(format!("{}: a grid of {grid:?} workgroups", call.kernel.name)));
        }
    }
    Ok(())
}

/// A dispatch, ready to be recorded.
pub(super) struct Dispatch {
    pub pipeline: Pipeline,
    pub bindings: wgpu::BindGroup,
    /// Dynamic offsets, where there are some.
    pub offsets: Vec<u32>,
    pub grid: [u32; 3],
}

/// A plan with its buffers, pipelines and bind groups on a device. Everything is made here, once;
/// encoding creates nothing.
pub struct GpuProgram {
    gpu: Arc<Gpu>,
    plan: Plan,
    buffers: Vec<Part>,
    /// One for each call.
    dispatches: Vec<Dispatch>,
    /// Those of several calls at once, in order.
    whole: Vec<Whole>,
}

impl GpuProgram {
    /// Creates the plan's objects on the device.
    ///
    /// # Errors
    /// A buffer larger than the device's limits, too little memory, or a kernel the device refuses.
    pub fn new(gpu: Arc<Gpu>, plan: Plan) -> Result<Self> {
        if plan.lanes() != 1 {
            return Err(Error::Internal(format!("{} lanes, but a GPU plan has one", plan.lanes())));
        }
        if gpu.is_lost(&gpu.probe()) {
            return Err(Error::DeviceLost("nothing can be made on it any more".into()));
        }
        let limits = gpu.device().limits();
        for decl in plan.buffers() {
            check_limits(&limits, decl)?;
        }
        for call in plan.calls() {
            check_grid(call)?;
        }
        let mut fusion = Fusion::new(&plan, &limits, gpu.kind())?;
        let plan = if fusion.is_some() { plan } else { plan.unfused() };
        let buffers = match &fusion {
            Some(fusion) => fusion.buffers(&gpu, &plan)?,
            None => {
                gpu.scoped("buffers", || plan.buffers().iter().map(|decl| Part::alone(&gpu, decl)).collect())?
            }
        };
        let mut made = match &mut fusion {
            Some(fusion) => fusion.dispatches(&gpu, &plan, &buffers)?,
            None => Made::default(),
        };
        let blocks = gpu.scoped("parameter blocks", || parameter_blocks(gpu.device(), &plan))?;
        let mut dispatches = Vec::with_capacity(plan.calls().len());
        for (index, call) in plan.calls().iter().enumerate() {
            dispatches.push(match made.single.remove(&index) {
                Some(dispatch) => dispatch,
                None => dispatch_of(&gpu, call, (&blocks, index as u64 * BLOCK), &buffers)?,
            });
        }
        gpu.keep_pipelines();
        Ok(Self { gpu, plan, buffers, dispatches, whole: made.whole })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device it is on.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// A buffer of the plan, to bind or copy from: a part of a larger one, perhaps.
    pub fn buffer(&self, id: BufferId) -> wgpu::BufferSlice<'_> {
        self.buffers[id.0 as usize].slice()
    }

    /// The dispatches of a range of calls: those of several calls where all of them are in it.
    fn dispatches(&self, range: Range<usize>) -> impl Iterator<Item = &Dispatch> {
        let mut call = range.start;
        std::iter::from_fn(move || {
            if call >= range.end {
                return None;
            }
            let at = self.whole.binary_search_by_key(&call, |whole| whole.calls.start);
            let whole = at.ok().map(|at| &self.whole[at]).filter(|whole| whole.calls.end <= range.end);
            let dispatch = match whole {
                Some(whole) => {
                    call = whole.calls.end;
                    &whole.dispatch
                }
                None => {
                    call += 1;
                    &self.dispatches[call - 1]
                }
            };
            Some(dispatch)
        })
    }

    /// Records a range of the plan's calls, as one compute pass. Nothing runs until the encoder's
    /// commands are submitted.
    pub fn encode(&self, encoder: &mut wgpu::CommandEncoder, range: Range<usize>) {
        self.encode_pass(encoder, &[range], None);
    }

    /// Records several ranges as one compute pass.
    pub(crate) fn encode_pass(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        ranges: &[Range<usize>],
        timestamp_writes: Option<wgpu::ComputePassTimestampWrites>,
    ) {
        let mut pass = encoder
            .begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("querent"), timestamp_writes });
        for dispatch in ranges.iter().flat_map(|range| self.dispatches(range.clone())) {
            pass.set_pipeline(&dispatch.pipeline.pipeline);
            pass.set_bind_group(0, &dispatch.bindings, &dispatch.offsets);
            let [x, y, z] = dispatch.grid;
            pass.dispatch_workgroups(x, y, z);
        }
    }

    /// Records and submits a range of the plan's calls, `times` times, without waiting.
    pub fn submit(&self, range: &Range<usize>, times: usize) {
        // Some hundred calls a submission: enough to hide its cost, too few for a watchdog.
        let each = (512 / range.len().max(1)).max(1);
        let mut left = times;
        while left > 0 {
            let mut encoder = self.encoder();
            for _ in 0..each.min(left) {
                self.encode(&mut encoder, range.clone());
            }
            self.gpu.queue().submit([encoder.finish()]);
            left -= each.min(left);
        }
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.gpu.device().create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("querent") })
    }

    /// Records the way of some buffers to the host.
    pub fn encode_readback(&self, encoder: &mut wgpu::CommandEncoder, ids: &[BufferId]) -> Readback {
        let sources: Vec<wgpu::BufferSlice> = ids.iter().map(|&id| self.buffer(id)).collect();
        Readback::encode(self.gpu.device(), encoder, &sources)
    }

    /// Records a write into a buffer from `offset` (in elements).
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn encode_write(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        id: BufferId,
        offset: usize,
        words: &[u32],
    ) -> Result<()> {
        let values = self.gpu.scoped("values", || self.gpu.filled("querent values", words))?;
        let to = self.buffer(id);
        let at = to.offset() + offset as u64 * 4;
        encoder.copy_buffer_to_buffer(&values, 0, to.buffer(), at, values.size());
        Ok(())
    }

    /// Records the copy of a buffer into another of the same size; one of them is such that no fused call touches it.
    pub(crate) fn encode_copy(&self, encoder: &mut wgpu::CommandEncoder, from: BufferId, to: BufferId) {
        let (from, to) = (self.buffer(from), self.buffer(to));
        encoder.copy_buffer_to_buffer(from.buffer(), from.offset(), to.buffer(), to.offset(), from.size());
    }

    /// Records zeros into a buffer, from a word on, so many or all.
    pub(crate) fn encode_clear(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        id: BufferId,
        words: Option<Range<usize>>,
    ) {
        let part = self.buffer(id);
        let (from, size) = match words {
            Some(words) => (words.start as u64 * 4, words.len() as u64 * 4),
            None => (0, part.size()),
        };
        encoder.clear_buffer(part.buffer(), part.offset() + from, Some(size));
    }

    /// Writes into a buffer from `offset` (in elements); takes effect before what is submitted next.
    pub fn write<E: bytemuck::NoUninit>(&self, id: BufferId, offset: usize, values: &[E]) {
        let to = self.buffer(id);
        let at = to.offset() + offset as u64 * 4;
        self.gpu.queue().write_buffer(to.buffer(), at, bytemuck::cast_slice(values));
    }

    /// A buffer's words, after everything submitted before is done.
    ///
    /// # Errors
    /// The device was lost.
    pub fn read_blocking(&self, id: BufferId) -> Result<Vec<u32>> {
        let mut encoder = self.encoder();
        let readback = self.encode_readback(&mut encoder, &[id]);
        self.gpu.queue().submit([encoder.finish()]);
        self.gpu.wait_blocking()?;
        let bytes = readback
            .try_take()?
            .ok_or_else(|| Error::DeviceLost("the device finished without delivering a readback".into()))?;
        let words = self.plan.buffer(id).len;
        Ok(bytes.chunks_exact(4).take(words).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}

/// A call as its kernel alone, with its parameters in a block of a buffer.
fn dispatch_of(
    gpu: &Gpu,
    call: &Call,
    (blocks, offset): (&wgpu::Buffer, u64),
    buffers: &[Part],
) -> Result<Dispatch> {
    let pipeline = gpu.pipeline(call.kernel)?;
    let label = call.kernel.name;
    let bindings = gpu.scoped(label, || {
        let size = std::num::NonZeroU64::new(WORDS as u64 * 4);
        let block = wgpu::BufferBinding { buffer: blocks, offset, size };
        let mut entries =
            vec![wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(block) }];
        entries.extend(call.buffers.iter().zip(1..).map(|(id, binding)| wgpu::BindGroupEntry {
            binding,
            resource: buffers[id.0 as usize].buffer.as_entire_binding(),
        }));
        gpu.device().create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(label),
            layout: &pipeline.layout,
            entries: &entries,
        })
    })?;
    let grid = call.kernel.groups(gpu.kind(), call.grid);
    Ok(Dispatch { pipeline, bindings, offsets: Vec::new(), grid })
}

fn parameter_blocks(device: &wgpu::Device, plan: &Plan) -> wgpu::Buffer {
    let size = (plan.calls().len() as u64 * BLOCK).max(BLOCK);
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("querent parameters"),
        size,
        usage: wgpu::BufferUsages::UNIFORM,
        mapped_at_creation: true,
    });
    if let Ok(mut view) = buffer.get_mapped_range_mut(..) {
        let mut bytes = vec![0u8; size as usize];
        for (block, call) in bytes.chunks_exact_mut(BLOCK as usize).zip(plan.calls()) {
            block[..WORDS * 4].copy_from_slice(bytemuck::cast_slice(&call.words));
        }
        view.copy_from_slice(&bytes);
    }
    buffer.unmap();
    buffer
}
