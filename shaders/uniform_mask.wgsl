// Draws masks of uniform cardinality, `mask_stride` apart: a row's share is uniform in 0 … `most` (of 65536 parts), and each
// feature is seen where a number of its own is above 1 less that share. A thread a row.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    // A product of 48 bits, without its lowest 16: `most` = 65536 leaves the row's share as it was drawn.
    let share = ~random_bits(p.stream, p.first + row, 1u, 0u).x;
    let threshold = ~((share >> 16u) * p.most + (((share & 0xffffu) * p.most) >> 16u));
    let at = row * p.mask_stride;
    let end = at + p.features;
    var bits = vec4(0u, 0u, 0u, 0u);
    for (var i = 0u; at + i < end; i++) {
        if (i % 4u == 0u) {
            bits = random_bits(p.stream, p.first + row, 0u, i / 4u);
        }
        masks[at + i] = select(0.0, 1.0, bits[i % 4u] > threshold);
    }
}
