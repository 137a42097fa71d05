// What a flow ends in is standard normal in the columns that were asked for, so by the change of variables
//   ln p = log-determinant + Σ (−z²/2 − ln(2π)/2).      A thread a row.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups_: vec3<u32>) {
    let row = id.y * groups_.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let at = row * p.z_pitch;
    let end = at + p.columns;
    var log = 0.0;
    for (var i = at; i < end; i++) {
        if (is_asked_column(row, i - at)) {
            log -= 0.5 * z[i] * z[i] + 0.9189385332;
        }
    }
    logs[row] += log;
}
