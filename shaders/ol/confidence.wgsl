// The original's reward: what an answer changed in the belief, for its cost. With p̄_t the belief after t answers (believe.wgsl),
//   r_t = Σ_c |p̄_{t+1} − p̄_t| / max(c(a_t), 0.001)
// A thread for each step of each instance.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let tape_row = id.y * groups.x * 64u + id.x;
    if (tape_row >= p.rows * p.steps) {
        return;
    }
    let at = tape_row * p.classes;
    let next = (tape_row + p.rows) * p.classes;
    // A bound that depends on the row: see nmppg/select.wgsl.
    let end = at + p.classes;
    var change = 0.0;
    for (var i = 0u; at + i < end; i++) {
        change += abs(beliefs[next + i] - beliefs[at + i]);
    }
    let action = path[tape_row];
    var reward = 0.0;
    if (action < p.features) {
        reward = change / max(costs[action], 0.001);
    }
    rewards[tape_row] = reward;
}
