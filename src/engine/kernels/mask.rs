//! From masks to the networks' dense input, and the gradient's way back.

use super::words::{MARKS, UNAVAILABLE};
use super::{GROUPS, Part, THROUGH_INPUT, Work, area, kernel, product};
use crate::engine::cpu::{Args, Real};
use crate::engine::groups::Groups;

kernel! {
    /// Writes the networks' dense input (x ⊙ m, m).
    pub Expand "expand" [GROUPS]
    { rows, step, columns, features, x_pitch, mask_stride, input_pitch, nothing_seen }
    (groups: U32 Read, x: F32 Read, masks: F32 Read, input: F32 Write)
    grid |p| area(p.input_pitch, p.rows);
    work |p| Work::of_numbers(
        area(p.input_pitch, p.rows),
        product(&[p.rows, p.columns + p.features + p.input_pitch]),
    );
    twin expand;
}

kernel! {
    /// The gradient of a loss with respect to the mask, from the gradient of the first layer's input.
    pub MaskGrad "mask_grad" [GROUPS, THROUGH_INPUT]
    { rows, batch, columns, features, x_pitch, input_pitch, pitch }
    (groups: U32 Read, x: F32 Read, grad_input: F32 Read, grad_mask: F32 Write)
    grid |p| area(p.pitch, p.rows);
    work |p| Work::of_numbers(
        area(p.pitch, p.rows),
        product(&[p.rows, p.columns + p.input_pitch + p.pitch]),
    );
    twin mask_grad;
}

#[inline(always)]
fn expand<T: Real>(p: &Expand, mut args: Args<T>) {
    let (groups, x, masks, input) = (args.words(), args.reals(), args.reals(), args.reals_mut());
    let groups = Groups::new(groups, p.features, p.columns);
    let (rows, columns, features) = (p.rows as usize, p.columns as usize, p.features as usize);
    let pitch = p.input_pitch as usize;
    for row in 0..rows {
        let tape_row = p.step as usize * rows + row;
        let to = &mut input[tape_row * pitch..][..pitch];
        to.fill(T::ZERO);
        let x = &x[row * p.x_pitch as usize..][..columns];
        for &column in groups.known() {
            to[column as usize] = x[column as usize];
        }
        if p.nothing_seen != 0 {
            continue;
        }
        let mask = &masks[tape_row * p.mask_stride as usize..][..features];
        for ((to, &x), &feature) in to.iter_mut().zip(x).zip(groups.features()) {
            // What is known from the start belongs to no feature and has no mask.
            if let Some(&mask) = mask.get(feature as usize) {
                *to = x * mask;
            }
        }
        to[columns..][..features].copy_from_slice(mask);
    }
}

/// ∂/∂m_j = Σ_{columns i of j} din_i x_i + din_{columns + j}.
#[inline(always)]
pub(crate) fn through_input<T: Real>(
    groups: &Groups,
    columns: usize,
    feature: usize,
    grad_input: &[T],
    x: &[T],
) -> T {
    groups.columns_of(feature).iter().fold(grad_input[columns + feature], |total, &column| {
        total + grad_input[column as usize] * x[column as usize]
    })
}

#[inline(always)]
fn mask_grad<T: Real>(p: &MaskGrad, mut args: Args<T>) {
    let (groups, x, grad_input, grad_mask) = (args.words(), args.reals(), args.reals(), args.reals_mut());
    let groups = Groups::new(groups, p.features, p.columns);
    let (columns, features, pitch) = (p.columns as usize, p.features as usize, p.pitch as usize);
    let plain = groups.are_columns();
    for row in 0..p.rows as usize {
        let din = &grad_input[row * p.input_pitch as usize..][..columns + features];
        let x = &x[(row % p.batch as usize) * p.x_pitch as usize..][..columns];
        let to = &mut grad_mask[row * pitch..][..features];
        if plain {
            let (by_column, by_mask) = din.split_at(columns);
            for (((to, &by_mask), &by_column), &x) in to.iter_mut().zip(by_mask).zip(by_column).zip(x) {
                *to = by_mask + by_column * x;
            }
        } else {
            for (feature, to) in to.iter_mut().enumerate() {
                *to = through_input(&groups, columns, feature, din, x);
            }
        }
    }
}

kernel! {
    /// The masks of a step, from when each feature was acquired.
    pub SeenMask "seen_mask" [Part::Words(&MARKS)]
    { rows, step, features, mask_stride, nothing_seen }
    (acquired_at: U32 Read, masks: F32 Write)
    grid |p| area(p.mask_stride, p.rows);
    work |p| Work::of_numbers(area(p.mask_stride, p.rows), 2 * product(&[p.rows, p.features]));
    twin seen_mask;
}

#[inline(always)]
fn seen_mask<T: Real>(p: &SeenMask, mut args: Args<T>) {
    let (acquired_at, masks) = (args.words(), args.reals_mut());
    let (features, stride) = (p.features as usize, p.mask_stride as usize);
    let masks = masks[(p.step * p.rows) as usize * stride..].chunks_exact_mut(stride);
    for (acquired_at, mask) in acquired_at.chunks_exact(features).zip(masks).take(p.rows as usize) {
        mask.fill(T::ZERO);
        for (mask, &at) in mask.iter_mut().zip(acquired_at) {
            *mask = if p.nothing_seen == 0 && at < UNAVAILABLE { T::ONE } else { T::ZERO };
        }
    }
}
