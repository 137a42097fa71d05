//! A device to work on, its own or a host's, and the pipelines made on it.

use super::cache::{PipelineCache, wanted_features};
use crate::engine::kernels::{Access, Kernel, Target};
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel ready to be dispatched.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    pub(super) pipeline: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
}

/// A device and queue, with the pipelines made so far. Sets no callback on the device and never
/// polls it except in functions named `*_blocking`.
#[derive(Debug)]
pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    kind: Target,
    /// By a kernel's name, or by the whole text where it was made for a plan.
    pipelines: Mutex<HashMap<String, Pipeline>>,
    cache: Option<PipelineCache>,
}

/// An adapter, as `querent info` shows it.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// What wgpu knows about it.
    pub info: wgpu::AdapterInfo,
    /// Its limits.
    pub limits: wgpu::Limits,
    /// Its features.
    pub features: wgpu::Features,
}

impl Adapter {
    /// Whether it is hardware rather than a software driver.
    pub fn is_hardware(&self) -> bool {
        !matches!(self.info.device_type, wgpu::DeviceType::Cpu)
    }
}

fn instance() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
}

/// Better adapters first.
fn rank(info: &wgpu::AdapterInfo) -> u32 {
    match info.device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

async fn ranked() -> Vec<wgpu::Adapter> {
    let mut found = instance().enumerate_adapters(wgpu::Backends::PRIMARY).await;
    found.retain(|adapter| {
        adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
    });
    found.sort_by_key(|adapter| rank(&adapter.get_info()));
    found
}

/// The adapters of this machine that can compute, better ones first.
pub async fn adapters() -> Vec<Adapter> {
    ranked()
        .await
        .into_iter()
        .map(|adapter| Adapter {
            info: adapter.get_info(),
            limits: adapter.limits(),
            features: adapter.features(),
        })
        .collect()
}

impl Gpu {
    /// Opens the best adapter; with `hardware_only`, software drivers are passed over.
    pub async fn open(hardware_only: bool) -> Result<Self> {
        Self::open_with(hardware_only, wgpu::Features::empty()).await
    }

    /// The same, with those of some features that the adapter has.
    pub async fn open_with(hardware_only: bool, useful: wgpu::Features) -> Result<Self> {
        if hardware_only && !super::hardware::is_possible() {
            return Err(Error::NoAdapter(how_to_get_one(hardware_only)));
        }
        let found = ranked().await;
        let adapter = found
            .into_iter()
            .find(|adapter| !hardware_only || adapter.get_info().device_type != wgpu::DeviceType::Cpu)
            .ok_or_else(|| Error::NoAdapter(how_to_get_one(hardware_only)))?;
        let best = adapter.limits();
        let limits = wgpu::Limits {
            max_buffer_size: best.max_buffer_size,
            max_storage_buffer_binding_size: best.max_storage_buffer_binding_size,
            ..wgpu::Limits::default()
        };
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("querent"),
                required_features: wanted_features(&adapter) | (adapter.features() & useful),
                required_limits: limits,
                ..Default::default()
            })
            .await
            .map_err(|source| Error::NoDevice { adapter: adapter.get_info().name, source })?;
        let cache = PipelineCache::open(&device);
        Ok(Self { cache, ..Self::on(device, queue) })
    }

    /// Works on a host's device.
    pub fn on(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let kind = match device.adapter_info().device_type {
            wgpu::DeviceType::Cpu => Target::Software,
            _ => Target::Gpu,
        };
        Self::as_if(device, queue, kind)
    }

    /// Works on a host's device with the kernels that are made for another kind of device: they compute the same.
    pub fn as_if(device: wgpu::Device, queue: wgpu::Queue, kind: Target) -> Self {
        Self { device, queue, kind, pipelines: Mutex::default(), cache: None }
    }

    /// What its kernels are made for.
    pub fn kind(&self) -> Target {
        self.kind
    }

    /// The device.
    pub fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// The queue.
    pub fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    /// Runs code that creates objects; what the device has against it comes back as an error
    /// instead of reaching the host's error handler.
    pub(crate) fn scoped<R>(&self, what: &str, create: impl FnOnce() -> R) -> Result<R> {
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = create();
        let errors = [ready(validation.pop()), ready(internal.pop()), ready(memory.pop())];
        // What there was no memory for is invalid from then on: of several errors, the last one here is the cause.
        match errors.into_iter().flatten().flatten().next_back() {
            Some(error) => Err(Error::gpu(what, error)),
            None => Ok(made),
        }
    }

    /// The pipeline of a kernel, made on first use.
    pub(super) fn pipeline(&self, kernel: &'static Kernel) -> Result<Pipeline> {
        // Binding 0 is the parameter block, the storage buffers follow.
        let read_only: Vec<bool> = kernel.bindings.iter().map(|b| b.access == Access::Read).collect();
        let source = || kernel.source(self.kind);
        self.kept(kernel.name, (kernel.name, source), (1, false), &read_only)
    }

    /// The pipeline of a text that was made for a plan, whose two uniform buffers have dynamic offsets.
    pub(super) fn made_pipeline(&self, label: &str, text: &str, read_only: &[bool]) -> Result<Pipeline> {
        self.kept(text, (label, || text.to_string()), (2, true), read_only)
    }

    /// A pipeline that is there already, or is made now: uniform buffers first, then storage buffers.
    fn kept(
        &self,
        key: &str,
        (label, source): (&str, impl Fn() -> String),
        uniforms: (u32, bool),
        read_only: &[bool],
    ) -> Result<Pipeline> {
        let mut pipelines = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = pipelines.get(key) {
            return Ok(pipeline.clone());
        }
        let pipeline = self.scoped(label, || self.build(label, source(), uniforms, read_only))?;
        pipelines.insert(key.to_string(), pipeline.clone());
        Ok(pipeline)
    }

    fn build(
        &self,
        label: &str,
        source: String,
        (uniforms, dynamic): (u32, bool),
        read_only: &[bool],
    ) -> Pipeline {
        let label = Some(label);
        let entry = |binding: u32, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
            count: None,
        };
        let uniform = (0..uniforms).map(|index| entry(index, wgpu::BufferBindingType::Uniform, dynamic));
        let storage = read_only
            .iter()
            .zip(uniforms..)
            .map(|(&read_only, index)| entry(index, wgpu::BufferBindingType::Storage { read_only }, false));
        let entries: Vec<_> = uniform.chain(storage).collect();
        let layout = self
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label,
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Every workgroup variable is written before it is read.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: self.cache.as_ref().map(PipelineCache::cache),
        });
        Pipeline { pipeline, layout }
    }

    /// Stores the pipelines made so far, where that was asked for.
    pub(super) fn keep_pipelines(&self) {
        if let Some(cache) = &self.cache {
            cache.save();
        }
    }

    /// A buffer to copy from, with these words in it.
    pub(crate) fn filled(&self, label: &str, words: &[u32]) -> wgpu::Buffer {
        self.filled_for(label, words, wgpu::BufferUsages::COPY_SRC)
    }

    /// A buffer for some use, with these words in it.
    pub(super) fn filled_for(&self, label: &str, words: &[u32], usage: wgpu::BufferUsages) -> wgpu::Buffer {
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: words.len() as u64 * 4,
            usage,
            mapped_at_creation: true,
        });
        if let Ok(mut view) = buffer.get_mapped_range_mut(..) {
            view.copy_from_slice(bytemuck::cast_slice(words));
        }
        buffer.unmap();
        buffer
    }

    /// A buffer for [`Gpu::is_lost`].
    pub(crate) fn probe(&self) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("querent probe"),
            size: 4,
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        })
    }

    /// Whether the device is gone. Neither waits nor polls: a device that is gone refuses at once to map
    /// a buffer, and any other would do so later.
    pub(crate) fn is_lost(&self, probe: &wgpu::Buffer) -> bool {
        let refused = Arc::new(AtomicBool::new(false));
        let answer = Arc::clone(&refused);
        let asked = self.scoped("probe", || {
            probe.map_async(wgpu::MapMode::Read, .., move |result| {
                answer.store(result.is_err(), Ordering::Relaxed);
            });
            // Looked at before the request is taken back: that also ends it with an error.
            let lost = refused.load(Ordering::Relaxed);
            if !lost {
                probe.unmap();
            }
            lost
        });
        asked.unwrap_or(true)
    }

    /// Waits until the queue is empty.
    ///
    /// # Errors
    /// The device was lost.
    pub fn wait_blocking(&self) -> Result<()> {
        self.device
            .poll(wgpu::PollType::wait_indefinitely())
            .map(|_| ())
            .map_err(|error| Error::DeviceLost(error.to_string()))
    }

    /// Shares it.
    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }
}

/// The value of a future that wgpu completes at once on native backends. In a browser it may still
/// be pending: the browser's console then has the error.
fn ready<F: Future>(future: F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

/// What to do on this system to have an adapter.
pub(crate) fn how_to_get_one(hardware_only: bool) -> String {
    let kind = if hardware_only { "no hardware adapter was found" } else { "none was found" };
    let hint = if cfg!(target_os = "linux") {
        "install the GPU's Vulkan driver, or a software one (Debian, Ubuntu: `apt-get install \
         mesa-vulkan-drivers`; Fedora: `dnf install mesa-vulkan-drivers`; Arch: `pacman -S vulkan-swrast`)"
    } else if cfg!(target_os = "macos") {
        "Metal needs macOS 10.15 or later and cannot be used in every virtual machine"
    } else if cfg!(target_os = "windows") {
        "install the GPU's driver with DirectX 12 or Vulkan support"
    } else {
        "WebGPU must be available (navigator.gpu)"
    };
    format!("{kind}; {hint}. The CPU engine needs none")
}
