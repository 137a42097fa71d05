// The way back through flow_input: what the network makes of the columns it reads adds to their gradient.
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let column = id.x;
    let row = id.y;
    if (column >= p.columns || row >= p.rows) {
        return;
    }
    if (!is_moved(column) && is_asked_column(row, column)) {
        grad_z[row * p.z_pitch + column] += grad_input[row * p.input_pitch + column];
    }
}
