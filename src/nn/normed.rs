//! Networks with batch norm, one or many of equal shape side by side (block-diagonal): linear, ReLU, norm, and again. The
//! norm of a training step is by its batch, all rows of it; evaluations have running moments, which lie among the weights
//! and have no gradient, so that whatever keeps the weights keeps them. There every norm is folded into a layer.

use super::layer::{Layer, Tensors, pitch};
use super::optim::Weights;
use super::stack::{Network, Stack};
use super::tape::Operand;
use super::word;
use crate::engine::kernels::{
    BlockGradInput, BlockGradWeight, BlockLinear, Fold, Moments, NormGrad, NormGradInput, Normalize,
    fold_layer,
};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};
use crate::random::{Source, stream, unit};

/// A layer, and where the norm behind it lies: of each unit its scale, then for all units the shift, the running mean
/// and the running variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormedLayer {
    /// The first block's place; its weights and its biases are followed by those of the others.
    pub layer: Layer,
    /// The norm.
    pub norm: Option<usize>,
}

/// The layout of such a network in its group's buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormedStack {
    /// Networks side by side.
    pub blocks: usize,
    /// Their layers.
    pub layers: Vec<NormedLayer>,
    /// Where it starts.
    pub start: usize,
    /// Numbers it takes.
    pub len: usize,
}

impl NormedStack {
    /// Layers from each width to the next, with ReLU and norm after all but the last, which has a norm if `last`.
    pub fn new(start: usize, blocks: usize, widths: &[usize], last: bool) -> Self {
        let mut end = start;
        let count = widths.len() - 1;
        let layers = (0..count).map(|index| {
            let (inputs, outputs) = (widths[index], widths[index + 1]);
            let relu = index + 1 < count;
            let bias = end + blocks * pitch(inputs) * pitch(outputs);
            let layer = Layer { inputs, outputs, weight: end, bias, relu };
            end = bias + blocks * pitch(outputs);
            let norm = (relu || last).then_some(end);
            if norm.is_some() {
                end += 4 * blocks * pitch(outputs);
            }
            NormedLayer { layer, norm }
        });
        let layers = layers.collect();
        Self { blocks, layers, start, len: end - start }
    }

    /// Where what follows it starts.
    pub fn end(&self) -> usize {
        self.start + self.len
    }

    /// The same layers without norms, as evaluations have them: of one block.
    pub fn folded(&self) -> Stack {
        let layers = self.layers.iter().map(|layer| layer.layer).collect();
        Stack { layers, start: self.start, len: self.len }
    }

    /// Initial values, from its start on: weights and biases uniform in ±1/√inputs and norms that do nothing, as PyTorch
    /// has them. `which` tells networks of one seed apart.
    pub fn init(&self, seed: u64, which: u32) -> Vec<f64> {
        let source = Source::new(seed, stream::INIT, which);
        let mut values = vec![0.0; self.end()];
        for (NormedLayer { layer, norm }, index) in self.layers.iter().zip(0..) {
            let bound = 1.0 / (layer.inputs as f64).sqrt();
            let draw = |kind: usize, i: usize| {
                let bits = source.bits(index, word(kind), word(i) / 4)[i % 4];
                // Rounded to f32, so that every engine starts from the same numbers.
                f64::from(((2.0 * unit(bits) - 1.0) * bound) as f32)
            };
            for block in 0..self.blocks {
                for (input, output) in grid(layer.inputs, layer.outputs) {
                    values[self.weight_at(layer, block, input, output)] =
                        draw(2 * block, input * layer.outputs + output);
                }
                for output in 0..layer.outputs {
                    values[layer.bias + block * pitch(layer.outputs) + output] = draw(2 * block + 1, output);
                    if let Some(norm) = norm {
                        let at = norm + block * pitch(layer.outputs) + output;
                        values[at] = 1.0;
                        values[at + 3 * self.units(layer)] = 1.0;
                    }
                }
            }
        }
        values.split_off(self.start)
    }

    fn weight_at(&self, layer: &Layer, block: usize, input: usize, output: usize) -> usize {
        layer.weight + (block * pitch(layer.inputs) + input) * pitch(layer.outputs) + output
    }

    /// Units of a layer in all blocks, padding included.
    fn units(&self, layer: &Layer) -> usize {
        self.blocks * pitch(layer.outputs)
    }

    /// How each layer is folded with the norms before and behind it. One behind a layer that has a ReLU is left to the
    /// next.
    fn folds(&self) -> impl Iterator<Item = Fold> {
        let before = std::iter::once(None)
            .chain(self.layers.iter().map(|layer| layer.norm.filter(|_| layer.layer.relu)));
        self.layers.iter().zip(before).map(|(NormedLayer { layer, norm }, before)| Fold {
            blocks: word(self.blocks),
            inputs_pitch: word(pitch(layer.inputs)),
            outputs_pitch: word(pitch(layer.outputs)),
            weight: word(layer.weight),
            bias: word(layer.bias),
            before: before.map_or(0, |norm| word(norm + 1)),
            behind: norm.filter(|_| !layer.relu).map_or(0, |norm| word(norm + 1)),
        })
    }

