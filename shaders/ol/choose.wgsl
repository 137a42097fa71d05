// One step of OL. A row of the outputs has the classes' logits, then Q of each feature and Q of stopping.
//   a = argmax of Q over the features that are not acquired and, where an episode may be ended (`stop`), stopping;
// of equal ones the first, so that a feature comes before stopping. With probability ε, if there is to be exploration, one of
// the same by chance: that with the largest random number. Who has stopped, or has nothing left, goes on stopping.
fn acquired(feature_at: u32) -> bool {
    return p.step > 0u && acquired_at[feature_at] != NEVER;
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let row = row_of(group, groups, thread);
    let lane = lane_of(thread);
    if (row >= p.rows) {
        return;
    }
    let values_at = row * p.pitch + p.classes;
    let seen_at = row * p.features;
    // Bounds and conditions that depend on the row: see nmppg/select.wgsl.
    let end = seen_at + p.features + p.stop;
    let instance = p.first + row;
    let drawn = random_bits(STREAM_EXPLORE, instance, p.step, 0u);
    let explores = p.explore * p.rows > row && unit(drawn.x) < settings[EXPLORE];
    var stopped = false;
    if (p.step > 0u) {
        stopped = path[(p.step - 1u) * p.rows + row] == p.features;
    }
    var best = Best(BLOCKED, NOBODY);
    for (var i = lane; seen_at + i < end; i += WIDTH) {
        if (i < p.features && acquired(seen_at + min(i, p.features - 1u))) {
            continue;
        }
        var value = outputs[values_at + i];
        if (explores) {
            value = unit(random_bits(STREAM_EXPLORE, instance, p.step, 1u + i / 4u)[i % 4u]);
        }
        let candidate = Best(value, i);
        if (better(candidate, best)) {
            best = candidate;
        }
    }
    best = best_all(lane, best);
    meet(); // `acquired_at` was read by all and is changed by one
    if (p.step == 0u) {
        for (var i = lane; i < p.features; i += WIDTH) {
            acquired_at[seen_at + i] = NEVER;
        }
        meet();
    }
    if (lane == 0u) {
        let action = select(min(best.index, p.features), p.features, stopped);
        path[p.step * p.rows + row] = action;
        if (action < p.features) {
            acquired_at[seen_at + action] = p.step;
        }
    }
}
