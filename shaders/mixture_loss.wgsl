// The loss of a belief that is the mean of softmaxes over S samples, and its gradient. With f_s = softmax(logits_s),
//   f = Σ_s f_s / S      ℓ = −w_y ln f_y      ∂ℓ/∂logits_s = w_y r_s (f_s − onehot y),      r_s = f_sy / Σ f_sy,
// as ∂f_sy/∂logits_s = f_sy (onehot y − f_s). In logarithms, so that samples that are all sure of another class still have
// a gradient. The logits become the gradient if the predictor is to `learn`, else they stay. A thread an instance, whose
// samples lie `rows` apart; what has no label counts zero. The class weights follow the features' costs in `costs`.

// The largest logit of a sample, and the logarithm of the sum of its exponentials above it.
fn top_and_mass(at: u32) -> vec2<f32> {
    var top = logits[at];
    for (var i = at + 1u; i < at + p.classes; i++) {
        top = max(top, logits[i]);
    }
    var mass = 0.0;
    for (var i = at; i < at + p.classes; i++) {
        mass += exp_down(logits[i] - top);
    }
    return vec2(top, mass);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let label = y[row];
    let labelled = label < p.classes;
    let hit = select(0u, label, labelled);
    let end = p.rows * p.samples;
    let to = row * p.pitch;
    for (var c = to; c < to + p.classes; c++) {
        belief[c] = 0.0;
    }
    // Samples one after the other: the largest ln f_sy so far, and the sum of all above it.
    var best = BLOCKED;
    var sum = 0.0;
    for (var tape_row = row; tape_row < end; tape_row += p.rows) {
        let at = tape_row * p.pitch;
        let found = top_and_mass(at);
        for (var c = 0u; c < p.classes; c++) {
            belief[to + c] += exp_down(logits[at + c] - found.x) / found.y;
        }
        let of_label = logits[at + hit] - found.x - ln_pos(found.y);
        if (of_label > best) {
            sum = sum * exp_down(best - of_label) + 1.0;
            best = of_label;
        } else {
            sum += exp_down(of_label - best);
        }
    }
    var guess = 0u;
    for (var c = 0u; c < p.classes; c++) {
        belief[to + c] /= f32(p.samples);
        if (belief[to + c] > belief[to + guess]) {
            guess = c;
        }
    }
    let weight = select(0.0, costs[p.weights + hit], labelled);
    losses[row * LOSSES + LOSS] = weight * (ln_pos(f32(p.samples)) - best - ln_pos(sum));
    losses[row * LOSSES + GUESS] = f32(guess);
    if (p.learn * p.rows <= row) {
        return;
    }
    for (var tape_row = row; tape_row < end; tape_row += p.rows) {
        let at = tape_row * p.pitch;
        let found = top_and_mass(at);
        let share = weight * exp_down(logits[at + hit] - found.x - ln_pos(found.y) - best) / sum;
        for (var c = 0u; c < p.classes; c++) {
            let f = exp_down(logits[at + c] - found.x) / found.y;
            logits[at + c] = share * (f - select(0.0, 1.0, c == hit));
        }
    }
}
