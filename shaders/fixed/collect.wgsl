// Adds what the lanes have found in a chunk to the candidates' scores. The first chunk of a pass begins new ones: the
// clock has moved on by then, so it says 1.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 64u + id.x;
    if (i >= p.len) {
        return;
    }
    var total = select(scores[i], 0.0, clock[CHUNK] <= 1u);
    for (var at = i; at < p.lanes * p.len; at += p.len) {
        total += totals[at];
    }
    scores[i] = total;
}
