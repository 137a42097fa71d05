//! Words of the buffers that outlive a step, and of the tape: the same numbers as in
//! `shaders/lib/state.wgsl`, `tape.wgsl` and `random.wgsl`. A test compares them.

/// Words of the clock.
pub mod clock {
    /// The seed's lower half.
    pub const SEED_LO: usize = 0;
    /// The seed's upper half.
    pub const SEED_HI: usize = 1;
    /// Training steps done, warm-up included.
    pub const STEP: usize = 2;
    /// Passes over the data done: keys the shuffle.
    pub const EPOCH: usize = 3;
    /// Batches done in this pass.
    pub const BATCH: usize = 4;
    /// Chunks of a split evaluated.
    pub const CHUNK: usize = 5;
    /// Rollouts of an instance in a batch, one after the other; 0 is 1.
    pub const TWINS: usize = 6;
    /// How many words there are.
    pub const LEN: usize = 8;

    /// The seed in a clock.
    pub fn seed(clock: &[u32]) -> u64 {
        u64::from(clock[SEED_LO]) | u64::from(clock[SEED_HI]) << 32
    }
}

/// Words of the hyper-parameters, which the host sets.
pub mod hyper {
    /// Trade-off between loss and cost.
    pub const ALPHA: usize = 0;
    /// Temperature of the policy.
    pub const TAU_HARD: usize = 1;
    /// Temperature of the relaxation.
    pub const TAU_SOFT: usize = 2;
    /// Weight of the entropy bonus.
    pub const LAMBDA: usize = 3;
    /// The policy's learning rate.
    pub const RATE_POLICY: usize = 4;
    /// The predictor's learning rate.
    pub const RATE_PREDICTOR: usize = 5;
    /// Adam's decay of the mean.
    pub const BETA1: usize = 6;
    /// Adam's decay of the variance.
    pub const BETA2: usize = 7;
    /// Adam's ε.
    pub const EPSILON: usize = 8;
    /// Share of the newest weights in their moving average.
    pub const AVERAGE: usize = 9;
    /// Share of the entropy bonus that counts as value: 1 as published, 0 for a bonus that does not
    /// reward surviving.
    pub const LURE: usize = 10;
    /// Weight of the guard that keeps stopping and going on both possible.
    pub const GUARD: usize = 11;
    /// Not zero: the stop's share is its probability itself, not a relaxed sample of it.
    pub const EXACT_STOP: usize = 12;
    /// Chance that a run is cut short at a step, whatever the policy wants.
    pub const HAZARD: usize = 13;
    /// Share of the score-function gradient in that of the choice between features.
    pub const SCORE: usize = 14;
    /// Rollouts of an instance in a batch, as in the clock.
    pub const TWINS: usize = 15;
    /// Share of the predictor's loss that counts where the policy stops.
    pub const FOCUS: usize = 16;
    /// Share of the predictor's loss on parts of what was asked.
    pub const PARTS: usize = 17;
    /// Noise on the training rows, in standard deviations of each column.
    pub const BLUR: usize = 18;
    /// How many words there are.
    pub const LEN: usize = 19;
}

/// What `advance` moves: bits.
pub mod advance {
    /// A step of the policy.
    pub const POLICY: u32 = 1;
    /// A step of the predictor.
    pub const PREDICTOR: u32 = 2;
    /// The next evaluation chunk.
    pub const CHUNK: u32 = 4;
}

/// Words of a tape row's scalars.
pub mod scalars {
    /// Words a row.
    pub const LEN: usize = 9;
    /// The mass still asking, s.
    pub const SURVIVAL: usize = 0;
    /// The share that stops here, q.
    pub const HALT: usize = 1;
    /// The share that goes on, g.
    pub const GO: usize = 2;
    /// Entropy H.
    pub const ENTROPY: usize = 3;
    /// Cost of what is acquired.
    pub const PRICE: usize = 4;
    /// S = ∂J/∂s.
    pub const VALUE: usize = 5;
    /// Weight of the predictor's loss in its own gradient.
    pub const WEIGHT: usize = 6;
    /// The largest z/τh.
    pub const TOP: usize = 7;
    /// ln Σ exp(z/τh − top): with the two, ln p = z/τh − top − this.
    pub const LOG_MASS: usize = 8;
}

/// Words of a row's losses.
pub mod losses {
    /// Words a row.
    pub const LEN: usize = 2;
    /// The loss.
    pub const LOSS: usize = 0;
    /// The class the predictor takes for the most likely.
    pub const GUESS: usize = 1;
}

/// One number for each use of randomness.
pub mod stream {
    /// Gumbel noise.
    pub const GUMBEL: u32 = 1;
    /// Dropout of the first hidden layer.
    pub const DROPOUT_1: u32 = 2;
    /// Dropout of the second hidden layer.
    pub const DROPOUT_2: u32 = 3;
    /// The warm-up's masks.
    pub const MASK: u32 = 4;
    /// The order of the data.
    pub const SHUFFLE: u32 = 5;
    /// Initial weights (on the host).
    pub const INIT: u32 = 6;
    /// Synthetic data (on the host).
    pub const DATA: u32 = 7;
    /// Parts of a path.
    pub const PART: u32 = 8;
    /// Noise on the rows.
    pub const BLUR: u32 = 9;
}

/// In `when`: the feature was not acquired.
pub const NEVER: u32 = u32::MAX;
/// In `y`: there is no instance in this row.
pub const NO_LABEL: u32 = u32::MAX;
/// Words of the metrics.
pub const METRICS: usize = 8;
