// Copies rows out of the data set: row r is the one at places[r].

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let column = id.x;
    let row = id.y;
    if (column >= p.pitch || row >= p.rows) {
        return;
    }
    var value = 0.0;
    if (column < p.columns) {
        value = data_x[places[row] * p.columns + column];
    }
    x[row * p.pitch + column] = value;
    if (column == 0u) {
        y[row] = data_y[places[row]];
    }
}
