//! The first layer under hard masks as a running sum, and its gradient as a suffix sum. The maths is beside the shaders.

use super::{GROUPS, Work, area, kernel, product};
use crate::engine::cpu::{Args, Real};
use crate::engine::groups::Groups;

kernel! {
    /// First layer under hard masks: a running sum of the acquired features' weight rows.
    pub Embed "embed" [GROUPS]
    { rows, first_step, steps, columns, features, hidden_pitch, x_pitch, weight, bias, dropout, tape }
    (groups: U32 Read, x: F32 Read, path: U32 Read, weights: Vec4 Read, multiplier: Vec4 Read,
     sum: Vec4 Write, hidden: Vec4 Write)
    grid |p| area(p.hidden_pitch / 4, p.rows);
    work |p| {
        // Each step adds the rows of one feature: its columns and its mask; the activation, its multiplier; the sum once.
        let width = p.columns.div_ceil(p.features.max(1));
        let numbers = product(&[p.rows, p.steps, p.hidden_pitch]);
        Work {
            flops: 2 * u64::from(width + 1) * numbers,
            numbers: u64::from(width + 2 + p.dropout) * numbers + 2 * product(&[p.rows, p.hidden_pitch]),
        }
    };
    twin embed;
}

kernel! {
    /// Suffix sums over the steps of the first layer's gradient, in place.
    pub EmbedSuffix "embed_suffix" []
    { rows, steps, pitch }
    (grad_hidden: Vec4 Write)
    grid |p| area(p.pitch / 4, p.rows);
    work |p| {
        let numbers = product(&[p.rows, p.steps, p.pitch]);
        Work { flops: numbers, numbers: 2 * numbers }
    };
    twin embed_suffix;
}

kernel! {
    /// First layer's weight gradient from the suffix sums: each acquired row gets its suffix.
    pub EmbedGrad "embed_grad" [GROUPS]
    { rows, steps, columns, features, hidden_pitch, x_pitch, weight, bias, accumulate, divisor }
    (groups: U32 Read, x: F32 Read, acquired_at: U32 Read, suffix: Vec4 Read, grad: Vec4 Write)
    grid |p| area(p.hidden_pitch / 4, p.columns + p.features + 1);
    work |p| {
        let inputs = p.columns + p.features + 1;
        Work {
            flops: 2 * product(&[inputs, p.rows, p.hidden_pitch]),
            numbers: product(&[p.rows, p.steps, p.hidden_pitch]) + product(&[inputs, p.hidden_pitch]),
        }
    };
    twin embed_grad;
}

#[inline(always)]
fn add_scaled<T: Real>(to: &mut [T], scale: T, row: &[T]) {
    for (to, &value) in to.iter_mut().zip(row) {
        *to += scale * value;
    }
}

#[inline(always)]
fn add<T: Real>(to: &mut [T], row: &[T]) {
    for (to, &value) in to.iter_mut().zip(row) {
        *to += value;
    }
}

#[inline(always)]
fn embed<T: Real>(p: &Embed, mut args: Args<T>) {
    let (groups, x, path) = (args.words(), args.reals(), args.words());
    let (weights, multiplier) = (args.reals(), args.reals());
    let (sum, hidden) = (args.reals_mut(), args.reals_mut());
    let groups = Groups::new(groups, p.features, p.columns);
    let (rows, pitch, x_pitch) = (p.rows as usize, p.hidden_pitch as usize, p.x_pitch as usize);
    let weight_row = |i: usize| &weights[p.weight as usize + i * pitch..][..pitch];
    for row in 0..rows {
        let a = &mut sum[row * pitch..][..pitch];
        let x = &x[row * x_pitch..][..x_pitch];
        for t in p.first_step as usize..(p.first_step + p.steps) as usize {
            if t == 0 {
                a.copy_from_slice(&weights[p.bias as usize..][..pitch]);
                for &column in groups.known() {
                    add_scaled(a, x[column as usize], weight_row(column as usize));
                }
            } else {
                let feature = path[(t - 1) * rows + row];
                if feature < p.features {
                    for &column in groups.columns_of(feature as usize) {
                        add_scaled(a, x[column as usize], weight_row(column as usize));
                    }
                    add(a, weight_row((p.columns + feature) as usize));
                }
            }
            let at = if p.tape != 0 { t * rows + row } else { row } * pitch;
            let h = &mut hidden[at..][..pitch];
            if p.dropout == 0 {
                h.iter_mut().zip(a.iter()).for_each(|(h, &a)| *h = a.larger(T::ZERO));
            } else {
                for ((h, &a), &m) in h.iter_mut().zip(a.iter()).zip(&multiplier[at..][..pitch]) {
                    *h = a.larger(T::ZERO) * m;
                }
            }
        }
    }
}

#[inline(always)]
fn embed_suffix<T: Real>(p: &EmbedSuffix, mut args: Args<T>) {
    let grad_hidden = args.reals_mut();
    let block = p.rows as usize * p.pitch as usize;
    for t in (1..p.steps as usize).rev() {
        let (earlier, later) = grad_hidden.split_at_mut(t * block);
        add(&mut earlier[(t - 1) * block..], &later[..block]);
    }
}

#[inline(always)]
fn embed_grad<T: Real>(p: &EmbedGrad, mut args: Args<T>) {
    let (groups, x, acquired_at) = (args.words(), args.reals(), args.words());
    let (suffix, grad) = (args.reals(), args.reals_mut());
    let groups = Groups::new(groups, p.features, p.columns);
    let (rows, pitch) = (p.rows as usize, p.hidden_pitch as usize);
    let (weight, bias) = (p.weight as usize, p.bias as usize);
    let inputs = (p.columns + p.features) as usize;
    if p.accumulate == 0 {
        grad[weight..][..inputs * pitch].fill(T::ZERO);
        grad[bias..][..pitch].fill(T::ZERO);
    }
    let scale = T::ONE / T::count(p.divisor);
    for row in 0..rows {
        let all = &suffix[row * pitch..][..pitch];
        add_scaled(&mut grad[bias..][..pitch], scale, all);
        let x = &x[row * p.x_pitch as usize..][..p.x_pitch as usize];
        for &column in groups.known() {
            let to = weight + column as usize * pitch;
            add_scaled(&mut grad[to..][..pitch], scale * x[column as usize], all);
        }
        for (feature, &step) in
            acquired_at[row * p.features as usize..][..p.features as usize].iter().enumerate()
        {
            if step >= p.steps - 1 {
                continue;
            }
            let later = &suffix[((step as usize + 1) * rows + row) * pitch..][..pitch];
            for &column in groups.columns_of(feature) {
                let to = weight + column as usize * pitch;
                add_scaled(&mut grad[to..][..pitch], scale * x[column as usize], later);
            }
            add_scaled(&mut grad[weight + (p.columns as usize + feature) * pitch..][..pitch], scale, later);
        }
    }
}
