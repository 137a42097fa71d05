// Words of the buffers that outlive a step; `src/engine/state.rs` has the same numbers.

// clock
const SEED_LO: u32 = 0u;
const SEED_HI: u32 = 1u;
const STEP: u32 = 2u;  // training steps done, warm-up included
const EPOCH: u32 = 3u; // keys the shuffle
const BATCH: u32 = 4u; // batches done in this epoch
const CHUNK: u32 = 5u; // chunks of a split evaluated
const CLOCK_TWINS: u32 = 6u; // rollouts of an instance in a batch; 0 is 1

// hyper
const ALPHA: u32 = 0u;
const TAU_HARD: u32 = 1u;
const TAU_SOFT: u32 = 2u;
const LAMBDA: u32 = 3u;
const RATE_POLICY: u32 = 4u;
const RATE_PREDICTOR: u32 = 5u;
const BETA1: u32 = 6u;
const BETA2: u32 = 7u;
const EPSILON: u32 = 8u;
const AVERAGE: u32 = 9u; // share of the newest weights in their average
const LURE: u32 = 10u;   // share of the entropy bonus that counts as value: 1 as published, 0 not
const GUARD: u32 = 11u;  // weight of the guard that keeps stopping and going on both possible
const EXACT_STOP: u32 = 12u; // not zero: the stop's share is its probability, not a relaxed sample
const HAZARD: u32 = 13u; // chance that a run is cut short at a step, whatever the policy wants
const SCORE: u32 = 14u;  // share of the score-function gradient in that of the choice of a feature
const TWINS: u32 = 15u;  // rollouts of an instance in a batch
const FOCUS: u32 = 16u;  // share of the predictor's loss that counts where the policy stops
const PARTS: u32 = 17u;  // share of the predictor's loss on parts of what was asked
const BLUR: u32 = 18u;   // noise on the training rows, in standard deviations of each column

// what `advance` moves
const ADVANCE_POLICY: u32 = 1u;
const ADVANCE_PREDICTOR: u32 = 2u;
const ADVANCE_CHUNK: u32 = 4u;
