//! A stack of linear layers with ReLUs between them: where its weights lie, and its way forward with its way back
//! beside it.

use super::layer::{Layer, Tensors, pitch};
use super::optim::Weights;
use super::tape::{Operand, Tape};
use super::word;
use crate::engine::kernels::{BiasGrad, Linear, LinearGradInput, LinearGradWeight, Transpose};
use crate::engine::plan::{BufferId, PlanBuilder};
use crate::random::{Source, stream, unit};
use std::ops::Range;

/// The layout of a stack in its group's buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Its layers.
    pub layers: Vec<Layer>,
    /// Where it starts.
    pub start: usize,
    /// Numbers it takes.
    pub len: usize,
}

impl Stack {
    /// Layers from each width to the next, with a ReLU after all but the last, from a place of the group's buffers on.
    pub fn new(start: usize, widths: &[usize]) -> Self {
        let mut end = start;
        let count = widths.len() - 1;
        let layers = (0..count).map(|index| {
            let (inputs, outputs) = (widths[index], widths[index + 1]);
            let bias = end + pitch(inputs) * pitch(outputs);
            let layer = Layer { inputs, outputs, weight: end, bias, relu: index + 1 < count };
            end = layer.end();
            layer
        });
        let layers = layers.collect();
        Self { layers, start, len: end - start }
    }

    /// Where what follows it starts.
    pub fn end(&self) -> usize {
        self.start + self.len
    }

    /// Initial weights: uniform in ±1/√inputs, as PyTorch's linear layers. `which` tells stacks of one seed apart.
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
                    values[layer.weight - self.start + input * pitch(layer.outputs) + output] = value;
                }
            }
            values[layer.bias - self.start..][..layer.outputs].copy_from_slice(&tensors.bias);
        }
        values
    }

    /// From the group's buffer into PyTorch's layout.
    pub fn unpack(&self, group: &[f64]) -> Vec<Tensors> {
        let tensors = self.layers.iter().map(|layer| Tensors {
            weight: (0..layer.outputs)
                .flat_map(|output| {
                    (0..layer.inputs)
                        .map(move |input| group[layer.weight + input * pitch(layer.outputs) + output])
                })
                .collect(),
            bias: group[layer.bias..][..layer.outputs].to_vec(),
        });
        tensors.collect()
    }
}

/// A stack in a plan, with the weights it reads.
#[derive(Clone, Debug)]
pub struct Network {
    /// Its layout.
    pub stack: Stack,
    /// The group its weights are in.
    pub weights: Weights,
    /// What the way forward reads: the weights, or their average.
    values: BufferId,
    /// Bound where a kernel's optional input is not used.
    none: BufferId,
}

/// Some rows of a tape: from one on, so many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub first: usize,
    pub count: usize,
}

impl Network {
    /// A stack with its group's weights.
    pub fn new(stack: Stack, weights: Weights, none: BufferId) -> Self {
        Self { values: weights.values, stack, weights, none }
    }

    /// A stack that reads its weights elsewhere than where they are trained, and only goes forward.
    pub fn reading(self, stack: Stack, values: BufferId) -> Self {
        Self { stack, values, ..self }
    }

    /// The same network with its averaged weights, for evaluation.
    pub fn averaged(&self) -> Self {
        Self { values: self.weights.average, ..self.clone() }
    }

    /// What its way forward reads.
    pub fn values(&self) -> BufferId {
        self.values
    }

    /// Bound where an optional input is not used.
    pub fn none(&self) -> BufferId {
        self.none
    }

    /// The layers from `from` on, for some rows of the tape. Layer 0 reads `input`. `dropout` has the multipliers of
    /// the hidden layers, if there are any.
    pub(crate) fn forward(
        &self,
        b: &mut PlanBuilder,
        from: usize,
        rows: Rows,
        input: Option<Operand>,
        tape: &Tape,
        dropout: Option<&[BufferId]>,
    ) {
        for layer in from..self.stack.layers.len() {
            let y = Operand::at(tape.outputs[layer], rows.first);
            let x = match layer {
                0 => input.unwrap_or(y),
                _ => Operand::at(tape.outputs[layer - 1], rows.first),
            };
            self.layer_forward(b, layer, rows.count, x, y, dropout);
        }
    }

    /// y = x·W + b; a hidden layer has its ReLU, and its dropout if there is some.
    pub(super) fn layer_forward(
        &self,
        b: &mut PlanBuilder,
        layer: usize,
        rows: usize,
        x: Operand,
        y: Operand,
        dropout: Option<&[BufferId]>,
    ) {
        let l = self.stack.layers[layer];
        let multiplier = dropout.and_then(|dropout| dropout.get(layer)).filter(|_| l.relu);
        b.call(
            Linear {
                rows: word(rows),
                inputs_pitch: word(pitch(l.inputs)),
                outputs_pitch: word(pitch(l.outputs)),
                x_row: word(x.row),
                y_row: word(y.row),
                weight: word(l.weight),
                bias: word(l.bias),
                relu: u32::from(l.relu),
                dropout: multiplier.is_some() as u32,
            },
            &[x.buffer, self.values, multiplier.copied().unwrap_or(self.none), y.buffer],
        );
    }

    /// Prepares the way back through some layers to their inputs, with the current weights.
    pub fn transpose(&self, b: &mut PlanBuilder, layers: Range<usize>) {
        for l in &self.stack.layers[layers] {
            b.call(
                Transpose {
                    inputs_pitch: word(pitch(l.inputs)),
                    outputs_pitch: word(pitch(l.outputs)),
                    weight: word(l.weight),
                },
                &[self.weights.values, self.weights.transposed],
            );
        }
    }

