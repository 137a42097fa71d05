//! Work that runs no calls, recorded into an encoder, where `carry_out.rs` does it at once; and what a slice brings back.

use super::batches::MOST_PASSES;
use super::method::Method;
use super::procedure::{EpochSums, Work};
use super::stepper::Stepper;
use crate::engine::gpu::{GpuProgram, PAYLOAD, Recording};
use crate::engine::kernels::words::{METRICS, clock};
use crate::error::{Error, Result};

/// What a slice brings back behind its own numbers and times: an epoch's sums, then a piece of a snapshot.
pub(super) struct ReadBack;

impl ReadBack {
    /// Bytes of a lane's metrics.
    const SUMS: u64 = METRICS as u64 * 4;
    /// Bytes of the status.
    const STATUS_BYTES: u64 = 16;
    /// The sums over the training instances.
    const TRAINING: u64 = PAYLOAD;
    /// The sums over the validation rows, of each pass over them.
    const VALIDATION: u64 = Self::TRAINING + Self::SUMS;
    /// The first step with a gradient that was not finite.
    const STATUS: u64 = Self::VALIDATION + MOST_PASSES as u64 * Self::SUMS;
    /// The snapshot's bytes, to the end.
    pub const SNAPSHOT: u64 = Self::STATUS + Self::STATUS_BYTES;

    /// The epoch's sums in what came back.
    pub fn sums(bytes: &[u8]) -> EpochSums {
        let words = |at: u64| -> [u32; METRICS] {
            std::array::from_fn(|i| bytemuck::pod_read_unaligned(&bytes[at as usize + 4 * i..][..4]))
        };
        let reals = |at: u64| words(at).map(|word| f64::from(f32::from_bits(word)));
        let status = bytemuck::pod_read_unaligned(&bytes[Self::STATUS as usize..][..4]);
        let validation = std::array::from_fn(|pass| reals(Self::VALIDATION + pass as u64 * Self::SUMS));
        EpochSums { training: reals(Self::TRAINING), validation, status }
    }
}

/// A stepper's program, which must be a device's.
pub(super) fn gpu_program<M: Method>(stepper: &Stepper<M>) -> Result<&GpuProgram> {
    stepper.program().gpu().ok_or_else(|| {
        Error::Config(
            "only a GPU engine can record into an encoder: use `Engine::on` or `Engine::gpu`".into(),
        )
    })
}

/// Records the way of an epoch's sums to the host; then they begin anew.
pub(super) fn encode_fetch<M: Method>(
    encoder: &mut wgpu::CommandEncoder,
    recording: &Recording,
    program: &GpuProgram,
    stepper: &Stepper<M>,
) {
    let batches = &stepper.batches;
    let metrics = program.buffer(batches.metrics);
    recording.bring(encoder, metrics, 0..ReadBack::SUMS, ReadBack::TRAINING);
    let passes = 0..ReadBack::STATUS - ReadBack::VALIDATION;
    recording.bring(encoder, program.buffer(batches.chunk.metrics), passes, ReadBack::VALIDATION);
    recording.bring(encoder, program.buffer(batches.status), 0..ReadBack::STATUS_BYTES, ReadBack::STATUS);
    program.encode_clear(encoder, batches.metrics, None);
}

/// Records a piece of work that runs no calls.
pub(super) fn encode_work<M: Method>(
    stepper: &mut Stepper<M>,
    encoder: &mut wgpu::CommandEncoder,
    work: &Work<M::Stage>,
) -> Result<()> {
    if let Work::Set(stage) = work {
        stepper.note_stage(stage.clone())?;
    }
    let (batches, program, weights) = (&stepper.batches, gpu_program(stepper)?, stepper.method.weights());
    match work {
        Work::Keep => weights.iter().for_each(|w| program.encode_copy(encoder, w.average, w.best)),
        Work::Restore => weights.iter().for_each(|w| {
            program.encode_copy(encoder, w.best, w.values);
            program.encode_copy(encoder, w.best, w.average);
        }),
        Work::Reset => {
            for w in &weights {
                program.encode_clear(encoder, w.mean, None);
                program.encode_clear(encoder, w.variance, None);
            }
            program.encode_write(encoder, batches.powers, 0, &vec![1.0f32.to_bits(); 2 * weights.len()])?;
        }
        Work::Set(_) => {
            let (settings, copies) = stepper.stage_words();
            let settings: Vec<u32> = settings.iter().map(|&value| (value as f32).to_bits()).collect();
            program.encode_write(encoder, batches.settings, 0, &settings)?;
            program.encode_write(encoder, batches.clock, clock::COPIES, &[copies])?;
        }
        Work::Validate => {
            program.encode_clear(encoder, batches.chunk.metrics, None);
            program.encode_clear(encoder, batches.chunk.asked, None);
            program.encode_clear(encoder, batches.clock, Some(clock::CHUNK..clock::CHUNK + 1));
        }
        _ => {}
    }
    Ok(())
}
