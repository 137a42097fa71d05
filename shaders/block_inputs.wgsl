// The inputs of a block-diagonal layer, a block a feature: its mask m, then its columns times m; zeros up to the pitch.
// A block behind the features' has the columns that are known from the start, with a mask of 1. Masks are `given`; or
// every row sees everything, but for one more behind the last, which sees nothing: what a feature that was not acquired
// looks like does not depend on the row.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    let at = id.y;
    let rows = p.rows + 1u - min(p.given, 1u);
    if (i >= p.pitch || at >= p.blocks * rows) {
        return;
    }
    let block = at / rows;
    let row = at % rows;
    var start = known_start();
    var end = known_end();
    var mask = 1.0;
    if (block < p.features) {
        start = columns_start(block);
        end = columns_end(block);
        if (p.given != 0u) {
            mask = masks[row * p.mask_stride + block];
        }
    }
    if (row >= p.rows) {
        mask = 0.0;
    }
    var value = 0.0;
    if (i == 0u) {
        value = mask;
    } else if (start + i - 1u < end && mask != 0.0) {
        value = mask * x[row * p.x_pitch + groups[start + i - 1u]];
    }
    input[at * p.pitch + i] = value;
}
