// Draws masks for the predictor from what the rollout asked: of the first 2 L features of a path, each
// with probability one half, L = Σ_{t≥1} s_t being how many the policy asks before it stops. A policy
// that has become certain asks the same of the same instance every time, and a predictor that only sees
// those masks learns the instances by heart; sub-masks of them are different every time. One in sixteen is empty: what is
// believed before anything was seen is to be how frequent the classes are, and hardly any sub-mask of a long path is
// empty by chance. A thread a row; the masks go into the first row of the mask tape, the rows' weight into the scalars.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    var asked = 0.0;
    // Bounds that depend on the row: see select.wgsl.
    let last = p.steps * p.rows + row;
    for (var tape_row = p.rows + row; tape_row <= last; tape_row += p.rows) {
        asked += scalars[tape_row * SCALARS + SURVIVAL];
    }
    // Nothing is before 0.
    let is_empty = random_bits(STREAM_SUBMASK, p.first + row, 1u, 0u).x < (1u << 28u);
    let reach = select(2.0 * asked, 0.0, is_empty);
    let seen_at = row * p.features;
    let end = seen_at + p.features;
    var bits = vec4(0u, 0u, 0u, 0u);
    for (var i = 0u; seen_at + i < end; i++) {
        if (i % 128u == 0u) {
            bits = random_bits(STREAM_SUBMASK, p.first + row, 0u, i / 128u);
        }
        let kept = (bits[(i / 32u) % 4u] >> (i % 32u)) & 1u;
        let at = acquired_at[seen_at + i];
        let seen = at != NEVER && f32(at) < reach && kept == 1u;
        masks[soft_at(row, p.pitch) + i] = select(0.0, 1.0, seen);
    }
    scalars[row * SCALARS + WEIGHT] = settings[SUBMASKS];
}
