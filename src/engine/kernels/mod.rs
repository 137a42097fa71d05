//! What plans are made of. A kernel is one WGSL file in `shaders/` and one `kernel!` entry beside its twin, the
//! same computation in Rust: parameters, bindings, grid, work and twin stand in one place, and the shader's header is
//! written from it. General kernels are here, a file a family; a method's own are in its folder.

mod available;
mod best;
mod block;
mod clip;
mod condition;
mod declare;
mod episode;
mod evaluate;
mod flow;
mod gather;
mod grid;
mod kernel;
mod latent;
mod library;
mod linear;
mod loss;
mod mask;
mod masked;
mod noise;
mod norm;
mod optim;
mod replay;
pub mod words;
mod work;

pub use available::Available;
pub(crate) use best::largest;
pub use block::{BlockGradInput, BlockGradWeight, BlockInputs, BlockLinear};
pub use clip::{GradNorm, GradScale};
pub use condition::Condition;
pub(crate) use declare::{kernel, twin_call};
pub use episode::{Advantage, ClippedChoice, ValueError, kept};
pub use evaluate::{Asked, Greedy, Tally};
pub use flow::{
    Coupling, CouplingGrad, CouplingInverse, FlowDensity, FlowDensityGrad, FlowInput, FlowInputGrad,
    FlowStart,
};
pub(crate) use flow::{SCALE_BOUND, SLOPE_BOUND};
pub(crate) use gather::places;
pub use gather::{Gather, GatherBytes};
pub(crate) use grid::folded;
pub use grid::{Grid, area, each, line, tiles, workgroups};
pub use kernel::{Access, Binding, Kernel, Params, Target, Twin, View, WORDS};
pub(crate) use latent::{DEVIATION, deviation, normal_score};
pub use latent::{LatentGrad, Latents, NormalScores};
pub use library::{BEST, COUPLING, FLOW, GROUPS, MATH, PLACE, Part, RANDOM, REDUCE, THROUGH_INPUT};
pub use linear::{BiasGrad, CopyBlock, FillBlock, Linear, LinearGradInput, LinearGradWeight, Transpose};
pub use loss::{Loss, MeanLoss, MixtureLoss};
pub(crate) use mask::through_input;
pub use mask::{Expand, MaskGrad, SeenMask};
pub use masked::{Embed, EmbedGrad, EmbedSuffix};
pub use noise::{Dropout, Gumbel, InputNoise, Normals, RandomMask, UniformMask};
pub(crate) use noise::{normal, source};
pub(crate) use norm::fold_layer;
pub use norm::{Fold, Moments, NormGrad, NormGradInput, Normalize};
pub use optim::{Adam, Advance, AdvancePowers, Average};
pub use replay::{GatherAt, GatherAtBytes, ReplayDraw, ReplayStore, ReplayTurn, returns, taken};
pub use work::{Work, product};

/// The kernels that belong to no method.
pub static GENERAL: &[&Kernel] = &[
    Gather::KERNEL,
    GatherBytes::KERNEL,
    InputNoise::KERNEL,
    Condition::KERNEL,
    Available::KERNEL,
    Gumbel::KERNEL,
    Dropout::KERNEL,
    RandomMask::KERNEL,
    UniformMask::KERNEL,
    Expand::KERNEL,
    MaskGrad::KERNEL,
    Embed::KERNEL,
    EmbedSuffix::KERNEL,
    EmbedGrad::KERNEL,
    Linear::KERNEL,
    Transpose::KERNEL,
    LinearGradInput::KERNEL,
    LinearGradWeight::KERNEL,
    BiasGrad::KERNEL,
    Loss::KERNEL,
    Adam::KERNEL,
    Average::KERNEL,
    Advance::KERNEL,
    Greedy::KERNEL,
    Tally::KERNEL,
    Asked::KERNEL,
    MeanLoss::KERNEL,
    FillBlock::KERNEL,
    CopyBlock::KERNEL,
    AdvancePowers::KERNEL,
    ReplayStore::KERNEL,
    ReplayTurn::KERNEL,
    ReplayDraw::KERNEL,
    GatherAt::KERNEL,
    GatherAtBytes::KERNEL,
    SeenMask::KERNEL,
    GradNorm::KERNEL,
    GradScale::KERNEL,
    FlowStart::KERNEL,
    FlowInput::KERNEL,
    FlowInputGrad::KERNEL,
    Coupling::KERNEL,
    CouplingGrad::KERNEL,
    CouplingInverse::KERNEL,
    FlowDensity::KERNEL,
    FlowDensityGrad::KERNEL,
    Advantage::KERNEL,
    ClippedChoice::KERNEL,
    ValueError::KERNEL,
    MixtureLoss::KERNEL,
    Moments::KERNEL,
    Normalize::KERNEL,
    NormGrad::KERNEL,
    NormGradInput::KERNEL,
    Fold::KERNEL,
    BlockInputs::KERNEL,
    BlockLinear::KERNEL,
    BlockGradInput::KERNEL,
    BlockGradWeight::KERNEL,
    NormalScores::KERNEL,
    Normals::KERNEL,
    Latents::KERNEL,
    LatentGrad::KERNEL,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_survive_the_way_through_words() {
        let p = Embed {
            rows: 1,
            first_step: 2,
            steps: 3,
            columns: 4,
            features: 5,
            hidden_pitch: 6,
            x_pitch: 7,
            weight: 8,
            bias: 9,
            dropout: 10,
            tape: 11,
        };
        assert_eq!(Embed::from_words(&p.words()), p);
        assert_eq!(Embed::KERNEL.name, "embed");
        assert_eq!(GENERAL.iter().filter(|kernel| Embed::KERNEL.is(kernel)).count(), 1);
    }

    #[test]
    fn work_grows_with_the_shape() {
        let linear = |rows| Linear { rows, inputs_pitch: 16, outputs_pitch: 8, ..Linear::default() }.work();
        assert_eq!(linear(10), Work { flops: 2 * 10 * 16 * 8, numbers: 10 * (16 + 8) + 16 * 8 });
        assert_eq!(linear(30).flops, 3 * linear(10).flops);
        let greedy = |rows| Greedy { rows, features: 3, logit_pitch: 4, ..Greedy::default() }.work().flops;
        assert!(greedy(8) > greedy(1) && greedy(1) > 0);
    }
}
