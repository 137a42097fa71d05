//! What a host has to ask of its device.

use super::fit::{Table, Target};
use super::method::{Method, Settings};
use super::sizes::Noise;
use crate::data::Dataset;
use crate::engine::gpu::buffer_bytes;
use crate::engine::plan::Scope;
use crate::error::Result;
use crate::problem::Problem;

/// What is to be learned, and from how many rows.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    problem: &'a Problem,
    rows: Option<[usize; 3]>,
    bytes: Option<u32>,
}

impl<'a> From<&'a Dataset> for Shape<'a> {
    fn from(data: &'a Dataset) -> Self {
        Self { problem: data.problem(), rows: Some(data.sizes()), bytes: data.divisor() }
    }
}

/// A problem alone: a table of a batch's rows in each split. The table lies in one buffer, so a large one
/// may need more.
impl<'a> From<&'a Problem> for Shape<'a> {
    fn from(problem: &'a Problem) -> Self {
        Self { problem, rows: None, bytes: None }
    }
}

/// A problem and the rows of the training, validation and test split.
impl<'a> From<(&'a Problem, [usize; 3])> for Shape<'a> {
    fn from((problem, rows): (&'a Problem, [usize; 3])) -> Self {
        Self { problem, rows: Some(rows), bytes: None }
    }
}

/// The limits a device must be requested with so that a table and configuration fit.
pub(super) fn required_limits<M: Method>(shape: Shape, config: &M::Config) -> Result<wgpu::Limits> {
    let Shape { problem, rows, bytes } = shape;
    let mut limits = wgpu::Limits {
        max_storage_buffer_binding_size: u64::MAX,
        max_buffer_size: u64::MAX,
        ..Default::default()
    };
    let target = Target::Gpu(Box::new(limits.clone()));
    let table = Table { problem, splits: rows.unwrap_or([config.batch(); 3]), bytes };
    let plan = target.build::<M>(table, config, Noise::Drawn)?.plan;
    let state = plan.buffers().iter().filter(|buffer| buffer.scope == Scope::Shared);
    let largest = state.map(buffer_bytes).max().unwrap_or(0);
    let defaults = wgpu::Limits::default();
    limits.max_storage_buffer_binding_size = largest.max(defaults.max_storage_buffer_binding_size);
    limits.max_buffer_size = largest.max(defaults.max_buffer_size);
    Ok(limits)
}
