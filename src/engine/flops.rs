//! About how much work a kernel call is. Budgets need no more than the right order of magnitude: what a
//! device makes of it is learned (`budget.rs`).

use super::kernels::{
    Adam, Average, BiasGrad, Embed, EmbedGrad, EmbedSuffix, KernelId, Linear, LinearGradInput,
    LinearGradWeight, Noise, Params,
};

/// Threads of a workgroup: 64 in nearly every kernel.
const WORKGROUP: u64 = 64;
/// Operations of a thread of a kernel that is not counted below.
const OF_A_THREAD: u64 = 16;
/// Operations of a Gumbel number: its bits and two logarithms.
const OF_A_GUMBEL: u64 = 64;

/// Floating-point operations of a call, estimated from its shape.
pub(super) fn estimate<P: Params>(params: &P) -> u64 {
    let words = params.words();
    let n = |values: &[u32]| values.iter().map(|&value| u64::from(value)).product::<u64>();
    match P::ID {
        KernelId::Linear => {
            let p = Linear::from_words(&words);
            2 * n(&[p.rows, p.inputs_pitch, p.outputs_pitch])
        }
        KernelId::LinearGradInput => {
            let p = LinearGradInput::from_words(&words);
            2 * n(&[p.rows, p.inputs_pitch, p.outputs_pitch])
        }
        KernelId::LinearGradWeight => {
            let p = LinearGradWeight::from_words(&words);
            2 * n(&[p.rows, p.inputs_pitch, p.outputs_pitch])
        }
        KernelId::BiasGrad => {
            let p = BiasGrad::from_words(&words);
            n(&[p.rows, p.pitch])
        }
        KernelId::Embed => {
            // Each step adds the rows of one feature: its columns and its mask.
            let p = Embed::from_words(&words);
            let width = u64::from(p.columns.div_ceil(p.features.max(1))) + 1;
            2 * width * n(&[p.rows, p.steps, p.hidden_pitch])
        }
        KernelId::EmbedSuffix => {
            let p = EmbedSuffix::from_words(&words);
            n(&[p.rows, p.steps, p.pitch])
        }
        KernelId::EmbedGrad => {
            let p = EmbedGrad::from_words(&words);
            2 * u64::from(p.columns + p.features + 1) * n(&[p.rows, p.hidden_pitch])
        }
        KernelId::Noise => {
            let p = Noise::from_words(&words);
            OF_A_GUMBEL * n(&[p.rows, p.steps, p.pitch])
        }
        KernelId::Adam => 16 * n(&[Adam::from_words(&words).len]),
        KernelId::Average => 3 * n(&[Average::from_words(&words).len]),
        _ => OF_A_THREAD * WORKGROUP * n(&params.grid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kernels::Greedy;

    #[test]
    fn work_grows_with_the_shape() {
        let linear = |rows| Linear {
            rows,
            inputs_pitch: 16,
            outputs_pitch: 8,
            x_row: 0,
            y_row: 0,
            weight: 0,
            bias: 0,
            relu: 0,
            dropout: 0,
        };
        assert_eq!(estimate(&linear(10)), 2 * 10 * 16 * 8);
        assert_eq!(estimate(&linear(30)), 3 * estimate(&linear(10)));
        let greedy = |rows| Greedy { rows, step: 0, features: 3, logit_pitch: 4 };
        assert!(estimate(&greedy(8)) > estimate(&greedy(1)) && estimate(&greedy(1)) > 0);
    }
}
