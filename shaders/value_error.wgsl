// The critic's squared error (V − target)² of kept steps and its gradient 2(V − target), which the values become. A thread a step.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let at = row * KEPT;
    let live = kept[at + KEPT_LIVE] > 0.5;
    let error = select(0.0, values[row * p.pitch] - kept[at + KEPT_TARGET], live);
    values[row * p.pitch] = 2.0 * error;
    kept[at + KEPT_ERROR] = error * error;
}
