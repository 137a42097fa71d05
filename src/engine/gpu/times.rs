//! How long things take on a device, for measurements: nothing here is part of training.

use super::program::GpuProgram;
use super::readback::Readback;
use crate::engine::Instant;
use crate::error::{Error, Result};
use std::ops::Range;

/// Timestamps of one submission, at most: WebGPU's limit of a query set.
const QUERIES: usize = 4096;

/// What one submission took, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Submitted {
    /// Writing its commands down, on the host.
    pub recording: f64,
    /// Handing them over, on the host.
    pub submission: f64,
    /// From the first command that was written down until the device was done.
    pub all: f64,
}

impl GpuProgram {
    /// Records some calls as one pass, so many times over, submits it and waits until it is done.
    ///
    /// # Errors
    /// The device was lost.
    pub fn timed_blocking(&self, calls: Range<usize>, times: usize) -> Result<Submitted> {
        let begun = Instant::now();
        let mut encoder = self.encoder();
        self.encode_pass(&mut encoder, &vec![calls; times], None);
        let commands = encoder.finish();
        let recording = begun.elapsed().as_secs_f64();
        self.gpu().queue().submit([commands]);
        let submission = begun.elapsed().as_secs_f64() - recording;
        self.gpu().wait_blocking()?;
        Ok(Submitted { recording, submission, all: begun.elapsed().as_secs_f64() })
    }

    /// Runs some calls, each in a pass of its own, and has the device tell when each began and ended: seconds of each
    /// call. `None` on a device that was not opened with timestamps.
    ///
    /// # Errors
    /// The device was lost, or has no memory for it.
    pub fn stamped_blocking(&self, calls: Range<usize>) -> Result<Option<Vec<f64>>> {
        if !self.gpu().device().features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Ok(None);
        }
        let mut seconds = Vec::with_capacity(calls.len());
        for from in calls.clone().step_by(QUERIES / 2) {
            seconds.extend(self.stamp(from..calls.end.min(from + QUERIES / 2))?);
        }
        Ok(Some(seconds))
    }

    /// The same for as many calls as one query set has room for.
    fn stamp(&self, calls: Range<usize>) -> Result<Vec<f64>> {
        let (gpu, count) = (self.gpu(), 2 * calls.len() as u32);
        let (queries, resolved) = gpu.scoped("timestamps", || {
            let queries = gpu.device().create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("querent times of calls"),
                ty: wgpu::QueryType::Timestamp,
                count,
            });
            let resolved = gpu.device().create_buffer(&wgpu::BufferDescriptor {
                label: Some("querent times of calls"),
                size: u64::from(count) * 8,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            });
            (queries, resolved)
        })?;
        let mut encoder = self.encoder();
        for (call, at) in calls.zip((0..).step_by(2)) {
            let writes = wgpu::ComputePassTimestampWrites {
                query_set: &queries,
                beginning_of_pass_write_index: Some(at),
                end_of_pass_write_index: Some(at + 1),
            };
            self.encode_pass(&mut encoder, std::slice::from_ref(&(call..call + 1)), Some(writes));
        }
        encoder.resolve_query_set(&queries, 0..count, &resolved, 0);
        let readback = Readback::encode(gpu.device(), &mut encoder, &[resolved.slice(..)]);
        gpu.queue().submit([encoder.finish()]);
        gpu.wait_blocking()?;
        let bytes = readback.try_take()?.ok_or_else(|| {
            Error::DeviceLost("the device finished without delivering its timestamps".into())
        })?;
        let tick = f64::from(gpu.queue().get_timestamp_period()) * 1e-9;
        let stamps: Vec<u64> =
            bytes.chunks_exact(8).map(|b| b.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))).collect();
        // A clock that was set back in between is no negative time.
        Ok(stamps.chunks_exact(2).map(|s| s[1].saturating_sub(s[0]) as f64 * tick).collect())
    }
}
