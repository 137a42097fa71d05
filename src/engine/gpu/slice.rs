//! Work recorded into somebody else's encoder, and the proof that it ran.
//!
//! A host may submit late, leave a frame out, or make a mistake of its own for which the device drops
//! the whole frame. So each slice copies the number of the slice that ran before it, and its own, on the
//! way to the host: only if both are right, the device's state is what was recorded.

use super::context::Gpu;
use super::program::GpuProgram;
use crate::engine::Instant;
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a slice's way to the host, at most.
pub(crate) const RETURN: u64 = 4096;
/// Where the times of the slice's passes are in it, behind its own number and that of the one before.
const TIMES: u64 = 16;
/// Passes of a slice that are timed.
const PASSES: u32 = 8;
/// Where what the caller wants back starts.
pub(crate) const PAYLOAD: u64 = TIMES + PASSES as u64 * 16;
/// Different numbers: many more than slices can be on their way.
const NUMBERS: u32 = 1024;

/// What the device said about a slice.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// Nothing yet.
    Pending,
    /// Its way back can be read, since then.
    Mapped(Instant),
    /// It cannot.
    Failed,
    /// The encoder or its commands were dropped, never submitted.
    Dropped,
}

type Mailbox = Arc<Mutex<Answer>>;

fn post(mailbox: &Mailbox, answer: Answer) {
    *mailbox.lock().unwrap_or_else(PoisonError::into_inner) = answer;
}

/// Lives in the callback: if that goes away without having been called, the work was never submitted.
struct Sender(Mailbox);

impl Drop for Sender {
    fn drop(&mut self) {
        let mut answer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*answer, Answer::Pending) {
            *answer = Answer::Dropped;
        }
    }
}

/// Timestamps of a slice's passes.
#[derive(Debug)]
struct Timer {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    period: f32,
}

/// Makes slices on a device.
#[derive(Debug)]
pub(crate) struct Slices {
    gpu: Arc<Gpu>,
    /// 1 to `NUMBERS`.
    numbers: wgpu::Buffer,
    /// The number of the slice that ran last.
    last: wgpu::Buffer,
    timer: Option<Timer>,
    probe: wgpu::Buffer,
    /// Ways back that are free.
    free: Vec<wgpu::Buffer>,
    /// What `last` will be when everything recorded has run.
    expected: u32,
    next: u32,
}

/// A slice that is being recorded.
pub(crate) struct Recording {
    staging: wgpu::Buffer,
    before: u32,
    number: u32,
    timed: Option<u32>,
}

/// A slice that was recorded.
#[derive(Debug)]
pub(crate) struct Slice {
    staging: wgpu::Buffer,
    mailbox: Mailbox,
    before: u32,
    number: u32,
    passes: u32,
    recorded: Instant,
}

/// How a slice fared.
pub(crate) enum Fate {
    /// Not known yet.
    Pending,
    /// It was not run and never will be.
    Lost,
    /// It was run, after the one it follows.
    Ran(Arrival),
    /// It was run, but after another one than the one it follows.
    OutOfOrder,
    /// The device is gone.
    DeviceLost,
}

/// What a slice brought.
pub(crate) struct Arrival {
    /// The whole way back.
    pub bytes: Vec<u8>,
    /// Nanoseconds of its passes by the device's clock, if they were timed.
    pub nanos: Option<f64>,
    /// Nanoseconds from its recording until the host's poll saw its end.
    pub latency: f64,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

impl Slices {
    /// # Errors
    /// What the device refuses.
    pub fn new(gpu: Arc<Gpu>) -> Result<Self> {
        let device = gpu.device();
        let (numbers, last, timer, probe) = gpu.scoped("slices", || {
            let numbers: Vec<u32> = (1..=NUMBERS).collect();
            let numbers = gpu.filled("querent slice numbers", &numbers);
            let last = device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("querent last slice"),
                size: 4,
                usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            let timer = device.features().contains(wgpu::Features::TIMESTAMP_QUERY).then(|| Timer {
                queries: device.create_query_set(&wgpu::QuerySetDescriptor {
                    label: Some("querent times"),
                    ty: wgpu::QueryType::Timestamp,
                    count: 2 * PASSES,
                }),
                resolved: device.create_buffer(&wgpu::BufferDescriptor {
                    label: Some("querent times"),
                    size: u64::from(PASSES) * 16,
                    usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                    mapped_at_creation: false,
                }),
                period: gpu.queue().get_timestamp_period(),
            });
            (numbers, last, timer, gpu.probe())
        })?;
        Ok(Self { gpu, numbers, last, timer, probe, free: Vec::new(), expected: 0, next: 0 })
    }

    /// Whether the device is gone.
    pub fn is_lost(&self) -> bool {
        self.gpu.is_lost(&self.probe)
    }

    /// Whether passes can be timed.
    pub fn has_timer(&self) -> bool {
        self.timer.is_some()
    }

