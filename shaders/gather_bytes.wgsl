// As gather.wgsl, out of a data set of bytes (images), which stay bytes until they are needed. Four of
// them lie in a word, the first in its lowest bits, and rows follow each other without a gap:
//   x = byte / divisor
// Row r is instance `first + r` of the batch, which lies
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
        let index = at.source * p.columns + column;
        let byte = (data_x[index / 4u] >> (8u * (index % 4u))) & 0xffu;
        value = f32(byte) / f32(p.divisor);
    }
    x[row * p.pitch + column] = value;
    if (column == 0u) {
        y[row] = select(NO_LABEL, data_y[at.source], at.there);
    }
}
