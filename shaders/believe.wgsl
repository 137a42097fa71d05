// What a state is worth to the policy, before `loss` overwrites the logits. With f_t the predictor's
// probabilities at step t and f_k those at the end of the same path, where most has been seen,
//   value_t = (1 − β) ℓ_t(y) + β Σ_c f_k(c) ℓ_t(c),      ℓ_t(c) = −w_c ln f_t(c).
// y given the path is distributed as f_k, if the predictor is calibrated, so the second term has the same
// mean as the first without the label's noise (Rao and Blackwell): early stops, worth little each, can be
// learned from far fewer instances. β = 0 is the published method. A thread a row.
struct Params {
    rows: u32,
    batch: u32,
    classes: u32,
    pitch: u32,
    weights: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<u32>;
@group(0) @binding(3) var<storage, read> costs: array<f32>;
@group(0) @binding(4) var<storage, read> hyper: array<f32>;
@group(0) @binding(5) var<storage, read_write> losses: array<f32>;

// ln Σ exp of a row's logits.
fn log_mass(at: u32) -> f32 {
    var top = logits[at];
    for (var c = 1u; c < p.classes; c++) {
        top = max(top, logits[at + c]);
    }
    var mass = 0.0;
    for (var c = 0u; c < p.classes; c++) {
        mass += exp_down(logits[at + c] - top);
    }
    return ln_pos(mass) + top;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let at = row * p.pitch;
    let end = (p.rows - p.batch + row % p.batch) * p.pitch;
    let here_mass = log_mass(at);
    let end_mass = log_mass(end);
    let label = y[row % p.batch];
    let share = hyper[BELIEF];
    var value = 0.0;
    for (var c = 0u; c < p.classes; c++) {
        let hit = select(0.0, 1.0, c == label);
        let belief = exp_down(logits[end + c] - end_mass);
        value += ((1.0 - share) * hit + share * belief) * costs[p.weights + c] * (here_mass - logits[at + c]);
    }
    losses[row * LOSSES + WORTH] = value;
}
