//! Batch norm over all rows of a batch, forward and backward, and folded into a layer's weights for evaluation. Rows lie
//! in blocks, each with units of its own; of a plain network there is one block.

use super::{Part, Work, kernel, line, product};
use crate::engine::cpu::{Args, Real};

/// What is added to a variance before anything is divided by its root.
pub const EPSILON: f64 = 1e-5;
/// The newest batch's share of the running moments.
pub const SHARE: f64 = 0.1;

/// Both for shaders, which have no words that are not whole: in text.
const CONSTANTS: Part = Part::Text("const NORM_EPSILON: f32 = 1e-5;\nconst NORM_SHARE: f32 = 0.1;\n");

kernel! {
    /// A batch's mean and deviation of each unit, and the running ones that evaluations use.
    pub Moments "moments" [CONSTANTS]
    { rows, blocks, pitch, norm }
    (x: F32 Read, values: F32 Write, moments: F32 Write)
    grid |p| line(p.blocks * p.pitch);
    work |p| {
        let numbers = product(&[p.rows, p.blocks, p.pitch]);
        Work { flops: 4 * numbers, numbers: 2 * numbers }
    };
    twin moments;
}

#[inline(always)]
fn moments<T: Real>(p: &Moments, mut args: Args<T>) {
    let (x, values, moments) = (args.reals(), args.reals_mut(), args.reals_mut());
    let (rows, pitch, units) = (p.rows as usize, p.pitch as usize, (p.blocks * p.pitch) as usize);
    let (means, inverses) = moments[..2 * units].split_at_mut(units);
    let running = &mut values[p.norm as usize + 2 * units..][..2 * units];
    let (running_means, running_variances) = running.split_at_mut(units);
    means.fill(T::ZERO);
    inverses.fill(T::ZERO);
    for (block, x) in x.chunks_exact(rows * pitch).take(p.blocks as usize).enumerate() {
        let at = block * pitch..(block + 1) * pitch;
        let (means, squares) = (&mut means[at.clone()], &mut inverses[at]);
        for row in x.chunks_exact(pitch) {
            means.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
        }
        means.iter_mut().for_each(|mean| *mean /= T::count(p.rows));
        for row in x.chunks_exact(pitch) {
            for ((square, &x), &mean) in squares.iter_mut().zip(row).zip(means.iter()) {
                let apart = x - mean;
                *square += apart * apart;
            }
        }
    }
    let share = T::of(SHARE);
    for (unit, (inverse, &mean)) in inverses.iter_mut().zip(means.iter()).enumerate() {
        let square = *inverse;
        *inverse = T::ONE / (square / T::count(p.rows) + T::of(EPSILON)).sqrt();
        running_means[unit] += share * (mean - running_means[unit]);
        let unbiased = square / T::count(p.rows.max(2) - 1);
        running_variances[unit] += share * (unbiased - running_variances[unit]);
    }
}

kernel! {
    /// Batch norm forward, by a batch's moments.
    pub Normalize "normalize" []
    { rows, blocks, pitch, norm }
    (x: F32 Read, values: F32 Read, moments: F32 Read, y: F32 Write)
    grid |p| line(p.blocks * p.pitch * p.rows);
    work |p| {
        let numbers = product(&[p.rows, p.blocks, p.pitch]);
        Work { flops: 4 * numbers, numbers: 2 * numbers }
    };
    twin normalize;
}

#[inline(always)]
fn normalize<T: Real>(p: &Normalize, mut args: Args<T>) {
    let (x, values, moments, y) = (args.reals(), args.reals(), args.reals(), args.reals_mut());
    let (rows, pitch, units) = (p.rows as usize, p.pitch as usize, (p.blocks * p.pitch) as usize);
    let norm = &values[p.norm as usize..][..2 * units];
    let all = x.chunks_exact(rows * pitch).zip(y.chunks_exact_mut(rows * pitch));
    for (block, (x, y)) in all.take(p.blocks as usize).enumerate() {
        let at = block * pitch;
        let (means, inverses) = (&moments[at..][..pitch], &moments[units + at..][..pitch]);
        let (scales, shifts) = (&norm[at..][..pitch], &norm[units + at..][..pitch]);
        for (x, y) in x.chunks_exact(pitch).zip(y.chunks_exact_mut(pitch)) {
            for i in 0..pitch {
                y[i] = scales[i] * ((x[i] - means[i]) * inverses[i]) + shifts[i];
            }
        }
    }
}

kernel! {
    /// Batch norm backward to its scale and shift.
    pub NormGrad "norm_grad" []
    { rows, blocks, pitch, norm, divisor }
    (dy: F32 Read, x: F32 Read, moments: F32 Read, grad: F32 Write, sums: F32 Write)
    grid |p| line(p.blocks * p.pitch);
    work |p| {
        let numbers = product(&[p.rows, p.blocks, p.pitch]);
        Work { flops: 5 * numbers, numbers: 2 * numbers }
    };
    twin norm_grad;
}

