//! Twin of `loss.wgsl`.

use super::args::Args;
use super::real::Real;
use crate::engine::kernels::Loss;
use crate::engine::state::{NO_LABEL, losses, scalars};

#[inline(always)]
pub fn loss<T: Real>(p: &Loss, mut args: Args<T>) {
    let (logits, y, costs, out) = (args.reals_mut(), args.words(), args.reals(), args.reals_mut());
    let tape = args.reals();
    let (classes, pitch) = (p.classes as usize, p.pitch as usize);
    for row in 0..p.rows as usize {
        let label = y[row % p.batch as usize];
        let logits = &mut logits[row * pitch..][..classes];
        let (mut top, mut guess) = (logits[0], 0);
        for (class, &logit) in logits.iter().enumerate() {
            if logit > top {
                (top, guess) = (logit, class as u32);
            }
        }
        let (mut weight, mut loss) = (T::ZERO, T::ZERO);
        let label_logit = logits.get(label as usize).copied();
        let mut mass = T::ZERO;
        for logit in logits.iter_mut() {
            *logit = (*logit - top).exp_down();
            mass += *logit;
        }
        if label != NO_LABEL
            && let Some(logit) = label_logit
        {
            weight = costs[(p.weights + label) as usize];
            loss = weight * (mass.ln() + top - logit);
        }
        if p.weighted != 0 {
            weight *= tape[row * scalars::LEN + scalars::WEIGHT];
        }
        for (class, logit) in logits.iter_mut().enumerate() {
            let hit = if class as u32 == label { T::ONE } else { T::ZERO };
            *logit = weight * (*logit / mass - hit);
        }
        out[row * losses::LEN + losses::LOSS] = loss;
        out[row * losses::LEN + losses::GUESS] = T::count(guess);
    }
}
