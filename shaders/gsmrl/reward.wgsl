// What each step of a rollout costs: minus its reward. With α the worth of a unit of cost, c the cost of what is acquired, H
// the entropy of p(y|x_O) before and after it, ω the weight of information and ℓ the predictor's loss,
//   acquiring: α c − ω (H_t − H_{t+1})      stopping: ℓ_t.
// Who has not stopped at the last step has to, one step later: γ ℓ of what is known then is added. A thread an
// instance.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    // Bounds that depend on the row: see nmppg/select.wgsl.
    let end = row + p.rows * p.steps;
    for (var at = row; at < end; at += p.rows) {
        let live = kept[at * KEPT + KEPT_LIVE] > 0.5;
        let feature = path[at];
        let next = at + p.rows;
        var cost = 0.0;
        if (live && feature == p.features) {
            cost = losses[at * LOSSES + LOSS];
        } else if (live) {
            cost = settings[ALPHA] * costs[feature] - settings[INFORMATION] * (doubts[at] - doubts[next]);
            if (next >= end) {
                cost += settings[DISCOUNT] * losses[next * LOSSES + LOSS];
            }
        }
        kept[at * KEPT + KEPT_COST] = cost;
    }
}
