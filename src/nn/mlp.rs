//! A multi-layer perceptron with two hidden ReLU layers: where its weights lie, and the plan pieces
//! of its layers, forward and backward side by side.
//!
//! All weights of a network lie in one buffer. A layer's weight is stored `[input][output]`, so that
//! the first layer under hard masks reads whole rows, padded with zeros to multiples of four both
//! ways; gradients of the padding are zero, so it stays zero.

use crate::engine::kernels::{Adam, Average, BiasGrad, Linear, LinearGradInput, LinearGradWeight, Transpose};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};
use crate::random::{Source, stream, unit};

/// A width as it is laid out: a multiple of four, so that kernels can work on vectors of four.
pub fn pitch(width: usize) -> usize {
    width.next_multiple_of(4)
}

/// One layer's place in the network's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Inputs.
    pub inputs: usize,
    /// Outputs.
    pub outputs: usize,
    /// Where the weight starts.
    pub weight: usize,
    /// Where the bias starts.
    pub bias: usize,
}

/// A weight in PyTorch's layout, `[output][input]`, and its bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensors {
    /// `[outputs][inputs]`.
    pub weight: Vec<f64>,
    /// `[outputs]`.
    pub bias: Vec<f64>,
}

/// The layout of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mlp {
    /// Its layers.
    pub layers: [Layer; 3],
    /// Elements of its buffer.
    pub len: usize,
}

impl Mlp {
    /// Two hidden layers.
    pub fn new(inputs: usize, hidden: [usize; 2], outputs: usize) -> Self {
        let widths = [inputs, hidden[0], hidden[1], outputs];
        let mut len = 0;
        let layers = std::array::from_fn(|i| {
            let (inputs, outputs) = (widths[i], widths[i + 1]);
            let weight = len;
            let bias = weight + pitch(inputs) * pitch(outputs);
            len = bias + pitch(outputs);
            Layer { inputs, outputs, weight, bias }
        });
        Self { layers, len }
    }

    /// Initial weights: uniform in ±1/√inputs, as PyTorch's linear layers. `which` tells networks of
    /// one seed apart.
    pub fn init(&self, seed: u64, which: u32) -> Vec<f64> {
        let source = Source::new(seed, stream::INIT, which);
        let tensors = self.layers.iter().zip(0..).map(|(layer, index)| {
            let bound = 1.0 / (layer.inputs as f64).sqrt();
            let draw = |kind: u32, n: usize| -> Vec<f64> {
                (0..n as u32)
                    .map(|i| {
                        let bits = source.bits(index, kind, i / 4)[i as usize % 4];
                        // Rounded to f32, so that every engine starts from the same numbers.
                        f64::from(((2.0 * unit(bits) - 1.0) * bound) as f32)
                    })
                    .collect()
            };
            Tensors { weight: draw(0, layer.inputs * layer.outputs), bias: draw(1, layer.outputs) }
        });
        self.pack(&tensors.collect::<Vec<_>>())
    }

    /// From PyTorch's layout into the buffer's.
    pub fn pack(&self, tensors: &[Tensors]) -> Vec<f64> {
        let mut values = vec![0.0; self.len];
        for (layer, tensors) in self.layers.iter().zip(tensors) {
            for (output, row) in tensors.weight.chunks_exact(layer.inputs).enumerate() {
                for (input, &value) in row.iter().enumerate() {
                    values[layer.weight + input * pitch(layer.outputs) + output] = value;
                }
            }
            values[layer.bias..][..layer.outputs].copy_from_slice(&tensors.bias);
        }
        values
    }

    /// From the buffer's layout into PyTorch's.
    pub fn unpack(&self, values: &[f64]) -> Vec<Tensors> {
        let tensors = self.layers.iter().map(|layer| Tensors {
            weight: (0..layer.outputs)
                .flat_map(|output| {
                    (0..layer.inputs)
                        .map(move |input| values[layer.weight + input * pitch(layer.outputs) + output])
                })
                .collect(),
            bias: values[layer.bias..][..layer.outputs].to_vec(),
        });
        tensors.collect()
    }
}

/// A buffer and the row in it where a call's rows start.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// The buffer.
    pub buffer: BufferId,
    /// Its first row.
    pub row: usize,
}

impl Operand {
    /// From a row on.
    pub fn at(buffer: BufferId, row: usize) -> Self {
        Self { buffer, row }
    }
}

impl From<BufferId> for Operand {
    fn from(buffer: BufferId) -> Self {
        Self { buffer, row: 0 }
    }
}

/// A network in a plan: its layout and its buffers.
#[derive(Clone, Copy, Debug)]
pub struct Net {
    /// Layout.
    pub mlp: Mlp,
    /// The weights.
    pub values: BufferId,
    /// The layers' weights the other way round, as [`Net::transpose`] left them.
    pub transposed: BufferId,
    /// Their moving average.
    pub average: BufferId,
    /// The average at its best so far.
    pub best: BufferId,
    /// Adam's mean of the gradient.
    pub mean: BufferId,
    /// Adam's mean of the squared gradient.
    pub variance: BufferId,
    /// The gradient, one a lane.
    pub grad: BufferId,
    /// Bound where a kernel's optional input is not used.
    none: BufferId,
}

impl Net {
    /// Declares a network's buffers.
    pub fn declare(b: &mut PlanBuilder, name: &str, mlp: Mlp, none: BufferId) -> Self {
        let mut shared = |what| b.buffer(format!("{name}.{what}"), Elem::F32, mlp.len, Scope::Shared);
        let (values, transposed) = (shared("values"), shared("transposed"));
        let (average, best) = (shared("average"), shared("best"));
        let (mean, variance) = (shared("mean"), shared("variance"));
        let grad = b.buffer(format!("{name}.grad"), Elem::F32, mlp.len, Scope::Lane);
        Self { mlp, values, transposed, average, best, mean, variance, grad, none }
    }

