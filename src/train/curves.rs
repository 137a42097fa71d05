//! What a host can draw without copying it back: buffers on its own device.

use super::method::Method;
use super::stepper::Stepper;
use crate::engine::gpu::GpuProgram;
use crate::engine::kernels::words::METRICS;
use crate::engine::plan::BufferId;
use crate::error::Result;
use crate::nn::Layer;
use crate::policy::history::Epoch;

/// Bytes of a point of a curve.
const POINT: u64 = METRICS as u64 * 4;

/// A network on a device.
#[derive(Clone, Debug)]
pub struct NetworkView<'a> {
    weights: wgpu::BufferSlice<'a>,
    best: wgpu::BufferSlice<'a>,
    layers: Vec<Layer>,
}

impl<'a> NetworkView<'a> {
    /// The moving average of the weights, which evaluation uses: all layers one after the other, f32, each
    /// weight as `[input][output]` with rows padded to a multiple of four, then its bias
    /// ([`NetworkView::layers`] has the offsets). It is a part of a larger buffer: `try_into()` makes it a binding.
    pub fn weights(&self) -> wgpu::BufferSlice<'a> {
        self.weights
    }

    /// The same for the best epoch so far; zeros before there is one.
    pub fn best(&self) -> wgpu::BufferSlice<'a> {
        self.best
    }

    /// Where the layers lie.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }
}

/// Buffers of a run that a host may bind read-only (`STORAGE`) or copy from, but must not write. They
/// change with the slices the host submits, and hold still between them.
#[derive(Clone, Debug)]
pub struct Buffers<'a> {
    /// The method's networks, by name.
    pub networks: Vec<(&'static str, NetworkView<'a>)>,
    /// The names of the 8 f32 of a point of the training curve, in order.
    pub metrics: [&'static str; METRICS],
    /// The training curve: `points` points an epoch, epoch after epoch, each of 8 f32: the sums over the epoch's
    /// instances so far of what `metrics` names, one of which is the number of instances. A point that is not there
    /// yet has no instances; the mean over what lies between two points is the difference of the sums over the
    /// difference of the instances.
    pub training: &'a wgpu::Buffer,
    /// The validation curve: a point an epoch of 8 f32: the sums over the validation rows of the loss, of
    /// the right answers, of the cost and of the acquisitions, the number of rows, and three more that a method may have. With several
    /// passes over the rows (a range of α), those of the first, the smallest α.
    pub validation: &'a wgpu::Buffer,
    /// What the greedy policy asked on the validation rows in the last epoch, in all passes over them: u32 counts
    /// `[step][feature]`, the last column being the instances that have stopped by then.
    pub paths: &'a wgpu::Buffer,
    /// Points of the training curve in an epoch.
    pub points: usize,
    /// Epochs there is room for: that of the whole run.
    pub epochs: usize,
    /// Steps of the paths: the horizon.
    pub steps: usize,
    /// Features of the paths, the stop not counted.
    pub features: usize,
}

/// The buffers that are there for the host alone.
#[derive(Debug)]
pub(super) struct Curves {
    training: wgpu::Buffer,
    validation: wgpu::Buffer,
    paths: wgpu::Buffer,
    points: usize,
    epochs: usize,
}

impl Curves {
    pub fn new<M: Method>(
        program: &GpuProgram,
        stepper: &Stepper<M>,
        points: usize,
        epochs: usize,
    ) -> Result<Self> {
        let gpu = program.gpu();
        let make = |label, size: u64| {
            gpu.device().create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size: size.max(16),
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_SRC
                    | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        let asked = program.buffer(stepper.batches.chunk.asked).size();
        gpu.scoped("curves", || Self {
            training: make("querent training curve", (points * epochs) as u64 * POINT),
            validation: make("querent validation curve", epochs as u64 * POINT),
            paths: make("querent paths", asked),
            points,
            epochs,
        })
    }

    pub fn view<'a, M: Method>(&'a self, program: &'a GpuProgram, stepper: &Stepper<M>) -> Buffers<'a> {
        let view = |(name, network): (&'static str, &crate::nn::Network)| {
            let view = NetworkView {
                weights: program.buffer(network.weights.average),
                best: program.buffer(network.weights.best),
                layers: network.stack.layers.clone(),
            };
            (name, view)
        };
        Buffers {
            networks: stepper.method.networks().into_iter().map(view).collect(),
            metrics: M::METRICS,
            training: &self.training,
            validation: &self.validation,
            paths: &self.paths,
            points: self.points,
            epochs: self.epochs,
            steps: stepper.batches.sizes.horizon,
            features: stepper.batches.sizes.features,
        }
    }

    /// Records the next point of the training curve.
    pub fn encode_point(&self, encoder: &mut wgpu::CommandEncoder, metrics: wgpu::BufferSlice, point: usize) {
        if point < self.points * self.epochs {
            let to = point as u64 * POINT;
            encoder.copy_buffer_to_buffer(metrics.buffer(), metrics.offset(), &self.training, to, POINT);
        }
    }

    /// Records an epoch's place in the validation curve, and its paths.
    pub fn encode_epoch(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        program: &GpuProgram,
        [metrics, asked]: [BufferId; 2],
        epoch: usize,
    ) {
        let (metrics, asked) = (program.buffer(metrics), program.buffer(asked));
        if epoch < self.epochs {
            let to = epoch as u64 * POINT;
            encoder.copy_buffer_to_buffer(metrics.buffer(), metrics.offset(), &self.validation, to, POINT);
        }
        encoder.copy_buffer_to_buffer(asked.buffer(), asked.offset(), &self.paths, 0, asked.size());
    }

    /// Draws the curves anew from a history: of each epoch's training, what is known is its end.
    pub fn refill(&self, queue: &wgpu::Queue, history: &[Epoch], names: &[&str; METRICS]) {
        let narrow = |sums: [f64; METRICS]| sums.map(|sum| sum as f32);
        let mut training = vec![[0.0f32; METRICS]; self.points * self.epochs];
        let mut validation = vec![[0.0f32; METRICS]; self.epochs];
        for (epoch, place) in history.iter().zip(&mut validation) {
            // Of several passes over the rows, the device shows the first.
            let shown = epoch.passes.first().map_or(epoch.validation, |pass| pass.evaluation);
            *place = narrow(shown.sums());
            training[(epoch.index + 1) * self.points - 1] = narrow(epoch.train.sums(names));
        }
        queue.write_buffer(&self.training, 0, bytemuck::cast_slice(training.as_flattened()));
        queue.write_buffer(&self.validation, 0, bytemuck::cast_slice(validation.as_flattened()));
    }
}

impl<'a> Buffers<'a> {
    /// A network by its name.
    pub fn network(&self, name: &str) -> Option<&NetworkView<'a>> {
        self.networks.iter().find(|(n, _)| *n == name).map(|(_, view)| view)
    }
}