    /// From the gradient of the outputs to those of the hidden layers before their ReLUs, for some rows of the tape;
    /// after [`Network::transpose`].
    pub(crate) fn backward_hidden(
        &self,
        b: &mut PlanBuilder,
        rows: Rows,
        tape: &Tape,
        dropout: Option<&[BufferId]>,
    ) {
        for layer in (1..self.stack.layers.len()).rev() {
            let dy = if layer + 1 == self.stack.layers.len() { tape.logits() } else { tape.grads[layer] };
            let at = |buffer| Operand::at(buffer, rows.first);
            let hidden = at(tape.outputs[layer - 1]);
            let multiplier = dropout.and_then(|dropout| dropout.get(layer - 1)).copied();
            self.input_grad(
                b,
                layer,
                rows.count,
                [at(dy), at(tape.grads[layer - 1])],
                Some(hidden),
                multiplier,
            );
        }
    }

    /// The gradient of the stack's input, from row 0 of `to` on, for some rows of the tape.
    pub(crate) fn backward_input(&self, b: &mut PlanBuilder, rows: Rows, tape: &Tape, to: BufferId) {
        let from = Operand::at(tape.grads.first().copied().unwrap_or(tape.logits()), rows.first);
        self.input_grad(b, 0, rows.count, [from, to.into()], None, None);
    }

    /// The gradient of a layer's input from that of its output. `hidden` is the activation that was the input (with
    /// its dropout multipliers): the gradient then is that of the pre-activation.
    pub(super) fn input_grad(
        &self,
        b: &mut PlanBuilder,
        layer: usize,
        rows: usize,
        [dy, dx]: [Operand; 2],
        hidden: Option<Operand>,
        dropout: Option<BufferId>,
    ) {
        let l = self.stack.layers[layer];
        b.call(
            LinearGradInput {
                rows: word(rows),
                inputs_pitch: word(pitch(l.inputs)),
                outputs_pitch: word(pitch(l.outputs)),
                dy_row: word(dy.row),
                dx_row: word(dx.row),
                hidden_row: word(hidden.map_or(0, |hidden| hidden.row)),
                weight: word(l.weight),
                gate: hidden.is_some() as u32,
                dropout: dropout.is_some() as u32,
            },
            &[
                dy.buffer,
                self.weights.transposed,
                hidden.map_or(self.none, |hidden| hidden.buffer),
                dropout.unwrap_or(self.none),
                dx.buffer,
            ],
        );
    }

    /// The gradients of the weights and biases of all layers above the first, from the tape's first rows; after
    /// `backward_hidden`. Divided by `divisor`; added to what is there, or written over it.
    pub fn backward_weights(
        &self,
        b: &mut PlanBuilder,
        rows: usize,
        tape: &Tape,
        divisor: usize,
        accumulate: bool,
    ) {
        for layer in (1..self.stack.layers.len()).rev() {
            let dy = if layer + 1 == self.stack.layers.len() { tape.logits() } else { tape.grads[layer] };
            self.weight_grad(b, layer, rows, [tape.outputs[layer - 1], dy], divisor, accumulate);
        }
    }

    /// The same for the first layer, from its dense input.
    pub fn backward_first(
        &self,
        b: &mut PlanBuilder,
        rows: usize,
        input: BufferId,
        tape: &Tape,
        divisor: usize,
        accumulate: bool,
    ) {
        let dy = tape.grads.first().copied().unwrap_or(tape.logits());
        self.weight_grad(b, 0, rows, [input, dy], divisor, accumulate);
    }

    pub(super) fn weight_grad(
        &self,
        b: &mut PlanBuilder,
        layer: usize,
        rows: usize,
        [x, dy]: [BufferId; 2],
        divisor: usize,
        accumulate: bool,
    ) {
        let l = self.stack.layers[layer];
        let (rows, divisor, accumulate) = (word(rows), word(divisor), u32::from(accumulate));
        let (inputs_pitch, outputs_pitch) = (word(pitch(l.inputs)), word(pitch(l.outputs)));
        b.call(
            LinearGradWeight {
                rows,
                inputs_pitch,
                outputs_pitch,
                weight: word(l.weight),
                accumulate,
                divisor,
            },
            &[x, dy, self.weights.grad],
        );
        b.call(
            BiasGrad { rows, pitch: outputs_pitch, bias: word(l.bias), accumulate, divisor },
            &[dy, self.weights.grad],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_undone_by_unpacking_and_pads_with_zeros() {
        let stack = Stack::new(0, &[5, 3, 6, 2]);
        let values = stack.init(3, 0);
        assert_eq!(stack.pack(&stack.unpack(&values)), values);
        let weights: usize = stack.layers.iter().map(|l| (l.inputs + 1) * l.outputs).sum();
        assert_eq!(values.iter().filter(|v| **v != 0.0).count(), weights);
        let first = &stack.unpack(&values)[0];
        assert_eq!(first.weight[5 + 2], values[2 * pitch(3) + 1], "output 1, input 2");
        assert_ne!(stack.init(3, 0), stack.init(3, 1));
        let bound = 1.0 / 5f64.sqrt();
        assert!(
            first.weight.iter().all(|w| w.abs() <= bound)
                && first.weight.iter().any(|w| w.abs() > bound / 2.0)
        );
    }

    #[test]
    fn two_stacks_of_a_group_lie_one_after_the_other() {
        let first = Stack::new(0, &[5, 3]);
        let second = Stack::new(first.end(), &[5, 3, 4, 2]);
        assert_eq!(second.layers.iter().map(|layer| layer.relu).collect::<Vec<_>>(), [true, true, false]);
        let group = [first.init(1, 0), second.init(1, 1)].concat();
        assert_eq!(group.len(), second.end());
        assert_eq!(second.pack(&second.unpack(&group)), second.init(1, 1));
    }
}