    /// The same network with its averaged weights, for evaluation.
    pub fn averaged(&self) -> Self {
        Self { values: self.average, ..*self }
    }

    /// y = x·W + b; a hidden layer has its ReLU, and its dropout if there are multipliers.
    pub fn forward(
        &self,
        b: &mut PlanBuilder,
        layer: usize,
        rows: usize,
        x: Operand,
        y: Operand,
        dropout: Option<BufferId>,
    ) {
        let l = self.mlp.layers[layer];
        b.call(
            Linear {
                rows: rows as u32,
                inputs_pitch: pitch(l.inputs) as u32,
                outputs_pitch: pitch(l.outputs) as u32,
                x_row: x.row as u32,
                y_row: y.row as u32,
                weight: l.weight as u32,
                bias: l.bias as u32,
                relu: u32::from(layer < 2),
                dropout: dropout.is_some() as u32,
            },
            &[x.buffer, self.values, dropout.unwrap_or(self.none), y.buffer],
        );
    }

    /// Prepares [`Net::backward_input`] of some layers with the current weights.
    pub fn transpose(&self, b: &mut PlanBuilder, layers: std::ops::Range<usize>) {
        for l in &self.mlp.layers[layers] {
            b.call(
                Transpose {
                    inputs_pitch: pitch(l.inputs) as u32,
                    outputs_pitch: pitch(l.outputs) as u32,
                    weight: l.weight as u32,
                },
                &[self.values, self.transposed],
            );
        }
    }

    /// The gradient of a layer's input from that of its output, after [`Net::transpose`]. `hidden` is the activation that was
    /// the input (with its dropout multipliers): the gradient then is that of the pre-activation.
    #[allow(clippy::too_many_arguments)]
    pub fn backward_input(
        &self,
        b: &mut PlanBuilder,
        layer: usize,
        rows: usize,
        dy: Operand,
        dx: Operand,
        hidden: Option<Operand>,
        dropout: Option<BufferId>,
    ) {
        let l = self.mlp.layers[layer];
        b.call(
            LinearGradInput {
                rows: rows as u32,
                inputs_pitch: pitch(l.inputs) as u32,
                outputs_pitch: pitch(l.outputs) as u32,
                dy_row: dy.row as u32,
                dx_row: dx.row as u32,
                hidden_row: hidden.map_or(0, |hidden| hidden.row) as u32,
                weight: l.weight as u32,
                gate: hidden.is_some() as u32,
                dropout: dropout.is_some() as u32,
            },
            &[
                dy.buffer,
                self.transposed,
                hidden.map_or(self.none, |hidden| hidden.buffer),
                dropout.unwrap_or(self.none),
                dx.buffer,
            ],
        );
    }

    /// The gradients of a layer's weight and bias from all rows of its input and output gradient,
    /// divided by `divisor`; added to what is there, or written over it.
    #[allow(clippy::too_many_arguments)]
    pub fn backward_weight(
        &self,
        b: &mut PlanBuilder,
        layer: usize,
        rows: usize,
        x: BufferId,
        dy: BufferId,
        divisor: usize,
        accumulate: bool,
    ) {
        let l = self.mlp.layers[layer];
        let (rows, divisor, accumulate) = (rows as u32, divisor as u32, u32::from(accumulate));
        let outputs_pitch = pitch(l.outputs) as u32;
        let inputs_pitch = pitch(l.inputs) as u32;
        let weight = l.weight as u32;
        b.call(
            LinearGradWeight { rows, inputs_pitch, outputs_pitch, weight, accumulate, divisor },
            &[x, dy, self.grad],
        );
        b.call(
            BiasGrad { rows, pitch: outputs_pitch, bias: l.bias as u32, accumulate, divisor },
            &[dy, self.grad],
        );
    }

    /// Adam with the gradients of all lanes, and the average of what comes out. `rate` and `power` are words of `settings` and `powers`;
    /// `state` is (settings, powers, clock, status).
    pub fn adam(&self, b: &mut PlanBuilder, lanes: usize, rate: usize, power: usize, state: [BufferId; 4]) {
        let [settings, powers, clock, status] = state;
        b.call(
            Adam { len: self.mlp.len as u32, lanes: lanes as u32, rate: rate as u32, power: power as u32 },
            &[self.values, self.mean, self.variance, self.grad, settings, powers, clock, status],
        );
        b.call(Average { len: self.mlp.len as u32 }, &[self.values, self.average, settings]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_undone_by_unpacking_and_pads_with_zeros() {
        let mlp = Mlp::new(5, [3, 6], 2);
        let values = mlp.init(3, 0);
        assert_eq!(mlp.pack(&mlp.unpack(&values)), values);
        let weights: usize = mlp.layers.iter().map(|l| (l.inputs + 1) * l.outputs).sum();
        assert_eq!(values.iter().filter(|v| **v != 0.0).count(), weights);
        let first = &mlp.unpack(&values)[0];
        assert_eq!(first.weight[5 + 2], values[2 * pitch(3) + 1], "output 1, input 2");
        assert_ne!(mlp.init(3, 0), mlp.init(3, 1));
        let bound = 1.0 / 5f64.sqrt();
        assert!(
            first.weight.iter().all(|w| w.abs() <= bound)
                && first.weight.iter().any(|w| w.abs() > bound / 2.0)
        );
    }
}
