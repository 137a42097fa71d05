// Draws masks, `mask_stride` apart: one random bit a feature; or, with `all`, every feature is seen.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = id.x;
    let row = id.y;
    if (word * 32u >= p.features || row >= p.rows) {
        return;
    }
    var bits = random_bits(STREAM_MASK, p.first + row, 0u, word / 4u)[word % 4u];
    if (p.all != 0u) {
        bits = 0xffffffffu;
    }
    for (var i = 0u; i < 32u; i++) {
        let feature = word * 32u + i;
        if (feature < p.features) {
            masks[row * p.mask_stride + feature] = f32((bits >> i) & 1u);
        }
    }
}
