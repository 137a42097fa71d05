// Backward through the relaxed choice (forward: concrete.wgsl), of all steps at once: no step's gradient goes through
// another. With g = ∂L/∂m̃ and what was open at the step,
//   ∂L/∂u_i = r̃_i (g_i − Σ r̃ g),      ∂L/∂z = ∂L/∂u / (γ τ),      zero where it was acquired,
// as ∂m̃/∂r̃ = 1 − m is 1 where it was open. The logits are overwritten. Straight-through (DiFA), g is ∂L/∂m at the hard
// successor m + onehot j, which counts as if it were m̃ on the way back: the rest is the same.
@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let tape_row = row_of(group, groups, thread);
    let lane = lane_of(thread);
    if (tape_row >= p.rows * p.steps) {
        return;
    }
    let step = tape_row / p.rows;
    let at = tape_row * p.pitch;
    let seen_at = (tape_row % p.rows) * p.features;
    let end = seen_at + p.features;
    let scale = 1.0 / (settings[GAMMA] * settings[TEMPERATURE]);
    var pull = 0.0;
    for (var i = lane; seen_at + i < end; i += WIDTH) {
        if (acquired_at[seen_at + i] >= step) {
            pull += masks[at + i] * mask_grad[at + i];
        }
    }
    pull = sum_all(lane, pull);
    for (var i = lane; seen_at + i < end; i += WIDTH) {
        var dz = 0.0;
        if (acquired_at[seen_at + i] >= step) {
            dz = flush(masks[at + i] * (mask_grad[at + i] - pull) * scale);
        }
        logits[at + i] = dz;
    }
}
