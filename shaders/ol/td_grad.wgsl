// What the value of each drawn action is wrong by, and its gradient (double DQN). Rows 0 … rows of the outputs are the states,
// the next `rows` what the actions led to, under the same weights; target has those under the slow ones. With m' the mask
// after the action, of H features held, k the horizon, and ℓ the predictor's loss in the state,
//   A' = features that are not in m', unless H = k; and stopping, where an episode may be ended (`stop`)
//   a* = argmax over A' of Q(s')      V = Q̄(s')[a*], or 0 if A' is empty
//   y  = γ V − α c(a), or γ V + r where the reward is kept      of acquiring;      y = −ℓ      of stopping
//   E  = (Q(s)[a] − y)²               ∂E/∂Q(s)[a] = 2 (Q(s)[a] − y),      zero for every other action: y is a constant.
// The values of the states are overwritten; the loss has done the same with the logits before them.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let action = taken[row * TAKEN + ACTION];
    let now_at = row * p.pitch + p.classes;
    let next_at = (p.rows + row) * p.pitch + p.classes;
    let target_at = now_at;
    let mask_at = (p.rows + row) * p.mask_pitch;
    // Bounds and conditions that depend on the row: see nmppg/select.wgsl.
    let stops = p.stop * p.rows > row;
    let open = taken[row * TAKEN + HELD] < p.steps;
    let end = now_at + select(0u, p.features, open);
    var best = Best(BLOCKED, NOBODY);
    for (var i = 0u; now_at + i < end; i++) {
        if (masks[mask_at + i] < 0.5) {
            let candidate = Best(outputs[next_at + i], i);
            if (better(candidate, best)) {
                best = candidate;
            }
        }
    }
    if (stops) {
        let candidate = Best(outputs[next_at + p.features], p.features);
        if (better(candidate, best)) {
            best = candidate;
        }
    }
    var value = 0.0;
    if (best.index != NOBODY) {
        value = settings[GAMMA] * values[target_at + best.index];
    }
    if (action < p.features) {
        value += select(returns[row * RETURNS + REWARD], -settings[ALPHA] * costs[min(action, p.features - 1u)], stops);
    } else {
        value = -losses[row * LOSSES + LOSS];
    }
    let error = outputs[now_at + action] - value;
    let last = now_at + p.features;
    for (var i = now_at; i <= last; i++) {
        outputs[i] = 0.0;
    }
    outputs[now_at + action] = flush(2.0 * error);
    returns[row * RETURNS + ERROR] = error * error;
}
