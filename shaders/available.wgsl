// What can be had of each instance, before anything is acquired: everything; or, of a share of the instances, every
// feature but those that a number of its own puts below the instance's rate, uniform in 0 … 1. What cannot
// be had is marked in `acquired_at`, and has a one among the `features` columns of the row that begin at `column`, if the
// networks are told. All rollouts of an instance have the same. A thread a row.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let instance = (p.first + row) / max(clock[COPIES], 1u);
    let drawn = random_bits(STREAM_AVAILABLE, instance, 1u, 0u);
    // 0 without a restriction: no number is below it.
    let rate = select(0u, drawn.y, unit(drawn.x) < settings[RESTRICTED]);
    // Conditions as a row sees them: see nmppg/select.wgsl.
    let told = p.told * p.rows > row;
    let at = row * p.features;
    let end = at + p.features;
    var bits = vec4(0u, 0u, 0u, 0u);
    for (var i = 0u; at + i < end; i++) {
        if (i % 4u == 0u && rate > 0u) {
            bits = random_bits(STREAM_AVAILABLE, instance, 0u, i / 4u);
        }
        let closed = bits[i % 4u] < rate;
        acquired_at[at + i] = select(NEVER, UNAVAILABLE, closed);
        if (told) {
            x[row * p.pitch + p.column + i] = select(0.0, 1.0, closed);
        }
    }
}
