//! Two branches side by side in one stack: a main one, and a side one whose every layer reads both branches' layer before.
//! The main branch knows nothing of the side one: it does not read it, and what the side one reads of it is detached, so
//! no gradient comes back that way.
//!
//! A layer of both is one matrix. With the main branch's units first, its blocks are
//!
//! ```text
//!                       to main      to side
//!     from main      [   W_mm         W_ms   ]        h' = relu(h·W + b)
//!     from side      [    0           W_ss   ]
//! ```
//!
//! The zero stays one if its gradient is set to zero. Detached is what the way back to the inputs does not see: with
//! dy = (dm, ds), dh = (dm·W_mmᵀ, ds·W_ssᵀ), which is dy·Wᵀ without W_ms. So that block is zero in the transposed weights,
//! and the weights' own gradient hᵀ·dy is what it is. The first layer reads the same input for both and has no zeros.

use super::layer::{Tensors, pitch};
use super::stack::{Network, Stack};
use super::word;
use crate::engine::kernels::{CopyBlock, FillBlock};
use crate::engine::plan::{BufferId, PlanBuilder};

/// How the layers of a stack are divided between the branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateral {
    /// The layers, of both branches.
    pub stack: Stack,
    /// Outputs of each layer that are the main branch's: the first ones.
    main: Vec<usize>,
}

impl Lateral {
    /// Two branches with the same hidden layers, from a place of the group's buffers on; the main one's outputs come before
    /// the side one's.
    pub fn new(start: usize, inputs: usize, hidden: &[usize], [main, side]: [usize; 2]) -> Self {
        let widths: Vec<usize> = hidden.iter().map(|width| 2 * width).collect();
        let stack = Stack::new(start, &[&[inputs][..], &widths, &[main + side]].concat());
        Self { stack, main: [hidden, &[main]].concat() }
    }

    /// Initial weights: uniform in ±1/√inputs of what a unit really reads, as PyTorch's linear layers.
    pub fn init(&self, seed: u64, which: u32) -> Vec<f64> {
        let values = self.stack.init(seed, which);
        let mut layers = self.stack.unpack(&[vec![0.0; self.stack.start], values].concat());
        for (index, (layer, &outputs)) in layers.iter_mut().zip(&self.main).enumerate().skip(1) {
            let (inputs, read) = (self.stack.layers[index].inputs, self.main[index - 1]);
            // The stack's bound is that of all inputs.
            let wider = (inputs as f64 / read as f64).sqrt();
            let scaled = |value: &mut f64| *value = f64::from((*value * wider) as f32);
            let Tensors { weight, bias } = layer;
            for row in weight.chunks_exact_mut(inputs).take(outputs) {
                let (of_main, of_side) = row.split_at_mut(read);
                of_main.iter_mut().for_each(scaled);
                of_side.fill(0.0);
            }
            bias[..outputs].iter_mut().for_each(scaled);
        }
        self.stack.pack(&layers)
    }

    /// The main branch alone, as a stack of its own.
    pub fn main_stack(&self) -> Stack {
        let inputs = self.stack.layers.first().map_or(0, |layer| layer.inputs);
        Stack::new(0, &[&[inputs][..], &self.main].concat())
    }

    /// Copies the main branch's weights to where [`Lateral::main_stack`] has them: it goes forward at a quarter of the work.
    pub fn copy_main(&self, b: &mut PlanBuilder, network: &Network, to: BufferId) {
        let alone = self.main_stack();
        for (both, one) in self.stack.layers.iter().zip(&alone.layers) {
            let [from_pitch, to_pitch] = [both.outputs, one.outputs].map(|width| word(pitch(width)));
            let block =
                CopyBlock { from_pitch, to_pitch, columns: word(one.outputs), ..CopyBlock::default() };
            for (from_at, to_at, rows) in [(both.weight, one.weight, one.inputs), (both.bias, one.bias, 1)] {
                let call =
                    CopyBlock { from_at: word(from_at), to_at: word(to_at), rows: word(rows), ..block };
                b.call(call, &[network.values(), to]);
            }
        }
    }

