//! Twins of `expand.wgsl`, `mask_grad.wgsl` and `mask_carry.wgsl`: from masks to inputs, and the
//! gradient's way back.

use super::args::Args;
use super::real::Real;
use crate::engine::groups::Groups;
use crate::engine::kernels::{Expand, MaskCarry, MaskGrad};
use crate::engine::state::scalars;

#[inline(always)]
pub fn expand<T: Real>(p: &Expand, mut args: Args<T>) {
    let (groups, x, relax, input) = (args.words(), args.reals(), args.reals(), args.reals_mut());
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
        let mask = &relax[tape_row * 2 * p.relax_pitch as usize..][..features];
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
fn through_input<T: Real>(groups: &Groups, columns: usize, feature: usize, grad_input: &[T], x: &[T]) -> T {
    groups.columns_of(feature).iter().fold(grad_input[columns + feature], |total, &column| {
        total + grad_input[column as usize] * x[column as usize]
    })
}

#[inline(always)]
pub fn mask_grad<T: Real>(p: &MaskGrad, mut args: Args<T>) {
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

#[inline(always)]
pub fn mask_carry<T: Real>(p: &MaskCarry, mut args: Args<T>) {
    let (groups, x, grad_input, relax) = (args.words(), args.reals(), args.reals(), args.reals());
    let (tape, loss_mask_grad, mask_grad) = (args.reals(), args.reals(), args.reals_mut());
    let groups = Groups::new(groups, p.features, p.columns);
    let (rows, columns, features) = (p.rows as usize, p.columns as usize, p.features as usize);
    let (pitch, plain) = (p.pitch as usize, groups.are_columns());
    for row in 0..rows {
        let tape_row = p.step as usize * rows + row;
        let now = &tape[tape_row * scalars::LEN..][..scalars::LEN];
        let from_loss = &loss_mask_grad[tape_row * pitch..][..features];
        let m = &mut mask_grad[row * pitch..][..features];
        if p.step == p.steps {
            let last = now[scalars::SURVIVAL] / now[scalars::WEIGHT];
            for (m, &from_loss) in m.iter_mut().zip(from_loss) {
                *m = last * from_loss;
            }
            continue;
        }
        let din = &grad_input[row * p.input_pitch as usize..][..columns + features];
        let x = &x[row * p.x_pitch as usize..][..columns];
        let chance = &relax[tape_row * 2 * pitch + pitch..][..features];
        let stopping = now[scalars::SURVIVAL] * now[scalars::HALT];
        let per_weight = stopping / now[scalars::WEIGHT];
        if plain {
            let (by_column, by_mask) = (&din[..features], &din[columns..][..features]);
            let (chance, from_loss, x) = (&chance[..features], &from_loss[..features], &x[..features]);
            for feature in 0..features {
                let input = by_mask[feature] + by_column[feature] * x[feature];
                let carried =
                    (T::ONE - chance[feature]) * m[feature] + per_weight * from_loss[feature] + input;
                m[feature] = carried.flush();
            }
            continue;
        }
        for (feature, m) in m.iter_mut().enumerate() {
            let carried = (T::ONE - chance[feature]) * *m
                + per_weight * from_loss[feature]
                + through_input(&groups, columns, feature, din, x);
            *m = carried.flush();
        }
    }
}