    /// Its layers as evaluations have them, from the group's values, in PyTorch's layout: `[block][output][input]`.
    pub fn unpack_folded(&self, group: &[f64]) -> Vec<Tensors> {
        let mut folded = vec![0.0; group.len()];
        self.folds().for_each(|fold| fold_layer(&fold, group, &mut folded));
        let tensors = self.layers.iter().map(|NormedLayer { layer, .. }| {
            let blocks = 0..self.blocks;
            let weight =
                blocks.clone().flat_map(|block| grid(layer.outputs, layer.inputs).map(move |at| (block, at)));
            Tensors {
                weight: weight
                    .map(|(block, (output, input))| folded[self.weight_at(layer, block, input, output)])
                    .collect(),
                bias: blocks
                    .flat_map(|block| {
                        folded[layer.bias + block * pitch(layer.outputs)..][..layer.outputs].to_vec()
                    })
                    .collect(),
            }
        });
        tensors.collect()
    }
}

/// All pairs below two numbers.
fn grid(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
}

/// What such a network leaves behind on its way forward, and needs on its way back.
#[derive(Clone, Debug)]
pub struct NormedTape {
    /// Each layer's output before its norm, after its ReLU.
    outputs: Vec<BufferId>,
    /// Behind the norm; where there is none, the output.
    normed: Vec<BufferId>,
    /// The batch's moments.
    moments: Vec<BufferId>,
    /// Sums on the way back.
    sums: Vec<BufferId>,
    /// The gradient of what is behind the norm, and then of what is before the ReLU.
    grads: Vec<BufferId>,
}

impl NormedTape {
    /// A tape of so many rows of each block.
    pub fn declare(b: &mut PlanBuilder, name: &str, stack: &NormedStack, rows: usize) -> Self {
        let (mut tape, blocks) = (
            Self { outputs: vec![], normed: vec![], moments: vec![], sums: vec![], grads: vec![] },
            stack.blocks,
        );
        for (index, NormedLayer { layer, norm }) in stack.layers.iter().enumerate() {
            let units = blocks * pitch(layer.outputs);
            let mut part = |what: &str, len| {
                b.buffer(format!("{name}.{what}{}", index + 1), Elem::F32, len, Scope::Lane)
            };
            let output = part("output", units * rows);
            tape.outputs.push(output);
            tape.normed.push(if norm.is_some() { part("normed", units * rows) } else { output });
            tape.grads.push(if norm.is_some() { part("grad", units * rows) } else { output });
            if norm.is_some() {
                tape.moments.push(part("moments", 2 * units));
                tape.sums.push(part("sums", 2 * units));
            }
        }
        tape
    }

    /// The last layer's outputs, behind its norm if it has one.
    pub fn result(&self) -> BufferId {
        self.normed[self.normed.len() - 1]
    }

    /// Where their gradient is read from: without a norm, where they were.
    pub fn result_grad(&self) -> BufferId {
        self.grads[self.grads.len() - 1]
    }
}

/// Such a network in a plan.
#[derive(Clone, Debug)]
pub struct NormedNetwork {
    /// Its layout.
    pub stack: NormedStack,
    /// The layers without their norms, where there is one block: products of many rows have kernels of their own.
    plain: Option<Network>,
    weights: Weights,
}

impl NormedNetwork {
    /// A stack with its group's weights.
    pub fn new(stack: NormedStack, weights: Weights, none: BufferId) -> Self {
        let plain = (stack.blocks == 1).then(|| Network::new(stack.folded(), weights, none));
        Self { stack, plain, weights }
    }

    /// The layers alone, of one block.
    pub fn plain(&self) -> Option<&Network> {
        self.plain.as_ref()
    }

    /// Forward, by the moments of all `rows` there are of each block, whose share goes into the running ones. The weights
    /// change, so it is no work for a lane.
    pub fn forward(&self, b: &mut PlanBuilder, rows: usize, input: BufferId, tape: &NormedTape) {
        let values = self.weights.values;
        for (index, NormedLayer { layer, norm }) in self.stack.layers.iter().enumerate() {
            let x = if index == 0 { input } else { tape.normed[index - 1] };
            let y = tape.outputs[index];
            match &self.plain {
                Some(plain) => plain.layer_forward(b, index, rows, x.into(), y.into(), None),
                None => b.call(self.linear(layer, rows), &[x, values, y]),
            }
            let Some(norm) = norm else { continue };
            let [rows, blocks, pitch, norm] =
                [rows, self.stack.blocks, pitch(layer.outputs), *norm].map(word);
            let moments = tape.moments[index];
            b.call(Moments { rows, blocks, pitch, norm }, &[y, values, moments]);
            b.call(Normalize { rows, blocks, pitch, norm }, &[y, values, moments, tape.normed[index]]);
        }
    }

