//! What a device costs whatever it computes: a dispatch that waits for the one before, a submission, a byte that is moved.

use crate::engine::gpu::{Gpu, GpuProgram};
use crate::engine::kernels::Advance;
use crate::engine::kernels::words::{clock, settings};
use crate::engine::plan::{Elem, PlanBuilder, Scope};
use crate::engine::{Engine, Instant, Program};
use crate::error::{Error, Result};
use serde::Serialize;
use std::ops::Range;

/// Dispatches of a short pass and of a long one: their difference has no submission in it.
const SHORT: usize = 64;
const LONG: usize = 1088;
/// How often each is measured: the median counts.
const TIMES: usize = 9;
/// Bytes that are copied, at most: more than any cache holds.
const COPIED: u64 = 128 << 20;

/// What a device costs whatever it computes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Costs {
    /// Microseconds of a dispatch that does next to nothing and waits for the one before, in one pass.
    pub dispatch_microseconds: f64,
    /// Microseconds from recording one such dispatch until the host knows that it is done.
    pub round_trip_microseconds: f64,
    /// Gigabytes a second of a copy from one buffer to another, those read and those written both counted.
    pub copy_gigabytes_per_second: f64,
}

/// What recording and submitting some calls costs the host, by the dispatch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Recording {
    /// Microseconds of writing a dispatch down.
    pub recording_microseconds: f64,
    /// Microseconds of handing it over, its share of the submission.
    pub submission_microseconds: f64,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn on_a_device(engine: &Engine) -> Error {
    Error::Config(format!("there are no dispatches to measure on {engine}: a device is needed"))
}

/// A plan of one call that moves a clock on: each waits for the one before, as both write it.
fn ticking(engine: &Engine) -> Result<Program> {
    let mut b = PlanBuilder::new(1);
    let words = b.buffer("clock", Elem::U32, clock::LEN, Scope::Shared);
    let powers = b.buffer("powers", Elem::F32, 2, Scope::Shared);
    let settings = b.buffer("settings", Elem::F32, settings::LEN, Scope::Shared);
    b.call(Advance { slots: 0, chunk: 1, batches: 1 }, &[words, powers, settings]);
    Program::new(engine, b.finish()?)
}

/// Measures a device.
///
/// # Errors
/// The engine is not on a device, or that was lost, or has no memory for it.
pub fn costs_blocking(engine: &Engine) -> Result<Costs> {
    let program = ticking(engine)?;
    let program = program.gpu().ok_or_else(|| on_a_device(engine))?;
    program.timed_blocking(0..1, LONG)?;
    let mut seconds = [1, SHORT, LONG].map(|_| Vec::new());
    for _ in 0..TIMES {
        for (seconds, times) in seconds.iter_mut().zip([1, SHORT, LONG]) {
            seconds.push(program.timed_blocking(0..1, times)?.all);
        }
    }
    let [one, short, long] = seconds.map(median);
    Ok(Costs {
        dispatch_microseconds: 1e6 * (long - short).max(0.0) / (LONG - SHORT) as f64,
        round_trip_microseconds: 1e6 * one,
        copy_gigabytes_per_second: copied_blocking(program.gpu())?,
    })
}

/// Gigabytes a second that are read or written when a large buffer is copied.
fn copied_blocking(gpu: &Gpu) -> Result<f64> {
    let size = COPIED.min(gpu.device().limits().max_buffer_size);
    let buffers = gpu.scoped("buffers to copy", || {
        ["from", "to"].map(|end| {
            gpu.device().create_buffer(&wgpu::BufferDescriptor {
                label: Some(&format!("querent copied {end}")),
                size,
                usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        })
    })?;
    let seconds_of = |times: usize| -> Result<f64> {
        let begun = Instant::now();
        let mut encoder = gpu.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for _ in 0..times {
            encoder.copy_buffer_to_buffer(&buffers[0], 0, &buffers[1], 0, size);
        }
        gpu.queue().submit([encoder.finish()]);
        gpu.wait_blocking()?;
        Ok(begun.elapsed().as_secs_f64())
    };
    // The first one makes the memory.
    seconds_of(1)?;
    let both = (0..3).map(|_| Ok([seconds_of(1)?, seconds_of(5)?])).collect::<Result<Vec<_>>>()?;
    let of = |end: usize| median(both.iter().map(|seconds| seconds[end]).collect());
    Ok(2.0 * size as f64 * 4.0 / (of(1) - of(0)).max(1e-9) / 1e9)
}

/// What recording and submitting some calls, as one pass, costs the host: the medians of some times, as many as fit into so
/// many seconds, as each has to be waited for.
///
/// # Errors
/// The device was lost.
pub fn recording_blocking(program: &GpuProgram, calls: Range<usize>, seconds: f64) -> Result<Recording> {
    let each = 1e6 / program.plan().dispatches(calls.clone()).max(1) as f64;
    let begun = Instant::now();
    let mut all = vec![program.timed_blocking(calls.clone(), 1)?];
    while all.len() < TIMES && begun.elapsed().as_secs_f64() < seconds {
        all.push(program.timed_blocking(calls.clone(), 1)?);
    }
    Ok(Recording {
        recording_microseconds: each * median(all.iter().map(|took| took.recording).collect()),
        submission_microseconds: each * median(all.iter().map(|took| took.submission).collect()),
    })
}
