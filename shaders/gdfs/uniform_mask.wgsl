// Draws the pretraining's masks, of uniform cardinality: for a row's u, uniform in 0 … 1, each feature is seen where a
// number of its own is above u. A thread a row.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let threshold = random_bits(STREAM_CARDINALITY, p.first + row, 1u, 0u).x;
    let at = row * p.pitch;
    let end = at + p.features;
    var bits = vec4(0u, 0u, 0u, 0u);
    for (var i = 0u; at + i < end; i++) {
        if (i % 4u == 0u) {
            bits = random_bits(STREAM_CARDINALITY, p.first + row, 0u, i / 4u);
        }
        masks[at + i] = select(0.0, 1.0, bits[i % 4u] > threshold);
    }
}
