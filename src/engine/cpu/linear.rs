//! Twins of `linear.wgsl`, `transpose.wgsl`, `linear_grad_input.wgsl`, `linear_grad_weight.wgsl` and
//! `bias_grad.wgsl`: a linear layer forward and its three gradients.

use super::args::Args;
use super::live::Listed;
use super::matmul::{Finish, Pick, Shape, Start, matmul};
use super::real::Real;
use crate::engine::kernels::{BiasGrad, Linear, LinearGradInput, LinearGradWeight, Transpose};

/// Rows of the tape up to the last one that is worked on.
fn extent(rows: u32, listed: Option<Listed>) -> usize {
    listed.map_or(rows as usize, |listed| listed.last().map_or(0, |last| last + 1))
}

/// Dropout's multipliers, on the rows that are worked on.
#[inline(always)]
fn multiply<T: Real>(to: &mut [T], by: &[T], pitch: usize, rows: usize, listed: Option<Listed>) {
    let multiply = |to: &mut [T], by: &[T]| to.iter_mut().zip(by).for_each(|(to, &m)| *to *= m);
    match listed {
        None => multiply(&mut to[..rows * pitch], by),
        Some(listed) => {
            listed.rows().for_each(|row| multiply(&mut to[row * pitch..][..pitch], &by[row * pitch..]));
        }
    }
}

#[inline(always)]
pub fn linear<T: Real>(p: &Linear, mut args: Args<T>) {
    let (x, weights, multiplier) = (args.reals(), args.reals(), args.reals());
    let (live, y) = (args.words(), args.reals_mut());
    let (inputs, outputs) = (p.inputs_pitch as usize, p.outputs_pitch as usize);
    let listed = Listed::of(live, [p.live_from, p.live_to, p.live_list, p.live_shift]);
    let rows = extent(p.rows, listed);
    let y_at = p.y_row as usize * outputs;
    let y = &mut y[y_at..][..rows * outputs];
    matmul(
        (y, Shape::rows(rows, outputs, outputs)),
        Start::Bias(&weights[p.bias as usize..][..outputs]),
        T::ONE,
        (&x[p.x_row as usize * inputs..], Shape::rows(rows, inputs, inputs)),
        (&weights[p.weight as usize..], Shape::rows(inputs, outputs, outputs)),
        if p.relu != 0 { Finish::Relu } else { Finish::Nothing },
        listed.map_or(Pick::All, Pick::Rows),
    );
    if p.dropout != 0 {
        multiply(y, &multiplier[y_at..], outputs, rows, listed);
    }
}

/// In squares of this many a side, which stay in the nearest cache.
const SQUARE: usize = 16;

#[inline(always)]
pub fn transpose<T: Real>(p: &Transpose, mut args: Args<T>) {
    let (weights, transposed) = (args.reals(), args.reals_mut());
    let (inputs, outputs) = (p.inputs_pitch as usize, p.outputs_pitch as usize);
    let from = &weights[p.weight as usize..][..inputs * outputs];
    let to = &mut transposed[p.weight as usize..][..inputs * outputs];
    for first_input in (0..inputs).step_by(SQUARE) {
        let last_input = (first_input + SQUARE).min(inputs);
        for first_output in (0..outputs).step_by(SQUARE) {
            for output in first_output..(first_output + SQUARE).min(outputs) {
                for input in first_input..last_input {
                    to[output * inputs + input] = from[input * outputs + output];
                }
            }
        }
    }
}

#[inline(always)]
pub fn linear_grad_input<T: Real>(p: &LinearGradInput, mut args: Args<T>) {
    let (dy, transposed, hidden) = (args.reals(), args.reals(), args.reals());
    let (multiplier, live, dx) = (args.reals(), args.words(), args.reals_mut());
    let (inputs, outputs) = (p.inputs_pitch as usize, p.outputs_pitch as usize);
    let listed = Listed::of(live, [p.live_from, p.live_to, p.live_list, p.live_shift]);
    let rows = extent(p.rows, listed);
    let dx = &mut dx[p.dx_row as usize * inputs..][..rows * inputs];
    let at = p.hidden_row as usize * inputs;
    matmul(
        (dx, Shape::rows(rows, inputs, inputs)),
        Start::Zero,
        T::ONE,
        (&dy[p.dy_row as usize * outputs..], Shape::rows(rows, outputs, outputs)),
        (&transposed[p.weight as usize..], Shape::rows(outputs, inputs, inputs)),
        if p.gate != 0 { Finish::Gate(&hidden[at..]) } else { Finish::Nothing },
        listed.map_or(Pick::All, Pick::Rows),
    );
    if p.gate != 0 && p.dropout != 0 {
        multiply(dx, &multiplier[at..], inputs, rows, listed);
    }
}

#[inline(always)]
pub fn linear_grad_weight<T: Real>(p: &LinearGradWeight, mut args: Args<T>) {
    let (x, dy, live, grad) = (args.reals(), args.reals(), args.words(), args.reals_mut());
    let (inputs, outputs) = (p.inputs_pitch as usize, p.outputs_pitch as usize);
    let listed = Listed::of(live, [p.live_from, p.live_to, p.live_list, p.live_shift]);
    let rows = extent(p.rows, listed);
    matmul(
        (&mut grad[p.weight as usize..][..inputs * outputs], Shape::rows(inputs, outputs, outputs)),
        if p.accumulate != 0 { Start::Kept } else { Start::Zero },
        T::ONE / T::count(p.divisor),
        (x, Shape::rows(rows, inputs, inputs).transposed()),
        (dy, Shape::rows(rows, outputs, outputs)),
        Finish::Nothing,
        listed.map_or(Pick::All, Pick::Sum),
    );
}

#[inline(always)]
pub fn bias_grad<T: Real>(p: &BiasGrad, mut args: Args<T>) {
    let (dy, live, grad) = (args.reals(), args.words(), args.reals_mut());
    let listed = Listed::of(live, [p.live_from, p.live_to, p.live_list, p.live_shift]);
    let pitch = p.pitch as usize;
    let grad = &mut grad[p.bias as usize..][..pitch];
    if p.accumulate == 0 {
        grad.fill(T::ZERO);
    }
    let scale = T::ONE / T::count(p.divisor);
    for index in 0..listed.map_or(p.rows as usize, |listed| listed.len()) {
        let row = listed.map_or(index, |listed| listed.at(index));
        for (g, &dy) in grad.iter_mut().zip(&dy[row * pitch..][..pitch]) {
            *g += scale * dy;
        }
    }
}
