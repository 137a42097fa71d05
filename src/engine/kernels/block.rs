//! Block-diagonal linear layers: many small ones of equal shape side by side, each with rows of its own. Forward, with
//! the gradients beside it, and what the first of them reads.

use super::{GROUPS, Work, area, kernel, product};
use crate::engine::cpu::matmul::{Finish, Shape, Start, matmul};
use crate::engine::cpu::{Args, Real};
use crate::engine::groups::Groups;

kernel! {
    /// Block-diagonal linear layer forward, with ReLU if asked for.
    pub BlockLinear "block_linear" []
    { rows, blocks, inputs_pitch, outputs_pitch, weight, bias, relu }
    (x: F32 Read, weights: F32 Read, y: F32 Write)
    grid |p| area(p.outputs_pitch, p.blocks * p.rows);
    work |p| Work {
        flops: 2 * product(&[p.blocks, p.rows, p.inputs_pitch, p.outputs_pitch]),
        numbers: product(&[p.blocks, p.rows, p.inputs_pitch + p.outputs_pitch])
            + product(&[p.blocks, p.inputs_pitch, p.outputs_pitch]),
    };
    twin block_linear;
}

#[inline(always)]
fn block_linear<T: Real>(p: &BlockLinear, mut args: Args<T>) {
    let (x, weights, y) = (args.reals(), args.reals(), args.reals_mut());
    let (rows, inputs, outputs) = (p.rows as usize, p.inputs_pitch as usize, p.outputs_pitch as usize);
    for block in 0..p.blocks as usize {
        matmul(
            (&mut y[block * rows * outputs..][..rows * outputs], Shape::rows(rows, outputs, outputs)),
            Start::Bias(&weights[p.bias as usize + block * outputs..][..outputs]),
            T::ONE,
            (&x[block * rows * inputs..], Shape::rows(rows, inputs, inputs)),
            (&weights[p.weight as usize + block * inputs * outputs..], Shape::rows(inputs, outputs, outputs)),
            (if p.relu != 0 { Finish::Relu } else { Finish::Nothing }, None),
        );
    }
}

kernel! {
    /// Block-diagonal linear layer backward to its input.
    pub BlockGradInput "block_grad_input" []
    { rows, blocks, inputs_pitch, outputs_pitch, weight }
    (dy: F32 Read, weights: F32 Read, dx: F32 Write)
    grid |p| area(p.inputs_pitch, p.blocks * p.rows);
    work |p| Work {
        flops: 2 * product(&[p.blocks, p.rows, p.inputs_pitch, p.outputs_pitch]),
        numbers: product(&[p.blocks, p.rows, p.inputs_pitch + p.outputs_pitch])
            + product(&[p.blocks, p.inputs_pitch, p.outputs_pitch]),
    };
    twin block_grad_input;
}

/// Numbers of a product that are added up side by side: pitches are multiples of it.
const ABREAST: usize = 4;

#[inline(always)]
fn block_grad_input<T: Real>(p: &BlockGradInput, mut args: Args<T>) {
    let (dy, weights, dx) = (args.reals(), args.reals(), args.reals_mut());
    let (rows, inputs, outputs) = (p.rows as usize, p.inputs_pitch as usize, p.outputs_pitch as usize);
    for block in 0..p.blocks as usize {
        let weights = &weights[p.weight as usize + block * inputs * outputs..][..inputs * outputs];
        let dy = &dy[block * rows * outputs..][..rows * outputs];
        let dx = &mut dx[block * rows * inputs..][..rows * inputs];
        for (dx, dy) in dx.chunks_exact_mut(inputs).zip(dy.chunks_exact(outputs)) {
            for (dx, weights) in dx.iter_mut().zip(weights.chunks_exact(outputs)) {
                let mut sums = [T::ZERO; ABREAST];
                for (dy, weights) in dy.chunks_exact(ABREAST).zip(weights.chunks_exact(ABREAST)) {
                    for i in 0..ABREAST {
                        sums[i] += dy[i] * weights[i];
                    }
                }
                *dx = sums.into_iter().sum();
            }
        }
    }
}

