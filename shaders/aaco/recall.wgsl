// What the search asked of a row when it was rolled out, and the mask that the predictor is to learn on, a thread a row.
// slots[row of the table] is 1 + the number of its rollout, 0 if there is none; visited has the path of each rollout,
// 1 + a feature at a time, then 0. With whole = 1 the mask is all of the path. In training a share VISITED of the rows with
// a rollout sees its beginning, of any length; all other rows have masks of uniform cardinality: for a row's u, uniform
// in 0 … 1, each feature is seen where a number of its own is above u. In an evaluation (judged = 1) all have those, each
// row of the table the same at any time, so that what they come to can be compared.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let here = place(row);
    let slot = select(0u, slots[here.source], here.there);
    let known = f32(min(slot, 1u));
    // Bounds that depend on the row: see nmppg/select.wgsl.
    let first = max(slot, 1u) - 1u;
    let last = p.steps * p.rows + row;
    var length = 0u;
    var at_path = first * p.steps;
    for (var to = row; to < last; to += p.rows) {
        let asked = visited[at_path] * min(slot, 1u);
        path[to] = select(asked - 1u, p.features, asked == 0u);
        length += min(asked, 1u);
        at_path += 1u;
    }
    // Threshold, which kind of mask, how much of the path.
    let training = 1u - p.judged;
    let key = vec4(clock[SEED_LO], clock[SEED_HI], STREAM_VISITED + p.judged, clock[STEP] * training);
    let who = select(here.source, p.first + row, training == 1u);
    let drawn = threefry(key, vec4(who, 1u, 0u, 0u));
    let share = settings[VISITED] * known * f32(training) + f32(p.whole);
    let follows = f32(drawn.y >> 8u) / 16777216.0 < share;
    let threshold = select(drawn.x, 0xffffffffu, follows);
    let at = row * p.pitch;
    let end = at + p.features;
    var bits = vec4(0u, 0u, 0u, 0u);
    for (var i = 0u; at + i < end; i++) {
        if (i % 4u == 0u) {
            bits = threefry(key, vec4(who, 0u, i / 4u, 0u));
        }
        masks[at + i] = select(0.0, 1.0, bits[i % 4u] > threshold);
    }
    if (!follows) {
        return;
    }
    let seen = max(drawn.z % (length + 1u), p.whole * length);
    for (var t = 0u; t < seen; t++) {
        masks[at + path[t * p.rows + row]] = 1.0;
    }
}
