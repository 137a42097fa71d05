//! About how much work a kernel call is: arithmetic and memory. Budgets need no more than the right order of
//! magnitude, as what a device makes of it is learned (`budget.rs`); docs/gpu.md reckons with both.

use super::kernels::{
    Adam, Average, BiasGrad, Blur, Dropout, Embed, EmbedGrad, EmbedSuffix, Expand, Gather, Greedy, KernelId,
    Linear, LinearGradInput, LinearGradWeight, Loss, MaskCarry, MaskGrad, Noise, Outcome, Params, Select,
    SelectGrad, Transpose,
};
use super::state::{losses, scalars};

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

/// Bytes that a call has to read and write at least, each number of its operands once.
pub(super) fn traffic<P: Params>(params: &P) -> u64 {
    let words = params.words();
    let n = |values: &[u32]| values.iter().map(|&value| u64::from(value)).product::<u64>();
    let row_scalars = (scalars::LEN + losses::LEN) as u32;
    let numbers = match P::ID {
        KernelId::Linear => {
            let p = Linear::from_words(&words);
            let wide = p.inputs_pitch + p.outputs_pitch * (1 + p.dropout);
            n(&[p.rows, wide]) + n(&[p.inputs_pitch, p.outputs_pitch])
        }
        KernelId::LinearGradInput => {
            let p = LinearGradInput::from_words(&words);
            let wide = p.outputs_pitch + p.inputs_pitch * (1 + p.gate + p.dropout);
            n(&[p.rows, wide]) + n(&[p.inputs_pitch, p.outputs_pitch])
        }
        KernelId::LinearGradWeight => {
            let p = LinearGradWeight::from_words(&words);
            n(&[p.rows, p.inputs_pitch + p.outputs_pitch]) + n(&[p.inputs_pitch, p.outputs_pitch])
        }
        KernelId::BiasGrad => {
            let p = BiasGrad::from_words(&words);
            n(&[p.rows + 1, p.pitch])
        }
        KernelId::Embed => {
            // The rows of one feature, the activation, its multiplier; the sum once.
            let p = Embed::from_words(&words);
            let width = p.columns.div_ceil(p.features.max(1)) + 2 + p.dropout;
            n(&[p.rows, p.steps, p.hidden_pitch, width]) + 2 * n(&[p.rows, p.hidden_pitch])
        }
        KernelId::EmbedSuffix => {
            let p = EmbedSuffix::from_words(&words);
            2 * n(&[p.rows, p.steps, p.pitch])
        }
        KernelId::EmbedGrad => {
            let p = EmbedGrad::from_words(&words);
            n(&[p.rows, p.steps, p.hidden_pitch]) + n(&[p.columns + p.features + 1, p.hidden_pitch])
        }
        KernelId::Noise => {
            let p = Noise::from_words(&words);
            n(&[p.rows, p.steps, p.pitch])
        }
        KernelId::Dropout => {
            let p = Dropout::from_words(&words);
            n(&[p.rows, p.steps, p.pitch])
        }
        KernelId::Select => {
            // Logits twice, noise, when, m̃ twice and r̃.
            let p = Select::from_words(&words);
            n(&[p.rows, 4 * p.features + p.relaxed * 3 * p.features + row_scalars])
        }
        KernelId::SelectGrad => {
            // Logits twice, m̃, r̃ and M.
            let p = SelectGrad::from_words(&words);
            n(&[p.rows, 2 * p.features + p.relaxed * 3 * p.features + row_scalars])
        }
        KernelId::Loss => {
            let p = Loss::from_words(&words);
            n(&[p.rows, 2 * p.pitch + row_scalars])
        }
        KernelId::MaskGrad => {
            let p = MaskGrad::from_words(&words);
            n(&[p.rows, p.columns + p.input_pitch + p.pitch])
        }
        KernelId::MaskCarry => {
            // x, the input's gradient, r̃, ∂ℓ/∂m, M twice.
            let p = MaskCarry::from_words(&words);
            n(&[p.rows, p.columns + p.input_pitch + 4 * p.pitch])
        }
        KernelId::Outcome => {
            let p = Outcome::from_words(&words);
            n(&[p.rows, p.steps + 1, row_scalars])
        }
        KernelId::Adam => {
            let p = Adam::from_words(&words);
            n(&[p.len, 6 + p.lanes])
        }
        KernelId::Average => 3 * n(&[Average::from_words(&words).len]),
        KernelId::Transpose => {
            let p = Transpose::from_words(&words);
            2 * n(&[p.inputs_pitch, p.outputs_pitch])
        }
        KernelId::Gather | KernelId::GatherBytes => {
            let p = Gather::from_words(&words);
            2 * n(&[p.rows, p.columns])
        }
        KernelId::Blur => {
            let p = Blur::from_words(&words);
            2 * n(&[p.rows, p.columns])
        }
        KernelId::Expand => {
            let p = Expand::from_words(&words);
            n(&[p.rows, p.columns + p.features + p.input_pitch])
        }
        KernelId::Greedy => {
            let p = Greedy::from_words(&words);
            n(&[p.rows, 2 * p.features])
        }
        _ => WORKGROUP * n(&params.grid()),
    };
    4 * numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_grows_with_the_shape() {
        let linear = |rows| Linear { rows, inputs_pitch: 16, outputs_pitch: 8, ..Linear::default() };
        assert_eq!(estimate(&linear(10)), 2 * 10 * 16 * 8);
        assert_eq!(estimate(&linear(30)), 3 * estimate(&linear(10)));
        assert_eq!(traffic(&linear(10)), 4 * (10 * (16 + 8) + 16 * 8));
        let greedy = |rows| Greedy { rows, step: 0, features: 3, logit_pitch: 4 };
        assert!(estimate(&greedy(8)) > estimate(&greedy(1)) && estimate(&greedy(1)) > 0);
    }
}
