// One step of the greedy policy: the largest logit of what is not yet
// acquired; if it is the stop (path = d) the instance acquires nothing more.
struct Params {
    rows: u32,
    step: u32,
    features: u32,
    logit_pitch: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read_write> when: array<u32>;
@group(0) @binding(3) var<storage, read_write> path: array<u32>;

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
    for (var i = lane; i <= p.features; i += WIDTH) {
        if (i < p.features) {
            if (p.step == 0u) {
                when[row * p.features + i] = NEVER;
            } else if (when[row * p.features + i] != NEVER) {
                continue;
            }
        }
        let candidate = Best(logits[row * p.logit_pitch + i], i);
        if (better(candidate, top)) {
            top = candidate;
        }
    }
    top = best_all(lane, top);
    meet(); // `when` was read by all and is changed by one
    if (lane == 0u) {
        let action = select(top.index, p.features, stopped);
        path[p.step * p.rows + row] = action;
        if (action < p.features) {
            when[row * p.features + action] = p.step;
        }
    }
}