    /// Prepares the way back, as [`Network::transpose`]: what the side branch reads of the main one is detached.
    pub fn transpose(&self, b: &mut PlanBuilder, network: &Network) {
        network.transpose(b, 1..self.stack.layers.len());
        for (index, layer) in self.stack.layers.iter().enumerate().skip(1) {
            let main = self.main[index];
            let block = FillBlock {
                at: word(layer.weight + main * pitch(layer.inputs)),
                pitch: word(pitch(layer.inputs)),
                rows: word(layer.outputs - main),
                columns: word(self.main[index - 1]),
                value: 0,
            };
            b.call(block, &[network.weights.transposed]);
        }
    }

    /// After the weights' gradient: the main branch goes on not reading the side one.
    pub fn separate(&self, b: &mut PlanBuilder, network: &Network) {
        for (index, layer) in self.stack.layers.iter().enumerate().skip(1) {
            let read = self.main[index - 1];
            let block = FillBlock {
                at: word(layer.weight + read * pitch(layer.outputs)),
                pitch: word(pitch(layer.outputs)),
                rows: word(layer.inputs - read),
                columns: word(self.main[index]),
                value: 0,
            };
            b.call(block, &[network.weights.grad]);
        }
    }

    /// Of the first rows of the hidden layers' dropout multipliers: nothing of the side branch is dropped.
    pub fn keep_side(&self, b: &mut PlanBuilder, multipliers: &[BufferId], rows: usize) {
        for (index, &multiplier) in multipliers.iter().enumerate() {
            let (width, main) = (self.stack.layers[index].outputs, self.main[index]);
            let block = FillBlock {
                at: word(main),
                pitch: word(pitch(width)),
                rows: word(rows),
                columns: word(width - main),
                value: 1,
            };
            b.call(block, &[multiplier]);
        }
    }

    /// Of the first rows of the outputs, which are a gradient: nothing comes from the side branch.
    pub fn ignore_side(&self, b: &mut PlanBuilder, outputs: BufferId, rows: usize) {
        let Some((layer, main)) = self.stack.layers.last().zip(self.main.last()) else { return };
        let block = FillBlock {
            at: word(*main),
            pitch: word(pitch(layer.outputs)),
            rows: word(rows),
            columns: word(layer.outputs - main),
            value: 0,
        };
        b.call(block, &[outputs]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_branch_does_not_read_the_side_one() {
        let lateral = Lateral::new(8, 5, &[3, 6], [2, 4]);
        assert_eq!(lateral.stack.layers.iter().map(|layer| layer.outputs).collect::<Vec<_>>(), [6, 12, 6]);
        let values = [vec![0.0; 8], lateral.init(3, 0)].concat();
        let layers = lateral.stack.unpack(&values);
        // Output by output: what is read of the main branch, and of the side one.
        for (index, [main, read, inputs]) in [(1, [6, 3, 6]), (2, [2, 6, 12])] {
            for (output, row) in layers[index].weight.chunks_exact(inputs).enumerate() {
                let bound = 1.0 / (if output < main { read } else { inputs } as f64).sqrt();
                assert!(row.iter().all(|weight| weight.abs() <= bound));
                assert_eq!(
                    row[read..].iter().all(|&weight| weight == 0.0),
                    output < main,
                    "{index} {output}"
                );
                assert!(row[..read].iter().all(|&weight| weight != 0.0));
            }
            let widest = layers[index].weight.iter().fold(0.0, |most: f64, weight| most.max(weight.abs()));
            assert!(widest > 1.0 / (inputs as f64).sqrt(), "the main branch has fewer inputs");
        }
        assert!(layers[0].weight.iter().all(|&weight| weight != 0.0));
    }
}
