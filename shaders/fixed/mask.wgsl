// Draws the training's masks, a thread a row. A share LISTED of the rows sees the beginning of the list, of any length up
// to what is chosen so far, with MORE also one feature by chance, which is what the next choice is tried on. All other
// rows have masks of uniform cardinality: for a row's u, uniform in 0 … 1, each feature is seen where a number of its own
// is above u.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    // Threshold, which kind of mask, how much of the list, which feature besides.
    let drawn = random_bits(STREAM_LIST, p.first + row, 1u, 0u);
    let listed = f32(drawn.y >> 8u) / 16777216.0 < settings[LISTED];
    let threshold = select(drawn.x, 0xffffffffu, listed);
    // Bounds that depend on the row: see nmppg/select.wgsl.
    let at = row * p.pitch;
    let end = at + p.features;
    var bits = vec4(0u, 0u, 0u, 0u);
    for (var i = 0u; at + i < end; i++) {
        if (i % 4u == 0u) {
            bits = random_bits(STREAM_LIST, p.first + row, 0u, i / 4u);
        }
        masks[at + i] = select(0.0, 1.0, bits[i % 4u] > threshold);
    }
    if (!listed) {
        return;
    }
    var count = 0u;
    while (row + count < row + p.steps && u32(list[count]) < p.features) {
        count++;
    }
    let length = drawn.z % (count + 1u);
    for (var t = 0u; t < length; t++) {
        masks[at + u32(list[t])] = 1.0;
    }
    if (settings[MORE] > 0.0) {
        masks[at + drawn.w % p.features] = 1.0;
    }
}
