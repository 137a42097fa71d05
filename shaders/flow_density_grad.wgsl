// The way back through flow_density: ∂/∂z = −z·g where it was asked for, with g the gradient of the row's log-density.
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let column = id.x;
    let row = id.y;
    if (column >= p.columns || row >= p.rows) {
        return;
    }
    let at = row * p.z_pitch + column;
    grad_z[at] = select(0.0, -z[at] * grad_logs[row], is_asked_column(row, column));
}
