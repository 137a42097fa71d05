// One step of a rollout. With z the selector's logits, γ their gain, what is acquired blocked, and two independent Gumbel
// noises ε and ε':
//   u = (z/γ + ε)/τ      r̃ = softmax(u)      m̃ = m + (1 − m) ⊙ r̃      j = argmax (z/γ + ε')
// The next hard mask is m and j. GDFS takes the predictor's loss on m̃, and j is a sample of the selector by noise of its
// own. DiFA has one noise, ε' = ε, so that j is the largest of r̃, and takes the loss on the next hard mask. Of m̃, what is
// acquired is 1 and the rest is r̃, so nothing else has to be kept for the way back.
// ε lies in the rows of the step (`first_row` and on), ε' in others or the same (`fresh_row` and on). Without `sample`
// nothing is chosen.
fn acquired(feature_at: u32) -> bool {
    return p.step > 0u && acquired_at[feature_at] != NEVER;
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let row = row_of(group, groups, thread);
    let lane = lane_of(thread);
    if (row >= p.rows) {
        return;
    }
    let tape_row = p.first_row + row;
    let z_at = tape_row * p.pitch;
    let noise_at = (p.fresh_row + row) * p.pitch;
    let seen_at = row * p.features;
    let gain = 1.0 / settings[GAMMA];
    let cool = 1.0 / settings[TEMPERATURE];
    // A bound that depends on the row: see nmppg/select.wgsl.
    let end = seen_at + p.features;

    var top_u = Best(BLOCKED, NOBODY);
    var top = Best(BLOCKED, NOBODY);
    for (var i = lane; seen_at + i < end; i += WIDTH) {
        if (acquired(seen_at + i)) {
            continue;
        }
        let z = logits[z_at + i] * gain;
        let candidate_u = Best((z + gumbel[z_at + i]) * cool, i);
        if (better(candidate_u, top_u)) {
            top_u = candidate_u;
        }
        let candidate = Best(z + gumbel[noise_at + i], i);
        if (better(candidate, top)) {
            top = candidate;
        }
    }
    top_u = best_all(lane, top_u);
    top = best_all(lane, top);

    var mass = 0.0;
    for (var i = lane; seen_at + i < end; i += WIDTH) {
        if (!acquired(seen_at + i)) {
            mass += exp_down((logits[z_at + i] * gain + gumbel[z_at + i]) * cool - top_u.value);
        }
    }
    mass = sum_all(lane, mass);
    for (var i = lane; seen_at + i < end; i += WIDTH) {
        var mask = 1.0;
        if (!acquired(seen_at + i)) {
            mask = flush(exp_down((logits[z_at + i] * gain + gumbel[z_at + i]) * cool - top_u.value) / mass);
        }
        masks[z_at + i] = mask;
    }
    meet(); // `acquired_at` was read by all and is changed by one
    if (p.step == 0u) {
        for (var i = lane; seen_at + i < end; i += WIDTH) {
            acquired_at[seen_at + i] = NEVER;
        }
        meet();
    }
    if (lane == 0u && p.sample * p.rows > row && top.index != NOBODY) {
        path[tape_row] = top.index;
        acquired_at[seen_at + top.index] = p.step;
    }
}
