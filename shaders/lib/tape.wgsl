// How the tape of a rollout is laid out. Its row of instance b at step t is t·rows + b.

// scalars: nine words a tape row.
const SCALARS: u32 = 9u;
const SURVIVAL: u32 = 0u; // s, the mass still asking
const HALT: u32 = 1u;     // q, the share that stops here
const GO: u32 = 2u;       // g, the share that goes on
const ENTROPY: u32 = 3u;  // H
const PRICE: u32 = 4u;    // c of what is acquired
const VALUE: u32 = 5u;    // S = ∂J/∂s
const WEIGHT: u32 = 6u;   // weight of the predictor's loss in its own gradient
const TOP: u32 = 7u;      // the largest z/τh
const LOG_MASS: u32 = 8u; // ln Σ exp(z/τh − top)

// losses: two words a row.
const LOSSES: u32 = 2u;
const LOSS: u32 = 0u;
const GUESS: u32 = 1u; // the class the predictor takes for the most likely

// `when`: the step a feature was acquired at.
const NEVER: u32 = 0xffffffffu;
// y: no instance in this row (the last chunk of an evaluation is not full).
const NO_LABEL: u32 = 0xffffffffu;

// relax: two vectors of d a tape row, the relaxed mask m̃ and the selection r̃.
fn soft_at(tape_row: u32, pitch: u32) -> u32 {
    return tape_row * 2u * pitch;
}
fn chance_at(tape_row: u32, pitch: u32) -> u32 {
    return tape_row * 2u * pitch + pitch;
}
