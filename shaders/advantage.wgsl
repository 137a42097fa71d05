// Generalised advantage estimation over the kept steps of each instance, from the last to the first. With r = −cost of a
// step, V what the critic says of the state before it (0 after the last), γ a discount and λ a decay,
//   δ_t = r_t + γ V_{t+1} − V_t      A_t = δ_t + γ λ A_{t+1}      target of V_t: A_t + V_t.
// Steps that were not taken have none. A thread an instance.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let discount = settings[p.discount];
    let decay = discount * settings[p.decay];
    var next = 0.0;
    var advantage = 0.0;
    // Bounds that depend on the row: see nmppg/select.wgsl.
    let end = row + p.rows * p.steps;
    for (var tape_row = end; tape_row > row;) {
        tape_row -= p.rows;
        let at = tape_row * KEPT;
        if (kept[at + KEPT_LIVE] > 0.5) {
            let value = values[tape_row * p.pitch];
            advantage = -kept[at + KEPT_COST] + discount * next - value + decay * advantage;
            kept[at + KEPT_ADVANTAGE] = advantage;
            kept[at + KEPT_TARGET] = advantage + value;
            next = value;
        } else {
            kept[at + KEPT_ADVANTAGE] = 0.0;
            kept[at + KEPT_TARGET] = 0.0;
        }
    }
}
