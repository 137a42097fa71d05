// Cross-entropy of each row, weighted by its class, and its gradient: with f = softmax(logits),
//   ℓ = −w_y ln f_y        ∂ℓ/∂logits = w_y (f − onehot y), written over the logits.
// A thread a row; `batch` rows repeat their labels along the tape. Rows without a label, and those before
// `from_row`, count zero.
// The class weights follow the features' costs in `costs`. With a `weight_stride`, the gradient (not
// the loss) is also multiplied by the row's own weight, a word of `row_weights`: how much the predictor cares for it.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let at = row * p.pitch;
    let label = y[row % p.batch];
    var top = logits[at];
    var guess = 0u;
    for (var c = 1u; c < p.classes; c++) {
        if (logits[at + c] > top) {
            top = logits[at + c];
            guess = c;
        }
    }
    var mass = 0.0;
    for (var c = 0u; c < p.classes; c++) {
        mass += exp_down(logits[at + c] - top);
    }
    var weight = 0.0;
    var loss = 0.0;
    if (label != NO_LABEL && row >= p.from_row) {
        weight = costs[p.weights + label];
        loss = weight * (ln_pos(mass) + top - logits[at + label]);
    }
    losses[row * LOSSES + LOSS] = loss;
    losses[row * LOSSES + GUESS] = f32(guess);
    if (p.weight_stride != 0u) {
        weight *= row_weights[row * p.weight_stride + p.weight_word];
    }
    for (var c = 0u; c < p.classes; c++) {
        let f = exp_down(logits[at + c] - top) / mass;
        logits[at + c] = weight * (f - select(0.0, 1.0, c == label));
    }
}
