//! A training step of a shape on a device: how long it takes, and which of its kernels take how long.

use super::device::{Recording, recording_blocking};
use super::kernels::{Clock, Enough, Part, timed_blocking};
use super::rate::rate_blocking;
use super::shape::Shape;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::methods::nmppg::Stepper;
use serde::Serialize;

/// Rows of the table that is trained on, if a batch is not larger.
const ROWS: usize = 4096;

/// A kernel's calls in a step.
#[derive(Clone, Debug, Serialize)]
pub struct KernelTime {
    /// Its name.
    pub kernel: &'static str,
    /// How often it is called.
    pub calls: usize,
    /// Milliseconds of all calls.
    pub milliseconds: f64,
    /// Floating-point operations of all calls, in billions.
    pub gflop: f64,
    /// Megabytes that all calls have to read and write at least.
    pub megabytes: f64,
    /// Billions of operations a second.
    pub gflops: f64,
    /// Gigabytes a second.
    pub gigabytes_per_second: f64,
}

impl KernelTime {
    fn new(kernel: &'static str, part: &Part) -> Self {
        let Part { calls, flops, bytes, seconds } = *part;
        let a_second = |amount: f64| if seconds > 0.0 { amount / seconds / 1e9 } else { 0.0 };
        Self {
            kernel,
            calls,
            milliseconds: 1e3 * seconds,
            gflop: flops / 1e9,
            megabytes: bytes / 1e6,
            gflops: a_second(flops),
            gigabytes_per_second: a_second(bytes),
        }
    }
}

/// A training step.
#[derive(Clone, Debug, Serialize)]
pub struct StepTime {
    /// Its shape.
    pub shape: Shape,
    /// Its instances.
    pub batch: usize,
    /// Dispatches of it.
    pub dispatches: usize,
    /// Milliseconds of it, of many that follow each other.
    pub milliseconds: f64,
    /// Training instances a second.
    pub instances_per_second: f64,
    /// The same on the CPU engine of this machine.
    pub cpu_instances_per_second: f64,
    /// What a dispatch costs the host.
    #[serde(flatten)]
    pub recording: Recording,
    /// Who told the time of the kernels.
    pub kernels_timed_by: Clock,
    /// Those that take longest first.
    pub kernels: Vec<KernelTime>,
    /// All of them.
    pub all_kernels: KernelTime,
}

/// Training steps a second.
fn steps_blocking(stepper: &mut Stepper, seconds: f64) -> Result<f64> {
    rate_blocking(seconds, |steps| {
        stepper.steps(steps);
        // Waits for the device, and fails if the numbers went wrong.
        stepper.means_blocking().map(drop)
    })
}

/// Measures a published training step of a shape, each part for about so many seconds.
///
/// # Errors
/// The engine is not on a device, the shape does not fit it, or the device was lost.
pub fn step_blocking(engine: &Engine, shape: Shape, batch: usize, seconds: f64) -> Result<StepTime> {
    let mut stepper = shape.stepper(engine, batch, ROWS)?;
    let rate = steps_blocking(&mut stepper, seconds)?;
    let calls = stepper.program().plan().find_section("step").map(|section| section.calls());
    let (Some(program), Some(calls)) = (stepper.program().gpu(), calls) else {
        return Err(Error::Config(format!("there is no step to measure on {engine}: a device is needed")));
    };
    let recording = recording_blocking(program, calls.clone(), seconds)?;
    let enough = Enough { rounds: 1, seconds };
    let (parts, clock) = timed_blocking(stepper.program_mut(), calls.clone(), false, enough)?;
    let mut kernels: Vec<KernelTime> =
        parts.iter().map(|((name, _), part)| KernelTime::new(name, part)).collect();
    kernels.sort_by(|a, b| b.milliseconds.total_cmp(&a.milliseconds));
    let sum = |of: fn(&Part) -> f64| parts.values().map(of).sum::<f64>();
    let all = Part {
        calls: calls.len(),
        flops: sum(|part| part.flops),
        bytes: sum(|part| part.bytes),
        seconds: sum(|part| part.seconds),
    };
    let on_cpu = steps_blocking(&mut shape.stepper(&Engine::cpu(), batch, ROWS)?, seconds)?;
    Ok(StepTime {
        shape,
        batch,
        dispatches: stepper.program().plan().dispatches(calls),
        milliseconds: 1e3 / rate,
        instances_per_second: rate * batch as f64,
        cpu_instances_per_second: on_cpu * batch as f64,
        recording,
        kernels_timed_by: clock,
        kernels,
        all_kernels: KernelTime::new("all", &all),
    })
}
