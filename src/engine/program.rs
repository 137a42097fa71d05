//! A plan on either engine.

use super::cpu::{CpuProgram, Real};
use super::gpu::GpuProgram;
use super::plan::{BufferId, Plan};
use super::{Engine, Kind};
use crate::error::Result;
use std::ops::Range;

/// A plan with its buffers on an engine, ready to be replayed.
pub enum Program {
    /// In memory, f32.
    Cpu(CpuProgram<f32>),
    /// In memory, f64: to check gradients with.
    CpuF64(CpuProgram<f64>),
    /// On a device.
    Gpu(GpuProgram),
}

fn fill<T: Real, S: Copy + Into<f64>>(to: &mut [T], offset: usize, values: &[S]) {
    for (to, &value) in to[offset..].iter_mut().zip(values) {
        *to = T::of(value.into());
    }
}

impl Program {
    /// Puts a plan on an engine.
    ///
    /// # Errors
    /// What the device refuses, or that there is no memory for it.
    pub fn new(engine: &Engine, plan: Plan) -> Result<Self> {
        Ok(match engine.kind() {
            Kind::Cpu => Program::Cpu(CpuProgram::new(plan)?),
            Kind::CpuF64 => Program::CpuF64(CpuProgram::new(plan)?),
            Kind::Gpu(gpu) => Program::Gpu(GpuProgram::new(gpu.clone(), plan)?),
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        match self {
            Program::Cpu(program) => program.plan(),
            Program::CpuF64(program) => program.plan(),
            Program::Gpu(program) => program.plan(),
        }
    }

    /// The program on the GPU, if that is where it is.
    pub fn gpu(&self) -> Option<&GpuProgram> {
        match self {
            Program::Gpu(program) => Some(program),
            _ => None,
        }
    }

    /// Runs a range of calls, `times` times: the CPU engine has finished on return, the GPU engine
    /// has submitted the work.
    pub fn run(&mut self, range: Range<usize>, times: usize) {
        match self {
            Program::Cpu(program) => program.run(range, times),
            Program::CpuF64(program) => program.run(range, times),
            Program::Gpu(program) => program.submit(&range, times),
        }
    }

    /// Copies a buffer of reals into another of the same length.
    pub fn copy(&mut self, from: BufferId, to: BufferId) {
        match self {
            Program::Cpu(program) => {
                let values = program.reals(from).to_vec();
                program.reals_mut(to).copy_from_slice(&values);
            }
            Program::CpuF64(program) => {
                let values = program.reals(from).to_vec();
                program.reals_mut(to).copy_from_slice(&values);
            }
            Program::Gpu(program) => {
                let mut encoder = program.encoder();
                program.encode_copy(&mut encoder, from, to);
                program.gpu().queue().submit([encoder.finish()]);
            }
        }
    }

    /// Writes reals into a buffer from an offset.
    pub fn write<S: Copy + Into<f64>>(&mut self, id: BufferId, offset: usize, values: &[S]) {
        match self {
            Program::Cpu(program) => fill(program.reals_mut(id), offset, values),
            Program::CpuF64(program) => fill(program.reals_mut(id), offset, values),
            Program::Gpu(program) => {
                let values: Vec<f32> = values.iter().map(|&value| value.into() as f32).collect();
                program.write(id, offset, &values);
            }
        }
    }

    /// Writes integers into a buffer from an offset.
    pub fn write_words(&mut self, id: BufferId, offset: usize, values: &[u32]) {
        let range = offset..offset + values.len();
        match self {
            Program::Cpu(program) => program.words_mut(id)[range].copy_from_slice(values),
            Program::CpuF64(program) => program.words_mut(id)[range].copy_from_slice(values),
            Program::Gpu(program) => program.write(id, offset, values),
        }
    }

    /// A buffer of reals, all lanes, when everything before is done. f32 values are exact in f64.
    ///
    /// # Errors
    /// The device was lost.
    pub fn read_blocking(&self, id: BufferId) -> Result<Vec<f64>> {
        Ok(match self {
            Program::Cpu(program) => program.reals(id).iter().map(|&value| value.into()).collect(),
            Program::CpuF64(program) => program.reals(id).to_vec(),
            Program::Gpu(program) => {
                program.read_blocking(id)?.into_iter().map(|bits| f32::from_bits(bits).into()).collect()
            }
        })
    }

    /// A buffer of integers, all lanes, when everything before is done.
    ///
    /// # Errors
    /// The device was lost.
    pub fn read_words_blocking(&self, id: BufferId) -> Result<Vec<u32>> {
        Ok(match self {
            Program::Cpu(program) => program.words(id).to_vec(),
            Program::CpuF64(program) => program.words(id).to_vec(),
            Program::Gpu(program) => program.read_blocking(id)?,
        })
    }
}
