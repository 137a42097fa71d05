//! Getting results to the host without stopping the device.

use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const PENDING: u8 = 0;
const READY: u8 = 1;
const FAILED: u8 = 2;

/// Bytes on their way to the host: encoded with the work that makes them, there when that work has
/// been submitted and is done.
#[derive(Debug)]
pub struct Readback {
    staging: wgpu::Buffer,
    state: Arc<AtomicU8>,
}

impl Readback {
    /// Encodes the copy of whole buffers, one after the other, and the mapping of the result.
    pub(super) fn encode(
        device: &wgpu::Device,
        encoder: &mut wgpu::CommandEncoder,
        sources: &[wgpu::BufferSlice],
    ) -> Self {
        let staging = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("querent readback"),
            size: sources.iter().map(|source| source.size()).sum(),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut at = 0;
        for source in sources {
            encoder.copy_buffer_to_buffer(source.buffer(), source.offset(), &staging, at, source.size());
            at += source.size();
        }
        let state = Arc::new(AtomicU8::new(PENDING));
        let signal = Arc::clone(&state);
        encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., move |result| {
            signal.store(if result.is_ok() { READY } else { FAILED }, Ordering::Release);
        });
        Self { staging, state }
    }

    /// The bytes if they have arrived. Never waits, never polls the device.
    ///
    /// # Errors
    /// The device was lost or the buffer could not be mapped.
    pub fn try_take(&self) -> Result<Option<Vec<u8>>> {
        match self.state.load(Ordering::Acquire) {
            PENDING => Ok(None),
            READY => {
                let refused = |error: wgpu::MapRangeError| Error::Validation {
                    what: "a readback".into(),
                    source: error.into(),
                };
                let view = self.staging.get_mapped_range(..).map_err(refused)?;
                Ok(Some(view.to_vec()))
            }
            _ => Err(Error::DeviceLost("a readback could not be mapped".into())),
        }
    }
}
