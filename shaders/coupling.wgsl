// A coupling: of the columns that are asked for and moved,
//   u = z·e^s + t,      z' = u where u ≥ 0, u·e^r below (a leaky ReLU whose slope is learned),
// with s, t and r from a network that reads only columns that stay (flow_input). The others are as before, so the
// Jacobian is triangular and its log-determinant the sum of the diagonal's logarithms:
//   Σ s + (r where u < 0),      added to `logs`.
// The network's outputs are s of each moved column, then t, then r; s and r are bounded (lib/coupling.wgsl), so that no
// density grows without end where columns hardly vary. A thread a row.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups_: vec3<u32>) {
    let row = id.y * groups_.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let at = row * p.z_pitch;
    let end = at + p.columns;
    let outputs_at = row * p.outputs_pitch;
    let moved = moved_columns();
    var log = 0.0;
    for (var i = at; i < end; i++) {
        let column = i - at;
        var z = from_z[i];
        if (is_moved(column) && is_asked_column(row, column)) {
            let o = outputs_at + column / p.stride;
            let s = bounded(outputs[o], SCALE_BOUND);
            let r = bounded(outputs[o + 2u * moved], SLOPE_BOUND);
            z = z * exp(s) + outputs[o + moved];
            log += s;
            if (z < 0.0) {
                z *= exp(r);
                log += r;
            }
        }
        to_z[i] = z;
    }
    logs[row] += log;
}
