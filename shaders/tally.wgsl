// Adds a chunk of greedily evaluated rows to the metrics, in one workgroup and a fixed order: the sums
// of the loss, of the right answers, of the cost, of the acquisitions, and the
// number of instances. Rows without a label count for nothing. Each pass over the split has metrics of its own,
// from those of number `slot` on.

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    var loss = 0.0;
    var correct = 0.0;
    var cost = 0.0;
    var acquired = 0.0;
    var count = 0.0;
    for (var row = lane; row < p.rows; row += WIDTH) {
        if (y[row] == NO_LABEL) {
            continue;
        }
        loss += losses[row * LOSSES + LOSS];
        correct += select(0.0, 1.0, u32(losses[row * LOSSES + GUESS]) == y[row]);
        count += 1.0;
        // A bound that depends on the row: see nmppg/select.wgsl.
        let last = p.steps * p.rows + row;
        for (var at = row; at < last; at += p.rows) {
            let feature = path[at];
            if (feature < p.features) {
                cost += costs[feature];
                acquired += 1.0;
            }
        }
    }
    loss = sum_all(lane, loss);
    correct = sum_all(lane, correct);
    cost = sum_all(lane, cost);
    acquired = sum_all(lane, acquired);
    count = sum_all(lane, count);
    if (lane == 0u) {
        let at = (clock[CHUNK] / max(p.chunks, 1u) + p.slot) * METRICS;
        metrics[at] += loss;
        metrics[at + 1u] += correct;
        metrics[at + 2u] += cost;
        metrics[at + 3u] += acquired;
        metrics[at + 4u] += count;
    }
}
