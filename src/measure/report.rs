//! What somebody with a GPU can send to those who have none: a device, what it costs, and steps of some shapes on it.

use super::device::{Costs, costs_blocking};
use super::shape::{SHAPES, Shape};
use super::step::{StepTime, step_blocking};
use crate::engine::Engine;
use crate::error::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// How the file is made: raised when a reader of the one before would misread it.
const FORMAT: u32 = 1;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Shapes of a step.
    pub shapes: Vec<Shape>,
    /// Batches of each.
    pub batches: Vec<usize>,
    /// Seconds of each measurement, about.
    pub seconds: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { shapes: SHAPES.to_vec(), batches: vec![128, 1024], seconds: 0.5 }
    }
}

/// A device, as wgpu knows it.
#[derive(Clone, Debug, Serialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Vulkan, Metal, DX12 or WebGPU.
    pub backend: String,
    /// Discrete, integrated, virtual, or a software driver.
    pub kind: String,
    /// Its driver.
    pub driver: String,
    /// More about that.
    pub driver_info: String,
    /// PCI numbers of vendor and device.
    pub pci: [u32; 2],
    /// What wgpu's adapter allows at most, by name: the limits that decide what fits.
    pub limits: BTreeMap<&'static str, u64>,
    /// Features of the device as it was opened.
    pub features: Vec<&'static str>,
}

impl Device {
    fn of(device: &wgpu::Device) -> Self {
        let (info, limits) = (device.adapter_info(), device.limits());
        let limits = [
            ("max_buffer_size", limits.max_buffer_size),
            ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size),
            ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage.into()),
            ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size.into()),
            ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into()),
        ];
        Self {
            name: info.name,
            backend: info.backend.to_string(),
            kind: format!("{:?}", info.device_type),
            driver: info.driver,
            driver_info: info.driver_info,
            pci: [info.vendor, info.device],
            limits: limits.into(),
            features: device.features().iter_names().map(|(name, _)| name).collect(),
        }
    }
}

/// A step that could not be measured.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// Its shape's name.
    pub shape: &'static str,
    /// Its instances.
    pub batch: usize,
    /// Why.
    pub error: String,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How the file is made.
    pub format: u32,
    /// The version that measured.
    pub querent: &'static str,
    /// The system and the processor's kind.
    pub platform: String,
    /// Whether the compiler optimised.
    pub release_build: bool,
    /// The device.
    pub device: Device,
    /// The CPU engine beside it.
    pub cpu: String,
    /// What the device costs whatever it computes.
    pub costs: Costs,
    /// Published training steps.
    pub steps: Vec<StepTime>,
    /// Those that could not be measured.
    pub not_measured: Vec<Refusal>,
}

/// Measures a device. `next` is told what is measured next, and how much of all is behind. A step that does not fit the
/// device is noted, not a failure of the rest.
///
/// # Errors
/// The engine is not on a device, or that was lost.
pub fn report_blocking(
    engine: &Engine,
    options: &Options,
    mut next: impl FnMut(&str, f64),
) -> Result<Report> {
    let Some((device, _)) = engine.device() else {
        return Err(Error::Config(format!("there is nothing to measure on {engine}: a device is needed")));
    };
    let cases: Vec<(Shape, usize)> = options
        .shapes
        .iter()
        .flat_map(|&shape| options.batches.iter().map(move |&batch| (shape, batch)))
        .collect();
    let all = (1 + cases.len()) as f64;
    next("dispatches", 0.0);
    let mut report = Report {
        format: FORMAT,
        querent: env!("CARGO_PKG_VERSION"),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        release_build: !cfg!(debug_assertions),
        device: Device::of(device),
        cpu: Engine::cpu().to_string(),
        costs: costs_blocking(engine)?,
        steps: Vec::new(),
        not_measured: Vec::new(),
    };
    for ((shape, batch), done) in cases.into_iter().zip(1u32..) {
        next(&format!("{}, batch {batch}", shape.name), f64::from(done) / all);
        match step_blocking(engine, shape, batch, options.seconds) {
            Ok(step) => report.steps.push(step),
            Err(lost @ Error::DeviceLost(_)) => return Err(lost),
            Err(error) => {
                report.not_measured.push(Refusal { shape: shape.name, batch, error: error.to_string() });
            }
        }
    }
    Ok(report)
}
