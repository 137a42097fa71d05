// The surrogate's loss of each instance and its gradient. With ln p(x_O|y) and ln p(x_U|x_O, y) of every class in `logs` (the
// first part and the second), ln p(y) in `prior` (up to a constant), label l of weight w, n columns and
//   a_y = ln p(x_U|x_O, y) + ln p(x_O|y) + ln p(y)      b_y = ln p(x_O|y) + ln p(y),
// Bayes says p(y|x) = softmax(a) and p(y|x_O) = softmax(b), and p(x_U|x_O) = Σ e^a / Σ e^b. The loss is
//   L = −w ln softmax(a)_l − w ln softmax(b)_l − λ/n · ln p(x_U|x_O)
//   ∂L/∂a = w (softmax(a) − onehot l) − λ/n · softmax(a)      ∂L/∂b = w (softmax(b) − onehot l) + λ/n · softmax(b).
// `logs` and `prior` become their gradients: ln p(x_U|x_O, y) has ∂L/∂a_y, the other two have ∂L/∂a_y + ∂L/∂b_y.
// A thread an instance.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let label = y[row];
    let prior_at = row * p.prior_pitch;
    let end = prior_at + p.classes;
    let part = p.rows * p.classes;
    var top = vec2(BLOCKED, BLOCKED);
    var guess = 0u;
    var of_label = vec2(0.0, 0.0);
    for (var i = prior_at; i < end; i++) {
        let at = (i - prior_at) * p.rows + row;
        let b = logs[at] + prior[i];
        let both = vec2(b + logs[part + at], b);
        if (both.y > top.y) {
            guess = i - prior_at;
        }
        top = max(top, both);
        if (i - prior_at == label) {
            of_label = both;
        }
    }
    var mass = vec2(0.0, 0.0);
    for (var i = prior_at; i < end; i++) {
        let at = (i - prior_at) * p.rows + row;
        let b = logs[at] + prior[i];
        mass += vec2(exp_down(b + logs[part + at] - top.x), exp_down(b - top.y));
    }
    let log_mass = vec2(ln_pos(mass.x), ln_pos(mass.y)) + top;
    let unlikely = settings[LIKELIHOOD] / f32(p.columns);
    var weight = 0.0;
    var loss = 0.0;
    if (label != NO_LABEL) {
        weight = costs[p.weights + label];
        loss = weight * (log_mass.x - of_label.x + log_mass.y - of_label.y) - unlikely * (log_mass.x - log_mass.y);
    }
    losses[row * LOSSES + LOSS] = loss;
    losses[row * LOSSES + GUESS] = f32(guess);
    for (var i = prior_at; i < end; i++) {
        let at = (i - prior_at) * p.rows + row;
        let b = logs[at] + prior[i];
        let share = vec2(exp_down(b + logs[part + at] - top.x), exp_down(b - top.y)) / mass;
        let hit = select(0.0, 1.0, i - prior_at == label);
        var grads = weight * (share - hit) + unlikely * vec2(-share.x, share.y);
        if (label == NO_LABEL) {
            grads = vec2(0.0, 0.0);
        }
        logs[part + at] = grads.x;
        logs[at] = grads.x + grads.y;
        prior[i] = grads.x + grads.y;
    }
}
