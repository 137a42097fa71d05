// Copies the batch's rows out of the data set: row r is instance `first + r` of the batch, which lies
// where lib/place.wgsl says. A row that is not there gets no label and counts for nothing.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let column = id.x;
    let row = id.y;
    if (column >= p.pitch || row >= p.rows) {
        return;
    }
    let at = place(row);
    var value = 0.0;
    if (at.there && column < p.columns) {
        value = data_x[at.source * p.columns + column];
    }
    x[row * p.pitch + column] = value;
    if (column == 0u) {
        y[row] = select(NO_LABEL, data_y[at.source], at.there);
    }
}
