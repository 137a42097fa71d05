// Where a flow begins: what is asked for of a row, zero elsewhere, and a log-determinant of zero. With `points`, not the
// row but points of the base N(0, 1), for the way back: ±1 in every column, the signs turned from one part to the
// next, so that two of them have mean 0 and variance 1 in each column; an affine flow makes exact moments of these.
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let column = id.x;
    let row = id.y;
    if (column >= p.z_pitch || row >= p.rows) {
        return;
    }
    var value = 0.0;
    if (column < p.columns) {
        if (is_asked_column(row, column)) {
            value = x[instance_of(row) * p.x_pitch + column];
            if (p.points * p.rows > row) {
                value = select(1.0, -1.0, ((column / 2u + part_of(row)) & 1u) == 1u);
            }
        }
    }
    z[row * p.z_pitch + column] = value;
    if (column == 0u) {
        logs[row] = 0.0;
    }
}
