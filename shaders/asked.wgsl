// Adds a chunk of greedily evaluated rows to the counts of what was asked: [step][feature], the last
// column being the stop, where an instance stays. One thread a count, so no atomics are needed. Rows
// without a label count for nothing.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let action = id.x;
    let step = id.y;
    if (action > p.features || step >= p.steps) {
        return;
    }
    var count = 0u;
    for (var row = 0u; row < p.rows; row++) {
        if (path[step * p.rows + row] == action && y[row] != NO_LABEL) {
            count += 1u;
        }
    }
    counts[step * (p.features + 1u) + action] += count;
}
