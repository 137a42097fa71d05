// One step of the greedy policy: the largest logit of what is not yet acquired; if it is the stop (path = d), which is
// the last logit where there is one, the instance acquires nothing more.

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
    var stopped = false;
    if (p.step > 0u) {
        stopped = path[(p.step - 1u) * p.rows + row] == p.features;
    }
    var top = Best(0.0, NOBODY);
    for (var i = lane; i < p.features + p.stop; i += WIDTH) {
        if (i < p.features) {
            if (p.step == 0u) {
                acquired_at[row * p.features + i] = NEVER;
            } else if (acquired_at[row * p.features + i] != NEVER) {
                continue;
            }
        }
        let candidate = Best(logits[row * p.logit_pitch + i], i);
        if (better(candidate, top)) {
            top = candidate;
        }
    }
    top = best_all(lane, top);
    meet(); // `acquired_at` was read by all and is changed by one
    if (lane == 0u) {
        let action = select(top.index, p.features, stopped);
        path[p.step * p.rows + row] = action;
        if (action < p.features) {
            acquired_at[row * p.features + action] = p.step;
        }
    }
}
