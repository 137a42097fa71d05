// As gather_at.wgsl, out of a data set of bytes, as gather_bytes.wgsl has them:
//   x = byte / divisor

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let column = id.x;
    let row = id.y;
    if (column >= p.pitch || row >= p.rows) {
        return;
    }
    var value = 0.0;
    if (column < p.columns) {
        let index = places[row] * p.columns + column;
        let byte = (data_x[index / 4u] >> (8u * (index % 4u))) & 0xffu;
        value = f32(byte) / f32(p.divisor);
    }
    x[row * p.pitch + column] = value;
    if (column == 0u) {
        y[row] = data_y[places[row]];
    }
}
