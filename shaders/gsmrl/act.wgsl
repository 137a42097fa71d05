// One step of a rollout: what is done is drawn from π = softmax(z) over what is open and the stop, as the largest of z plus
// Gumbel noise. Who has stopped stays so. Kept are whether this step and the next one are taken, and ln π of what was done. A
// thread an instance.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let tape_row = p.step * p.rows + row;
    let at = tape_row * p.pitch;
    let stop = at + p.features;
    let seen_at = row * p.features;
    var live = true;
    if (p.step > 0u) {
        live = kept[tape_row * KEPT + KEPT_LIVE] > 0.5;
    }
    var top = logits[stop];
    var best = logits[stop] + gumbel[stop];
    var chosen = stop;
    for (var i = at; i < stop; i++) {
        if (p.step == 0u) {
            acquired_at[seen_at + i - at] = NEVER;
        }
        if (acquired_at[seen_at + i - at] == NEVER) {
            top = max(top, logits[i]);
            if (logits[i] + gumbel[i] > best) {
                best = logits[i] + gumbel[i];
                chosen = i;
            }
        }
    }
    var mass = exp_down(logits[stop] - top);
    for (var i = at; i < stop; i++) {
        if (acquired_at[seen_at + i - at] == NEVER) {
            mass += exp_down(logits[i] - top);
        }
    }
    if (!live) {
        chosen = stop;
    }
    path[tape_row] = chosen - at;
    if (chosen < stop) {
        acquired_at[seen_at + chosen - at] = p.step;
    }
    kept[tape_row * KEPT + KEPT_LIVE] = select(0.0, 1.0, live);
    kept[(tape_row + p.rows) * KEPT + KEPT_LIVE] = select(0.0, 1.0, chosen < stop);
    kept[tape_row * KEPT + KEPT_LOG_CHANCE] = logits[chosen] - top - ln_pos(mass);
}