    /// Backward from the gradient of the result to those of all numbers, divided by `divisor`, and of the input, if it is
    /// asked for.
    pub fn backward(
        &self,
        b: &mut PlanBuilder,
        rows: usize,
        input: BufferId,
        tape: &NormedTape,
        divisor: usize,
        grad_input: Option<BufferId>,
    ) {
        let Weights { values, grad, .. } = self.weights;
        if let Some(plain) = &self.plain {
            plain.transpose(b, usize::from(grad_input.is_none())..self.stack.layers.len());
        }
        for (index, NormedLayer { layer, norm }) in self.stack.layers.iter().enumerate().rev() {
            let dy = tape.grads[index];
            if let Some(norm) = norm {
                let [rows, blocks, pitch, norm] =
                    [rows, self.stack.blocks, pitch(layer.outputs), *norm].map(word);
                let (x, moments, sums) = (tape.outputs[index], tape.moments[index], tape.sums[index]);
                let divisor = word(divisor);
                b.call(NormGrad { rows, blocks, pitch, norm, divisor }, &[dy, x, moments, grad, sums]);
                let gate = u32::from(layer.relu);
                b.call(NormGradInput { rows, blocks, pitch, norm, gate }, &[dy, x, values, moments, sums]);
            }
            let x = if index == 0 { input } else { tape.normed[index - 1] };
            let dx = if index == 0 { grad_input } else { Some(tape.grads[index - 1]) };
            match &self.plain {
                Some(plain) => {
                    plain.weight_grad(b, index, rows, [x, dy], divisor, false);
                    if let Some(dx) = dx {
                        let at = |buffer| Operand::at(buffer, 0);
                        plain.input_grad(b, index, rows, [at(dy), at(dx)], None, None);
                    }
                }
                None => self.block_backward(b, layer, rows, [x, dy], divisor, dx),
            }
        }
    }

    fn block_backward(
        &self,
        b: &mut PlanBuilder,
        layer: &Layer,
        rows: usize,
        [x, dy]: [BufferId; 2],
        divisor: usize,
        dx: Option<BufferId>,
    ) {
        let BlockLinear { rows, blocks, inputs_pitch, outputs_pitch, weight, bias, .. } =
            self.linear(layer, rows);
        let divisor = word(divisor);
        b.call(
            BlockGradWeight { rows, blocks, inputs_pitch, outputs_pitch, weight, bias, divisor },
            &[x, dy, self.weights.grad],
        );
        if let Some(dx) = dx {
            let call = BlockGradInput { rows, blocks, inputs_pitch, outputs_pitch, weight };
            b.call(call, &[dy, self.weights.values, dx]);
        }
    }

    fn linear(&self, layer: &Layer, rows: usize) -> BlockLinear {
        let [rows, blocks, weight, bias] = [rows, self.stack.blocks, layer.weight, layer.bias].map(word);
        let (inputs_pitch, outputs_pitch) = (word(pitch(layer.inputs)), word(pitch(layer.outputs)));
        BlockLinear { rows, blocks, inputs_pitch, outputs_pitch, weight, bias, relu: u32::from(layer.relu) }
    }

    /// Its layers as evaluations have them, from the averaged weights, to where the group has them.
    pub fn fold(&self, b: &mut PlanBuilder, folded: BufferId) {
        for fold in self.stack.folds() {
            b.call(fold, &[self.weights.average, folded]);
        }
    }

    /// Forward with folded layers, whose outputs are given.
    pub fn forward_folded(
        &self,
        b: &mut PlanBuilder,
        folded: BufferId,
        rows: usize,
        input: BufferId,
        outputs: &[BufferId],
    ) {
        let mut x = input;
        for (NormedLayer { layer, .. }, &y) in self.stack.layers.iter().zip(outputs) {
            b.call(self.linear(layer, rows), &[x, folded, y]);
            x = y;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_layers_are_those_that_were_drawn_where_norms_do_nothing() {
        let stack = NormedStack::new(3, 2, &[3, 5, 2], true);
        let group = [vec![0.0; 3], stack.init(1, 0)].concat();
        assert_eq!(group.len(), stack.end());
        let layers = stack.unpack_folded(&group);
        assert_eq!([layers[0].weight.len(), layers[1].weight.len(), layers[1].bias.len()], [30, 20, 4]);
        // A norm of mean 0 and variance 1 divides by √(1 + ε); the first layer's is left to the second.
        let NormedLayer { layer, .. } = stack.layers[0];
        assert_eq!(layers[0].weight[15 + 2 * 3 + 1], group[stack.weight_at(&layer, 1, 1, 2)]);
        let NormedLayer { layer, .. } = stack.layers[1];
        let expected = group[stack.weight_at(&layer, 1, 4, 1)] / (1.0 + 1e-5);
        assert!((layers[1].weight[10 + 5 + 4] - expected).abs() < 1e-9);
    }
}
