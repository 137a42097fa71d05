// A coupling the other way, from z' to z:  u = z' where z' ≥ 0, z'·e^−r below,      z = (u − t)·e^−s.
// The network has read the columns that stay, which are the same on both sides. A thread a row.
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
    for (var i = at; i < end; i++) {
        let column = i - at;
        if (is_moved(column) && is_asked_column(row, column)) {
            let o = outputs_at + column / p.stride;
            var u = z[i];
            if (u < 0.0) {
                u *= exp(-bounded(outputs[o + 2u * moved], SLOPE_BOUND));
            }
            z[i] = (u - outputs[o + moved]) * exp(-bounded(outputs[o], SCALE_BOUND));
        }
    }
}
