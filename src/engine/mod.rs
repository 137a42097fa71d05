//! One plan, two engines: `plan` is what is executed, `kernels` what it is made of.

mod budget;
#[doc(hidden)]
pub mod cpu;
pub mod gpu;
#[doc(hidden)]
pub mod groups;
#[doc(hidden)]
pub mod kernels;
#[doc(hidden)]
pub mod plan;
mod program;

pub use budget::Budget;
pub(crate) use budget::{Allowance, Pace};
#[doc(hidden)]
pub use program::Program;

use crate::error::Result;
use gpu::Gpu;
use std::sync::Arc;
// std's panics in a browser; elsewhere the two are the same.
#[cfg(not(feature = "web"))]
pub(crate) use std::time::Instant;
#[cfg(feature = "web")]
pub(crate) use web_time::Instant;

/// Where training runs.
#[derive(Clone, Debug)]
pub struct Engine {
    kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Cpu,
    CpuF64,
    Gpu(Arc<Gpu>),
}

impl Engine {
    /// A hardware adapter if there is one, else the CPU engine; says in the log which it took. On Linux no driver is
    /// asked where no GPU has a device file, unless a variable names one (`VK_DRIVER_FILES`).
    ///
    /// # Errors
    /// None at present: the CPU engine is always there.
    pub async fn auto() -> Result<Self> {
        let engine = match Gpu::open(true).await {
            Ok(gpu) => Self { kind: Kind::Gpu(gpu.shared()) },
            Err(error) => {
                log::info!("{error}");
                Self::cpu()
            }
        };
        log::info!("engine: {engine}");
        Ok(engine)
    }

    /// [`Engine::auto`] for those who can wait: a browser cannot.
    ///
    /// # Errors
    /// None at present: the CPU engine is always there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn auto_blocking() -> Result<Self> {
        pollster::block_on(Self::auto())
    }

    /// The best adapter, software drivers included.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub async fn gpu() -> Result<Self> {
        Ok(Self { kind: Kind::Gpu(Gpu::open(false).await?.shared()) })
    }

    /// [`Engine::gpu`] for those who can wait: a browser cannot.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn gpu_blocking() -> Result<Self> {
        pollster::block_on(Self::gpu())
    }

    /// The same on a device that tells when its passes begin and end, where it can: for measurements.
    ///
    /// # Errors
    /// There is none, or it cannot be opened; with `hardware_only`, also if there are only software drivers.
    #[doc(hidden)]
    #[cfg(not(target_arch = "wasm32"))]
    pub fn timed_gpu_blocking(hardware_only: bool) -> Result<Self> {
        let gpu = pollster::block_on(Gpu::open_with(hardware_only, Self::useful_features()))?;
        Ok(Self { kind: Kind::Gpu(gpu.shared()) })
    }

    /// The host's device.
    pub fn on(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        Self { kind: Kind::Gpu(Gpu::on(device, queue).shared()) }
    }

    /// The host's device, with the kernels that are made for another kind of device than it is: they compute
    /// the same, so this is for tests and measurements.
    pub fn on_as(device: wgpu::Device, queue: wgpu::Queue, kind: kernels::Target) -> Self {
        Self { kind: Kind::Gpu(Gpu::as_if(device, queue, kind).shared()) }
    }

    /// All cores of this machine.
    pub fn cpu() -> Self {
        Self { kind: Kind::Cpu }
    }

    /// All cores, in f64: slower, for checking gradients.
    pub fn cpu_f64() -> Self {
        Self { kind: Kind::CpuF64 }
    }

    /// The features a device must be requested with: none.
    pub fn required_features() -> wgpu::Features {
        wgpu::Features::empty()
    }

    /// Features that are used if the device has them: timestamps make
    /// [`Budget::Millis`] exact.
    pub fn useful_features() -> wgpu::Features {
        wgpu::Features::TIMESTAMP_QUERY
    }

    /// The device and queue it works on, if it is a GPU engine.
    pub fn device(&self) -> Option<(&wgpu::Device, &wgpu::Queue)> {
        match &self.kind {
            Kind::Gpu(gpu) => Some((gpu.device(), gpu.queue())),
            _ => None,
        }
    }

    /// Is there when the device has done what was submitted to it so far; at once on the CPU engine. In a browser the event
    /// loop brings it; elsewhere somebody has to poll the device meanwhile.
    pub fn submitted(&self) -> impl Future<Output = ()> + use<> {
        let done = match &self.kind {
            Kind::Gpu(gpu) => Some(gpu.submitted()),
            _ => None,
        };
        async move {
            if let Some(done) = done {
                done.await;
            }
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Bytes of a real number.
    pub(crate) fn real_bytes(&self) -> usize {
        if matches!(self.kind, Kind::CpuF64) { 8 } else { 4 }
    }
}

impl std::fmt::Display for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let threads = rayon::current_num_threads();
        let s = if threads == 1 { "" } else { "s" };
        match &self.kind {
            Kind::Cpu => write!(f, "cpu ({threads} thread{s}, f32)"),
            Kind::CpuF64 => write!(f, "cpu ({threads} thread{s}, f64)"),
            Kind::Gpu(gpu) => {
                let info = gpu.device().adapter_info();
                write!(f, "gpu ({}, {})", info.name, info.backend)
            }
        }
    }
}
