// Adds one word of each row of a tape (`stride` words a row) to a word of the metrics, divided by how many rows an
// instance has, in one workgroup and a fixed order: the losses, or whatever else is to be a mean over instances. Rows
// without a label count for nothing. In training it also counts the instances, and what is lowered is what is lost.
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    var total = 0.0;
    for (var row = lane; row < p.rows; row += WIDTH) {
        if (y[row % p.batch] != NO_LABEL) {
            total += losses[row * p.stride + p.at];
        }
    }
    total = sum_all(lane, total);
    if (lane == 0u) {
        metrics[p.word] += total / f32(p.divisor);
        if (p.training != 0u) {
            metrics[LOST] += total / f32(p.divisor);
            metrics[INSTANCES] += f32(p.batch);
        }
    }
}
