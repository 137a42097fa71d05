//! The kernels that only NM-PPG has, and the words they share.

mod mask_carry;
mod objective;
mod select;
mod select_grad;
mod submask;

pub use mask_carry::MaskCarry;
pub use objective::Objective;
pub use select::Select;
pub use select_grad::SelectGrad;
pub use submask::Submask;

use crate::engine::kernels::words::{settings, words};
use crate::engine::kernels::{Kernel, Params};

/// All of them.
pub static KERNELS: &[&Kernel] =
    &[Select::KERNEL, SelectGrad::KERNEL, MaskCarry::KERNEL, Submask::KERNEL, Objective::KERNEL];

words! {
    /// Settings that change from epoch to epoch, behind the general ones.
    pub mod hyper: usize, first super::settings::LEN, prefix "", len "HYPER" {
        /// Trade-off between loss and cost.
        ALPHA,
        /// Temperature of the policy.
        TAU_HARD,
        /// Temperature of the relaxation.
        TAU_SOFT,
        /// Weight of the entropy bonus.
        LAMBDA,
        /// The policy's learning rate.
        RATE_POLICY,
        /// The predictor's learning rate.
        RATE_PREDICTOR,
        /// Share of the entropy bonus that counts as value: 1 as published, 0 for a bonus that does not
        /// reward surviving.
        LURE,
        /// Weight of the guard that keeps stopping and going on both possible.
        GUARD,
        /// Not zero: the stop's share is its probability itself, not a relaxed sample of it.
        EXACT_STOP,
        /// Chance that a run is cut short at a step, whatever the policy wants.
        HAZARD,
        /// Share of the score-function gradient (REINFORCE) in that of the choice between features.
        REINFORCE,
        /// Rollouts of an instance in a batch: each is the others' leave-one-out baseline.
        ROLLOUTS,
        /// Share of the predictor's loss that counts where the policy stops.
        FOCUS,
        /// Share of the predictor's loss on sub-masks of what was asked.
        SUBMASKS,
    }
}

words! {
    /// Words of a tape row's scalars. The row of instance b at step t is t·rows + b.
    pub mod scalars: usize, first 0, prefix "", len "SCALARS" {
        /// The mass still asking, s.
        SURVIVAL,
        /// The share that stops here, q.
        HALT,
        /// The share that goes on, g.
        GO,
        /// Entropy H.
        ENTROPY,
        /// Cost of what is acquired.
        PRICE,
        /// S = ∂J/∂s.
        VALUE,
        /// Weight of the predictor's loss in its own gradient.
        WEIGHT,
        /// The largest z/τh.
        TOP,
        /// ln Σ exp(z/τh − top): with the two, ln p = z/τh − top − this.
        LOG_MASS,
        /// What the instance's α, λ and guard are multiplied by; only in the rows of the first step.
        FACTOR,
    }
}

words! {
    /// NM-PPG's own uses of randomness.
    pub mod stream: u32, first 8, prefix "STREAM_", len "STREAMS_END" {
        /// Sub-masks of a path.
        SUBMASK,
    }
}

/// Masks on the tape.
pub mod masks {
    use crate::engine::kernels::Part;

    /// Where m̃ and r̃ of a tape row are.
    pub const PART: Part =
        Part::Text(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/nmppg/lib/masks.wgsl")));
}