#[inline(always)]
fn norm_grad<T: Real>(p: &NormGrad, mut args: Args<T>) {
    let (dy, x, moments) = (args.reals(), args.reals(), args.reals());
    let (grad, sums) = (args.reals_mut(), args.reals_mut());
    let (rows, pitch, units) = (p.rows as usize, p.pitch as usize, (p.blocks * p.pitch) as usize);
    let (plain, along) = sums[..2 * units].split_at_mut(units);
    plain.fill(T::ZERO);
    along.fill(T::ZERO);
    let all = x.chunks_exact(rows * pitch).zip(dy.chunks_exact(rows * pitch));
    for (block, (x, dy)) in all.take(p.blocks as usize).enumerate() {
        let at = block * pitch;
        let (means, inverses) = (&moments[at..][..pitch], &moments[units + at..][..pitch]);
        let (plain, along) = (&mut plain[at..][..pitch], &mut along[at..][..pitch]);
        for (x, dy) in x.chunks_exact(pitch).zip(dy.chunks_exact(pitch)) {
            for i in 0..pitch {
                plain[i] += dy[i];
                along[i] += dy[i] * ((x[i] - means[i]) * inverses[i]);
            }
        }
    }
    let grad = &mut grad[p.norm as usize..][..2 * units];
    let divisor = T::count(p.divisor);
    for (to, &sum) in grad.iter_mut().zip(along.iter().chain(plain.iter())) {
        *to = sum / divisor;
    }
}

kernel! {
    /// Batch norm backward to its input, and through the ReLU before it.
    pub NormGradInput "norm_grad_input" []
    { rows, blocks, pitch, norm, gate }
    (dy: F32 Write, x: F32 Read, values: F32 Read, moments: F32 Read, sums: F32 Read)
    grid |p| line(p.blocks * p.pitch * p.rows);
    work |p| {
        let numbers = product(&[p.rows, p.blocks, p.pitch]);
        Work { flops: 8 * numbers, numbers: 3 * numbers }
    };
    twin norm_grad_input;
}

#[inline(always)]
fn norm_grad_input<T: Real>(p: &NormGradInput, mut args: Args<T>) {
    let (dy, x, values) = (args.reals_mut(), args.reals(), args.reals());
    let (moments, sums) = (args.reals(), args.reals());
    let (rows, pitch, units) = (p.rows as usize, p.pitch as usize, (p.blocks * p.pitch) as usize);
    let all = x.chunks_exact(rows * pitch).zip(dy.chunks_exact_mut(rows * pitch));
    let share = T::ONE / T::count(p.rows);
    for (block, (x, dy)) in all.take(p.blocks as usize).enumerate() {
        let at = block * pitch;
        let (means, inverses) = (&moments[at..][..pitch], &moments[units + at..][..pitch]);
        let (plain, along) = (&sums[at..][..pitch], &sums[units + at..][..pitch]);
        let scales = &values[p.norm as usize + at..][..pitch];
        for (x, dy) in x.chunks_exact(pitch).zip(dy.chunks_exact_mut(pitch)) {
            for i in 0..pitch {
                let apart = (x[i] - means[i]) * inverses[i];
                let rest = dy[i] - (plain[i] + apart * along[i]) * share;
                let open = (p.gate == 0) | (x[i] > T::ZERO);
                dy[i] = if open { scales[i] * inverses[i] * rest } else { T::ZERO };
            }
        }
    }
}

kernel! {
    /// A layer with the batch norms before and behind it, by their running moments, as one linear layer.
    pub Fold "fold" [CONSTANTS]
    { blocks, inputs_pitch, outputs_pitch, weight, bias, before, behind }
    (values: F32 Read, folded: F32 Write)
    grid |p| line(p.blocks * p.outputs_pitch);
    work |p| {
        let numbers = product(&[p.blocks, p.inputs_pitch, p.outputs_pitch]);
        Work { flops: 4 * numbers, numbers: 2 * numbers }
    };
    twin fold;
}

/// A norm's factor and constant of a unit, by the running moments; 1 and 0 where there is none.
#[inline(always)]
fn factors<T: Real>(values: &[T], norm: u32, units: usize, unit: usize) -> (T, T) {
    if norm == 0 {
        return (T::ONE, T::ZERO);
    }
    let at = norm as usize - 1 + unit;
    let factor = values[at] / (values[at + 3 * units] + T::of(EPSILON)).sqrt();
    (factor, values[at + units] - values[at + 2 * units] * factor)
}

#[inline(always)]
fn fold<T: Real>(p: &Fold, mut args: Args<T>) {
    let (values, folded) = (args.reals(), args.reals_mut());
    fold_layer(p, values, folded);
}

/// The same on the host, for a model: `folded` has the layer's numbers where `values` has them.
#[inline(always)]
pub fn fold_layer<T: Real>(p: &Fold, values: &[T], folded: &mut [T]) {
    let (inputs, outputs) = (p.inputs_pitch as usize, p.outputs_pitch as usize);
    let blocks = p.blocks as usize;
    for block in 0..blocks {
        let bias_at = p.bias as usize + block * outputs;
        folded[bias_at..][..outputs].copy_from_slice(&values[bias_at..][..outputs]);
        for input in block * inputs..(block + 1) * inputs {
            let (factor, constant) = factors(values, p.before, blocks * inputs, input);
            let at = p.weight as usize + input * outputs;
            for output in 0..outputs {
                let weight = values[at + output];
                folded[bias_at + output] += constant * weight;
                folded[at + output] = factor * weight;
            }
        }
        for output in 0..outputs {
            let (factor, constant) = factors(values, p.behind, blocks * outputs, block * outputs + output);
            folded[bias_at + output] = folded[bias_at + output] * factor + constant;
            for input in block * inputs..(block + 1) * inputs {
                folded[p.weight as usize + input * outputs + output] *= factor;
            }
        }
    }
}
