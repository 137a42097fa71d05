//! A linear layer forward and its three gradients.

use super::{Part, Work, area, kernel, line, product, tiles};
use crate::engine::cpu::matmul::{Finish, Shape, Start, matmul};
use crate::engine::cpu::{Args, Real};
use rayon::prelude::*;

kernel! {
    /// Linear layer forward: y = x·W + b, then ReLU and dropout if asked for.
    pub Linear "linear" [Part::Product]
    { rows, inputs_pitch, outputs_pitch, x_row, y_row, weight, bias, relu, dropout }
    (x: Vec4 Read, weights: Vec4 Read, multiplier: Vec4 Read, y: Vec4 Write)
    grid |p| tiles(p.outputs_pitch, p.rows);
    work |p| Work {
        flops: 2 * product(&[p.rows, p.inputs_pitch, p.outputs_pitch]),
        numbers: product(&[p.rows, p.inputs_pitch + p.outputs_pitch * (1 + p.dropout)])
            + product(&[p.inputs_pitch, p.outputs_pitch]),
    };
    twin linear;
}

#[inline(always)]
fn linear<T: Real>(p: &Linear, mut args: Args<T>) {
    let (x, weights, multiplier) = (args.reals(), args.reals(), args.reals());
    let y = args.reals_mut();
    let (inputs, outputs) = (p.inputs_pitch as usize, p.outputs_pitch as usize);
    let rows = p.rows as usize;
    let y_at = p.y_row as usize * outputs;
    let y = &mut y[y_at..][..rows * outputs];
    let times = (p.dropout != 0).then(|| &multiplier[y_at..]);
    matmul(
        (y, Shape::rows(rows, outputs, outputs)),
        Start::Bias(&weights[p.bias as usize..][..outputs]),
        T::ONE,
        (&x[p.x_row as usize * inputs..], Shape::rows(rows, inputs, inputs)),
        (&weights[p.weight as usize..], Shape::rows(inputs, outputs, outputs)),
        (if p.relu != 0 { Finish::Relu } else { Finish::Nothing }, times),
    );
}

kernel! {
    /// A layer's weight the other way round, for the way back to its input.
    pub Transpose "transpose" []
    { inputs_pitch, outputs_pitch, weight }
    (weights: Vec4 Read, transposed: Vec4 Write)
    grid |p| area(p.outputs_pitch / 4, p.inputs_pitch / 4);
    work |p| {
        let grid = area(p.outputs_pitch / 4, p.inputs_pitch / 4);
        Work::of_numbers(grid, 2 * product(&[p.inputs_pitch, p.outputs_pitch]))
    };
    twin transpose;
}

/// Outputs that are transposed at a time: a cache line of what is read.
const BAND: usize = 16;
/// Numbers that are worth a task.
const ENOUGH: usize = 1 << 16;
/// Pitches are multiples of this.
const SIDE: usize = 4;

/// In squares of four a side, which take a few shuffles each.
#[inline(always)]
fn transpose<T: Real>(p: &Transpose, mut args: Args<T>) {
    let (weights, transposed) = (args.reals(), args.reals_mut());
    let (inputs, outputs) = (p.inputs_pitch as usize, p.outputs_pitch as usize);
    let from = &weights[p.weight as usize..][..inputs * outputs];
    let to = &mut transposed[p.weight as usize..][..inputs * outputs];
    let least = ENOUGH / (BAND * inputs);
    to.par_chunks_mut(BAND * inputs).enumerate().with_min_len(least).for_each(|(band, to)| {
        for (input, rows) in from.chunks_exact(SIDE * outputs).enumerate() {
            for (square, to) in to.chunks_exact_mut(SIDE * inputs).enumerate() {
                let output = band * BAND + square * SIDE;
                let mut lines = [[T::ZERO; SIDE]; SIDE];
                for (line, row) in lines.iter_mut().zip(rows.chunks_exact(outputs)) {
                    line.copy_from_slice(&row[output..][..SIDE]);
                }
                for (i, to) in to.chunks_exact_mut(inputs).enumerate() {
                    to[input * SIDE..][..SIDE].copy_from_slice(&lines.map(|line| line[i]));
                }
            }
        }
    });
}

kernel! {
    /// Linear layer backward to its input: dx = dy·Wᵀ, through the ReLU and dropout before it.
    pub LinearGradInput "linear_grad_input" [Part::Product]
    { rows, inputs_pitch, outputs_pitch, dy_row, dx_row, hidden_row, weight, gate, dropout }
    (dy: Vec4 Read, transposed: Vec4 Read, hidden: Vec4 Read, multiplier: Vec4 Read, dx: Vec4 Write)
    grid |p| tiles(p.inputs_pitch, p.rows);
    work |p| Work {
        flops: 2 * product(&[p.rows, p.inputs_pitch, p.outputs_pitch]),
        numbers: product(&[p.rows, p.outputs_pitch + p.inputs_pitch * (1 + p.gate + p.dropout)])
            + product(&[p.inputs_pitch, p.outputs_pitch]),
    };
    twin linear_grad_input;
}

