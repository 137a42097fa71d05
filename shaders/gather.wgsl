// Copies the batch's rows out of the data set: row r is instance `first + r` of the batch, which lies
// where lib/place.wgsl says. A row that is not there gets no label and counts for nothing.
struct Params {
    rows: u32,
    columns: u32,
    pitch: u32,
    first: u32,
    batch: u32,
    split_start: u32,
    split_len: u32,
    shuffled: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> clock: array<u32>;
@group(0) @binding(2) var<storage, read> data_x: array<f32>;
@group(0) @binding(3) var<storage, read> data_y: array<u32>;
@group(0) @binding(4) var<storage, read_write> x: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<u32>;

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