kernel! {
    /// Block-diagonal linear layer backward to its weights and biases.
    pub BlockGradWeight "block_grad_weight" []
    { rows, blocks, inputs_pitch, outputs_pitch, weight, bias, divisor }
    (x: F32 Read, dy: F32 Read, grad: F32 Write)
    grid |p| area(p.outputs_pitch, p.blocks * (p.inputs_pitch + 1));
    work |p| Work {
        flops: 2 * product(&[p.blocks, p.rows, p.inputs_pitch, p.outputs_pitch]),
        numbers: product(&[p.blocks, p.rows, p.inputs_pitch + p.outputs_pitch])
            + product(&[p.blocks, p.inputs_pitch, p.outputs_pitch]),
    };
    twin block_grad_weight;
}

/// Row after row, as the shader: of units that hardly differ from row to row, a norm behind them makes gradients that are
/// large and cancel out, so that any other order would leave something else over.
#[inline(always)]
fn block_grad_weight<T: Real>(p: &BlockGradWeight, mut args: Args<T>) {
    let (x, dy, grad) = (args.reals(), args.reals(), args.reals_mut());
    let (rows, inputs, outputs) = (p.rows as usize, p.inputs_pitch as usize, p.outputs_pitch as usize);
    let divisor = T::count(p.divisor);
    for block in 0..p.blocks as usize {
        let (x, dy) = (&x[block * rows * inputs..], &dy[block * rows * outputs..]);
        let weight_at = p.weight as usize + block * inputs * outputs;
        grad[weight_at..][..inputs * outputs].fill(T::ZERO);
        grad[p.bias as usize + block * outputs..][..outputs].fill(T::ZERO);
        for (x, dy) in x.chunks_exact(inputs).zip(dy.chunks_exact(outputs)).take(rows) {
            for (sums, &x) in grad[weight_at..].chunks_exact_mut(outputs).zip(x) {
                sums.iter_mut().zip(dy).for_each(|(sum, &dy)| *sum += x * dy);
            }
            let sums = &mut grad[p.bias as usize + block * outputs..][..outputs];
            sums.iter_mut().zip(dy).for_each(|(sum, &dy)| *sum += dy);
        }
        grad[weight_at..][..inputs * outputs].iter_mut().for_each(|sum| *sum /= divisor);
        grad[p.bias as usize + block * outputs..][..outputs].iter_mut().for_each(|sum| *sum /= divisor);
    }
}

kernel! {
    /// The inputs of a block-diagonal layer: of each feature its mask, and its columns under it.
    pub BlockInputs "block_inputs" [GROUPS]
    { rows, columns, features, blocks, x_pitch, mask_stride, pitch, given }
    (groups: U32 Read, x: F32 Read, masks: F32 Read, input: F32 Write)
    grid |p| area(p.pitch, p.blocks * (p.rows + 1 - p.given));
    work |p| Work::of_numbers(
        area(p.pitch, p.blocks * (p.rows + 1 - p.given)),
        product(&[p.rows + 1, p.blocks, p.pitch]),
    );
    twin block_inputs;
}

#[inline(always)]
fn block_inputs<T: Real>(p: &BlockInputs, mut args: Args<T>) {
    let (groups, x, masks, input) = (args.words(), args.reals(), args.reals(), args.reals_mut());
    let groups = Groups::new(groups, p.features, p.columns);
    let (rows, pitch, features) = (p.rows as usize, p.pitch as usize, p.features as usize);
    let all = rows + 1 - p.given as usize;
    for (at, to) in input.chunks_exact_mut(pitch).take(p.blocks as usize * all).enumerate() {
        let (block, row) = (at / all, at % all);
        to.fill(T::ZERO);
        if row == rows {
            continue;
        }
        let (columns, mask) = if block == features {
            (groups.known(), T::ONE)
        } else if p.given != 0 {
            (groups.columns_of(block), masks[row * p.mask_stride as usize + block])
        } else {
            (groups.columns_of(block), T::ONE)
        };
        let x = &x[row * p.x_pitch as usize..][..p.columns as usize];
        to[0] = mask;
        for (to, &column) in to[1..].iter_mut().zip(columns) {
            *to = mask * x[column as usize];
        }
    }
}