    /// Begins a slice; with `timed`, its passes are timed if the device can.
    ///
    /// # Errors
    /// There is no memory for its way back.
    pub fn begin(&mut self, encoder: &mut wgpu::CommandEncoder, timed: bool) -> Result<Recording> {
        let staging = match self.free.pop() {
            Some(staging) => staging,
            None => self.gpu.scoped("a slice's way back", || {
                self.gpu.device().create_buffer(&wgpu::BufferDescriptor {
                    label: Some("querent way back"),
                    size: RETURN,
                    usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
                    mapped_at_creation: false,
                })
            })?,
        };
        encoder.copy_buffer_to_buffer(&self.last, 0, &staging, 0, 4);
        let number = self.next % NUMBERS + 1;
        let timed = (timed && self.timer.is_some()).then_some(0);
        Ok(Recording { staging, before: self.expected, number, timed })
    }

    /// Records ranges of a program's calls as one pass of a slice.
    pub fn pass(
        &self,
        recording: &mut Recording,
        encoder: &mut wgpu::CommandEncoder,
        program: &GpuProgram,
        ranges: &[Range<usize>],
    ) {
        let timed = self.timer.as_ref().zip(recording.timed.as_mut()).filter(|(_, pass)| **pass < PASSES);
        let writes = timed.map(|(timer, pass)| {
            *pass += 1;
            wgpu::ComputePassTimestampWrites {
                query_set: &timer.queries,
                beginning_of_pass_write_index: Some(2 * *pass - 2),
                end_of_pass_write_index: Some(2 * *pass - 1),
            }
        });
        program.encode_pass(encoder, ranges, writes);
    }

    /// Ends a slice: from here on it can be submitted.
    pub fn end(&mut self, recording: Recording, encoder: &mut wgpu::CommandEncoder) -> Slice {
        let Recording { staging, before, number, timed } = recording;
        let at = u64::from(number - 1) * 4;
        encoder.copy_buffer_to_buffer(&self.numbers, at, &self.last, 0, 4);
        encoder.copy_buffer_to_buffer(&self.numbers, at, &staging, 4, 4);
        let passes = timed.unwrap_or(0);
        if let Some(timer) = self.timer.as_ref().filter(|_| passes > 0) {
            encoder.resolve_query_set(&timer.queries, 0..2 * passes, &timer.resolved, 0);
            encoder.copy_buffer_to_buffer(&timer.resolved, 0, &staging, TIMES, u64::from(passes) * 16);
        }
        let mailbox = Mailbox::new(Mutex::new(Answer::Pending));
        let sender = Sender(Arc::clone(&mailbox));
        encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., move |result| {
            let answer = if result.is_ok() { Answer::Mapped(Instant::now()) } else { Answer::Failed };
            post(&sender.0, answer);
        });
        self.next = self.next.wrapping_add(1);
        self.expected = number;
        Slice { staging, mailbox, before, number, passes, recorded: Instant::now() }
    }

    /// Forgets a slice that was lost, and all that were recorded after it.
    pub fn back_to(&mut self, lost: &Slice) {
        self.expected = lost.before;
    }

    /// Begins anew, whatever was recorded before: that is noticed if it runs after all.
    pub fn restart(&mut self) {
        self.next = self.next.wrapping_add(1);
        self.expected = self.next % NUMBERS + 1;
        self.next = self.next.wrapping_add(1);
        self.gpu.queue().write_buffer(&self.last, 0, &self.expected.to_le_bytes());
    }

    /// How a slice fared.
    pub fn fate(&self, slice: &Slice) -> Result<Fate> {
        let answer = *slice.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        let arrived = match answer {
            Answer::Pending => return Ok(Fate::Pending),
            Answer::Failed => return Ok(Fate::DeviceLost),
            Answer::Dropped => return Ok(Fate::Lost),
            Answer::Mapped(arrived) => arrived,
        };
        let view = match slice.staging.get_mapped_range(..) {
            Ok(view) => view,
            Err(_) if self.is_lost() => return Ok(Fate::DeviceLost),
            Err(error) => {
                return Err(Error::Validation { what: "a slice's readback".into(), source: error.into() });
            }
        };
        let bytes = view.to_vec();
        drop(view);
        if word(&bytes, 4) != slice.number {
            return Ok(Fate::Lost);
        }
        if word(&bytes, 0) != slice.before {
            return Ok(Fate::OutOfOrder);
        }
        let nanos = self.timer.as_ref().filter(|_| slice.passes > 0).map(|timer| {
            let ticks = (0..slice.passes as usize).map(|pass| {
                let at = TIMES as usize + pass * 16;
                long(&bytes, at + 8).saturating_sub(long(&bytes, at))
            });
            ticks.sum::<u64>() as f64 * f64::from(timer.period)
        });
        let latency = arrived.saturating_duration_since(slice.recorded).as_nanos() as f64;
        Ok(Fate::Ran(Arrival { bytes, nanos, latency }))
    }

    /// Takes a slice that ran back, to use its way again.
    pub fn recycle(&mut self, slice: Slice) {
        slice.staging.unmap();
        self.free.push(slice.staging);
    }
}

impl Recording {
    /// Records the way of a buffer's part to the host, to `at` in the slice's way back.
    pub fn bring(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        source: wgpu::BufferSlice,
        part: Range<u64>,
        at: u64,
    ) {
        let from = source.offset() + part.start;
        encoder.copy_buffer_to_buffer(source.buffer(), from, &self.staging, at, part.end - part.start);
    }
}
