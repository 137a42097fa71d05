// Draws transitions out of the replay memory (replay_store.wgsl), a thread each: an episode of those that are kept, then one of
// its transitions. Where an episode may be ended (`stops`), the action `features` ends it, and one that was never ended is
// ended after its last step: of L actions, the first that is the end included, one is drawn. What is drawn is a state, the
// features acquired before; the action; and the state that it leads to:
//   masks[row] = m_t      masks[rows + row] = m_t + e_a, or m_t where it ends      taken = (a, t + 1)      returns[REWARD] = r_t

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let drawn = random_bits(p.stream, p.first + row, p.update, 0u);
    let episode = drawn.x % (min(max(kept[0], 1u), p.rounds) * p.batch);
    let at = episode * (p.steps + 1u) + 1u;
    // Bounds and conditions that depend on the row: see nmppg/select.wgsl.
    let end = at + p.steps;
    var length = 0u;
    var ended = 0u;
    for (var i = at; i < end; i++) {
        length += 1u - ended;
        if (episodes[i] == p.features) {
            ended = 1u;
        }
    }
    length += p.stops * (1u - ended);
    let t = drawn.y % max(length, 1u);
    var action = p.features;
    if (t < p.steps) {
        action = episodes[at + t];
    }

    let now_at = row * p.pitch;
    let next_at = (p.rows + row) * p.pitch;
    let last = now_at + p.features;
    for (var i = 0u; now_at + i < last; i++) {
        masks[now_at + i] = 0.0;
        masks[next_at + i] = 0.0;
    }
    for (var i = at; i < at + t; i++) {
        masks[now_at + episodes[i]] = 1.0;
        masks[next_at + episodes[i]] = 1.0;
    }
    if (action < p.features) {
        masks[next_at + action] = 1.0;
    }
    places[row] = episodes[at - 1u];
    taken[row * TAKEN + ACTION] = action;
    taken[row * TAKEN + HELD] = t + 1u;
    var reward = 0.0;
    if (p.rewarded * p.rows > row) {
        reward = earned[episode * p.steps + min(t, p.steps - 1u)];
    }
    returns[row * RETURNS + REWARD] = reward;
    returns[row * RETURNS + ERROR] = 0.0;
}
