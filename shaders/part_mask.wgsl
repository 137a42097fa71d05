// Draws masks for the predictor from what the rollout asked: of the first 2 L features of a path, each
// with probability one half, L = Σ_{t≥1} s_t being how many the policy asks before it stops. A policy
// that has become certain asks the same of the same instance every time, and a predictor that only sees
// those masks learns the instances by heart; parts of them are different every time. A thread a row; the
// masks go into the first row of the relax tape, the rows' weight into the scalars.
struct Params {
    rows: u32,
    steps: u32,
    features: u32,
    pitch: u32,
    first: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> clock: array<u32>;
@group(0) @binding(2) var<storage, read> when: array<u32>;
@group(0) @binding(3) var<storage, read> hyper: array<f32>;
@group(0) @binding(4) var<storage, read_write> scalars: array<f32>;
@group(0) @binding(5) var<storage, read_write> relax: array<f32>;

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
    let seen_at = row * p.features;
    let end = seen_at + p.features;
    var bits = vec4(0u, 0u, 0u, 0u);
    for (var i = 0u; seen_at + i < end; i++) {
        if (i % 128u == 0u) {
            bits = random_bits(STREAM_PART, p.first + row, 0u, i / 128u);
        }
        let kept = (bits[(i / 32u) % 4u] >> (i % 32u)) & 1u;
        let at = when[seen_at + i];
        let seen = at != NEVER && f32(at) < 2.0 * asked && kept == 1u;
        relax[soft_at(row, p.pitch) + i] = select(0.0, 1.0, seen);
    }
    scalars[row * SCALARS + WEIGHT] = hyper[PARTS];
}