#[inline(always)]
fn linear_grad_input<T: Real>(p: &LinearGradInput, mut args: Args<T>) {
    let (dy, transposed, hidden) = (args.reals(), args.reals(), args.reals());
    let (multiplier, dx) = (args.reals(), args.reals_mut());
    let (inputs, outputs) = (p.inputs_pitch as usize, p.outputs_pitch as usize);
    let rows = p.rows as usize;
    let dx = &mut dx[p.dx_row as usize * inputs..][..rows * inputs];
    let at = p.hidden_row as usize * inputs;
    let times = (p.gate != 0 && p.dropout != 0).then(|| &multiplier[at..]);
    matmul(
        (dx, Shape::rows(rows, inputs, inputs)),
        Start::Zero,
        T::ONE,
        (&dy[p.dy_row as usize * outputs..], Shape::rows(rows, outputs, outputs)),
        (&transposed[p.weight as usize..], Shape::rows(outputs, inputs, inputs)),
        (if p.gate != 0 { Finish::Gate(&hidden[at..]) } else { Finish::Nothing }, times),
    );
}

kernel! {
    /// Linear layer backward to its weights: dW = xᵀ·dy / divisor.
    pub LinearGradWeight "linear_grad_weight" [Part::Outer]
    { rows, inputs_pitch, outputs_pitch, weight, accumulate, divisor }
    (x: Vec4 Read, dy: Vec4 Read, grad: Vec4 Write)
    grid |p| tiles(p.outputs_pitch, p.inputs_pitch);
    work |p| Work {
        flops: 2 * product(&[p.rows, p.inputs_pitch, p.outputs_pitch]),
        numbers: product(&[p.rows, p.inputs_pitch + p.outputs_pitch])
            + product(&[p.inputs_pitch, p.outputs_pitch]),
    };
    twin linear_grad_weight;
}

#[inline(always)]
fn linear_grad_weight<T: Real>(p: &LinearGradWeight, mut args: Args<T>) {
    let (x, dy, grad) = (args.reals(), args.reals(), args.reals_mut());
    let (inputs, outputs) = (p.inputs_pitch as usize, p.outputs_pitch as usize);
    let rows = p.rows as usize;
    matmul(
        (&mut grad[p.weight as usize..][..inputs * outputs], Shape::rows(inputs, outputs, outputs)),
        if p.accumulate != 0 { Start::Kept } else { Start::Zero },
        T::ONE / T::count(p.divisor),
        (x, Shape::rows(rows, inputs, inputs).transposed()),
        (dy, Shape::rows(rows, outputs, outputs)),
        (Finish::Nothing, None),
    );
}

kernel! {
    /// Linear layer backward to its bias: the column sums of dy / divisor.
    pub BiasGrad "bias_grad" []
    { rows, pitch, bias, accumulate, divisor }
    (dy: Vec4 Read, grad: Vec4 Write)
    grid |p| line(p.pitch / 4);
    work |p| Work { flops: product(&[p.rows, p.pitch]), numbers: product(&[p.rows + 1, p.pitch]) };
    twin bias_grad;
}

#[inline(always)]
fn bias_grad<T: Real>(p: &BiasGrad, mut args: Args<T>) {
    let (dy, grad) = (args.reals(), args.reals_mut());
    let pitch = p.pitch as usize;
    let grad = &mut grad[p.bias as usize..][..pitch];
    if p.accumulate == 0 {
        grad.fill(T::ZERO);
    }
    let scale = T::ONE / T::count(p.divisor);
    for dy in dy.chunks_exact(pitch).take(p.rows as usize) {
        for (g, &dy) in grad.iter_mut().zip(dy) {
            *g += scale * dy;
        }
    }
}

kernel! {
    /// Writes one whole number into a block of a matrix.
    pub FillBlock "fill_block" []
    { at, pitch, rows, columns, value }
    (to: F32 Write)
    grid |p| area(p.columns, p.rows);
    work |p| Work::of_numbers(area(p.columns, p.rows), product(&[p.rows, p.columns]));
    twin fill_block;
}

#[inline(always)]
fn fill_block<T: Real>(p: &FillBlock, mut args: Args<T>) {
    let to = &mut args.reals_mut()[p.at as usize..];
    for row in 0..p.rows as usize {
        to[row * p.pitch as usize..][..p.columns as usize].fill(T::count(p.value));
    }
}

kernel! {
    /// Copies a block of a matrix into another.
    pub CopyBlock "copy_block" []
    { from_at, from_pitch, to_at, to_pitch, rows, columns }
    (values: F32 Read, to: F32 Write)
    grid |p| area(p.columns, p.rows);
    work |p| Work::of_numbers(area(p.columns, p.rows), 2 * product(&[p.rows, p.columns]));
    twin copy_block;
}

#[inline(always)]
fn copy_block<T: Real>(p: &CopyBlock, mut args: Args<T>) {
    let (values, to) = (args.reals(), args.reals_mut());
    for row in 0..p.rows {
        let from = &values[(p.from_at + row * p.from_pitch) as usize..][..p.columns as usize];
        to[(p.to_at + row * p.to_pitch) as usize..][..p.columns as usize].copy_from_slice(from);
    }
}
