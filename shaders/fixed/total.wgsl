// Adds up the losses of one block of rows after the other, each in a workgroup and a fixed order, and divides them: into
// the words from `first` on. `fresh` forgets what was there. Rows without a label have no loss.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let start = group.x * p.rows;
    var total = 0.0;
    for (var row = start + lane; row < start + p.rows; row += WIDTH) {
        total += losses[row * LOSSES + LOSS];
    }
    total = sum_all(lane, total) / f32(p.divisor);
    if (lane == 0u) {
        let at = p.first + group.x;
        totals[at] = select(totals[at], 0.0, p.fresh != 0u) + total;
    }
}
