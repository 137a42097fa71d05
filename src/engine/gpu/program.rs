//! A plan on a device.

use super::context::{Gpu, Pipeline};
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
        let grid = call.kernel.grid(device, call.grid);
        if grid.iter().any(|&n| n > MAX_GRID) {
            return Err(Error::Internal(format!("{}: a grid of {grid:?} workgroups", call.kernel.name)));
        }
    }
    Ok(())
}

struct Dispatch {
    pipeline: Pipeline,
    bindings: wgpu::BindGroup,
    grid: [u32; 3],
}

/// A plan with its buffers, pipelines and bind groups on a device. Everything is made here, once;
/// encoding creates nothing.
pub struct GpuProgram {
    gpu: Arc<Gpu>,
    plan: Plan,
    buffers: Vec<wgpu::Buffer>,
    dispatches: Vec<Dispatch>,
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
        let buffers = gpu.scoped("buffers", || {
            plan.buffers()
                .iter()
                .map(|decl| {
                    gpu.device().create_buffer(&wgpu::BufferDescriptor {
                        label: Some(&format!("querent {}", decl.name)),
                        size: buffer_bytes(decl),
                        usage: wgpu::BufferUsages::STORAGE
                            | wgpu::BufferUsages::COPY_SRC
                            | wgpu::BufferUsages::COPY_DST,
                        mapped_at_creation: false,
                    })
                })
                .collect::<Vec<_>>()
        })?;
        let blocks = gpu.scoped("parameter blocks", || parameter_blocks(gpu.device(), &plan))?;
        let mut dispatches = Vec::with_capacity(plan.calls().len());
        for (index, call) in plan.calls().iter().enumerate() {
            let pipeline = gpu.pipeline(call.kernel)?;
            let label = call.kernel.name;
            let bindings = gpu.scoped(label, || {
                let block = wgpu::BufferBinding {
                    buffer: &blocks,
                    offset: index as u64 * BLOCK,
                    size: std::num::NonZeroU64::new(WORDS as u64 * 4),
                };
                let mut entries =
                    vec![wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(block) }];
                entries.extend(call.buffers.iter().zip(1..).map(|(id, binding)| wgpu::BindGroupEntry {
                    binding,
                    resource: buffers[id.0 as usize].as_entire_binding(),
                }));
                gpu.device().create_bind_group(&wgpu::BindGroupDescriptor {
                    label: Some(label),
                    layout: &pipeline.layout,
                    entries: &entries,
                })
            })?;
            let grid = call.kernel.grid(gpu.kind(), call.grid);
            dispatches.push(Dispatch { pipeline, bindings, grid });
        }
        gpu.keep_pipelines();
        Ok(Self { gpu, plan, buffers, dispatches })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device it is on.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// A buffer of the plan, to bind or copy from.
    pub fn buffer(&self, id: BufferId) -> &wgpu::Buffer {
        &self.buffers[id.0 as usize]
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
        for dispatch in ranges.iter().flat_map(|range| &self.dispatches[range.clone()]) {
            pass.set_pipeline(&dispatch.pipeline.pipeline);
            pass.set_bind_group(0, &dispatch.bindings, &[]);
            let [x, y, z] = dispatch.grid;
            pass.dispatch_workgroups(x, y, z);
        }
    }

    /// Records and submits a range of the plan's calls, `times` times, without waiting.
    pub fn submit(&self, range: &Range<usize>, times: usize) {
        // Some hundred dispatches a submission: enough to hide its cost, too few for a watchdog.
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
        let sources: Vec<&wgpu::Buffer> = ids.iter().map(|&id| self.buffer(id)).collect();
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
        encoder.copy_buffer_to_buffer(&values, 0, self.buffer(id), offset as u64 * 4, values.size());
        Ok(())
    }

    /// Records the copy of a buffer into another of the same size.
    pub(crate) fn encode_copy(&self, encoder: &mut wgpu::CommandEncoder, from: BufferId, to: BufferId) {
        let (from, to) = (self.buffer(from), self.buffer(to));
        encoder.copy_buffer_to_buffer(from, 0, to, 0, from.size());
    }

    /// Writes into a buffer from `offset` (in elements); takes effect before what is submitted next.
    pub fn write<E: bytemuck::NoUninit>(&self, id: BufferId, offset: usize, values: &[E]) {
        self.gpu.queue().write_buffer(self.buffer(id), offset as u64 * 4, bytemuck::cast_slice(values));
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
