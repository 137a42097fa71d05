// The networks' dense input for any masks, `mask_stride` apart: the columns times their feature's mask, then the
// mask itself; zeros up to the pitch. `nothing_seen`: the mask is zero, whatever the tape says. Columns
// that are known from the start have no mask.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    let row = id.y;
    if (i >= p.input_pitch || row >= p.rows) {
        return;
    }
    let tape_row = p.step * p.rows + row;
    let mask = tape_row * p.mask_stride;
    var value = 0.0;
    if (i < p.columns) {
        let feature = feature_of(i);
        if (feature == p.features) {
            value = x[row * p.x_pitch + i];
        } else if (p.nothing_seen == 0u) {
            value = x[row * p.x_pitch + i] * masks[mask + feature];
        }
    } else if (p.nothing_seen == 0u && i < p.columns + p.features) {
        value = masks[mask + i - p.columns];
    }
    input[tape_row * p.input_pitch + i] = value;
}
