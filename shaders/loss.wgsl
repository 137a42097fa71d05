// Cross-entropy of each row, weighted by its class, and its gradient: with f = softmax(logits),
//   ℓ = −w_y ln f_y        ∂ℓ/∂logits = w_y (f − onehot y), written over the logits.
// A thread a row; `batch` rows repeat their labels along the tape. Rows without a label count zero.
// The class weights follow the features' costs in `costs`. If `weighted`, the gradient (not the loss) is
// also multiplied by the tape row's own weight: how much the predictor cares for it.
struct Params {
    rows: u32,
    batch: u32,
    classes: u32,
    pitch: u32,
    weights: u32,
    weighted: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> logits: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<u32>;
@group(0) @binding(3) var<storage, read> costs: array<f32>;
@group(0) @binding(4) var<storage, read_write> losses: array<f32>;
@group(0) @binding(5) var<storage, read> scalars: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let at = row * p.pitch;
    let label = y[row % p.batch];
    var top = logits[at];
    var guess = 0u;
    for (var c = 1u; c < p.classes; c++) {
        if (logits[at + c] > top) {
            top = logits[at + c];
            guess = c;
        }
    }
    var mass = 0.0;
    for (var c = 0u; c < p.classes; c++) {
        mass += exp_down(logits[at + c] - top);
    }
    var weight = 0.0;
    var loss = 0.0;
    if (label != NO_LABEL) {
        weight = costs[p.weights + label];
        loss = weight * (ln_pos(mass) + top - logits[at + label]);
    }
    losses[row * LOSSES + LOSS] = loss;
    losses[row * LOSSES + GUESS] = f32(guess);
    if (p.weighted != 0u) {
        weight *= scalars[row * SCALARS + WEIGHT];
    }
    for (var c = 0u; c < p.classes; c++) {
        let f = exp_down(logits[at + c] - top) / mass;
        logits[at + c] = weight * (f - select(0.0, 1.0, c == label));
    }
}
