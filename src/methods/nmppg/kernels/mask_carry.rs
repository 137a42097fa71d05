//! The gradient of the objective with respect to the relaxed mask, step by step.

use super::{masks, scalars};
use crate::engine::cpu::{Args, Real};
use crate::engine::groups::Groups;
use crate::engine::kernels::{GROUPS, MATH, Part, THROUGH_INPUT, Work, area, kernel, product, through_input};

kernel! {
    /// Carries the mask gradient M one step back through the rollout.
    pub MaskCarry "nmppg/mask_carry" [GROUPS, THROUGH_INPUT, MATH, Part::Words(&scalars::WORDS), masks::PART]
    { rows, step, steps, columns, features, x_pitch, input_pitch, pitch, through }
    (groups: U32 Read, x: F32 Read, grad_input: F32 Read, masks: F32 Read, scalars: F32 Read,
     loss_mask_grad: F32 Read, mask_grad: F32 Write)
    grid |p| area(p.pitch, p.rows);
    // x, the input's gradient, r̃, ∂ℓ/∂m, M twice.
    work |p| Work::of_numbers(
        area(p.pitch, p.rows),
        product(&[p.rows, p.through * (p.columns + p.input_pitch) + 4 * p.pitch]),
    );
    twin mask_carry;
}

#[inline(always)]
fn mask_carry<T: Real>(p: &MaskCarry, mut args: Args<T>) {
    let (groups, x, grad_input, masks) = (args.words(), args.reals(), args.reals(), args.reals());
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
        let chance = &masks[tape_row * 2 * pitch + pitch..][..features];
        let stopping = now[scalars::SURVIVAL] * now[scalars::HALT];
        let per_weight = stopping / now[scalars::WEIGHT];
        if p.through == 0 {
            for ((m, &chance), &from_loss) in m.iter_mut().zip(chance).zip(from_loss) {
                *m = ((T::ONE - chance) * *m + per_weight * from_loss).flush();
            }
            continue;
        }
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
