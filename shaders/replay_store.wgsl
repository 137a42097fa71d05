// Keeps the episodes of a micro-batch in the replay memory, a thread an episode. The memory is a ring of `rounds` batches:
// the batch that is kept goes over the oldest, kept[0] % rounds. An episode is where its row lies in the data set, then what
// was done at each step; earned[…] is what each step was rewarded with, where that is not worked out when it is drawn.
// `lane_at` is where the lane's part of path and rewards begins; both lie step by step, rows side by side.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let episode = (kept[0] % p.rounds) * p.batch + p.first + row;
    let to = episode * (p.steps + 1u);
    episodes[to] = place(row).source;
    // Bounds and conditions that depend on the row: see nmppg/select.wgsl.
    let end = to + p.steps;
    let rewarded = p.rewarded * p.rows > row;
    var from_at = p.lane_at + row;
    for (var t = 0u; to + t < end; t++) {
        episodes[to + 1u + t] = path[from_at];
        if (rewarded) {
            earned[episode * p.steps + t] = rewards[from_at];
        }
        from_at += p.rows;
    }
}
