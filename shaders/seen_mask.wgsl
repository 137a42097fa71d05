// The masks of a step, from when each feature was acquired; `nothing_seen`: zero, whatever is there.
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let feature = id.x;
    let row = id.y;
    if (feature >= p.mask_stride || row >= p.rows) {
        return;
    }
    var seen = 0.0;
    if (feature < p.features && p.nothing_seen * p.rows <= row) {
        seen = select(0.0, 1.0, acquired_at[row * p.features + feature] < UNAVAILABLE);
    }
    masks[(p.step * p.rows + row) * p.mask_stride + feature] = seen;
}
