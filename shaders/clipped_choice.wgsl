// The clipped surrogate of kept choices and its gradient, which the logits become. With π = softmax(z) over what was open,
// a what was done, ρ = π_a/π_a(then), A its advantage, c the clip and β the weight of the entropy H,
//   L = −min(ρ A, clamp(ρ, 1−c, 1+c) A) − β H      H = −Σ π ln π
//   ∂L/∂z_i = g (1[i = a] − π_i) + β π_i (ln π_i + H),
// with g = −ρ A, or 0 where the clamped one is less: ρ > 1+c with A > 0, or ρ < 1−c with A < 0. What was acquired
// before the step has no gradient, nor have steps that were not taken. A thread a step.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let step = row / p.batch;
    let seen_at = (row % p.batch) * p.features;
    let at = row * p.pitch;
    let stop = at + p.features;
    let kept_at = row * KEPT;
    let live = kept[kept_at + KEPT_LIVE] > 0.5;
    var top = logits[stop];
    for (var i = at; i < stop; i++) {
        if (acquired_at[seen_at + i - at] >= step) {
            top = max(top, logits[i]);
        }
    }
    var mass = 0.0;
    var spread = 0.0;
    for (var i = at; i <= stop; i++) {
        var open = i == stop;
        if (!open) {
            open = acquired_at[seen_at + i - at] >= step;
        }
        if (open) {
            let e = exp_down(logits[i] - top);
            mass += e;
            spread += e * (top - logits[i]);
        }
    }
    let log_mass = ln_pos(mass);
    let entropy = log_mass + spread / mass;
    let log_chance = logits[at + path[row]] - top - log_mass;
    let ratio = exp(clamp(log_chance - kept[kept_at + KEPT_LOG_CHANCE], -20.0, 20.0));
    let advantage = kept[kept_at + KEPT_ADVANTAGE];
    let clip = settings[p.clip];
    let is_clipped = (advantage > 0.0 && ratio > 1.0 + clip) || (advantage < 0.0 && ratio < 1.0 - clip);
    let g = select(-advantage * ratio, 0.0, is_clipped);
    let bonus = settings[p.bonus];
    kept[kept_at + KEPT_ENTROPY] = select(0.0, entropy, live);
    for (var i = at; i <= stop; i++) {
        var open = i == stop;
        if (!open) {
            open = acquired_at[seen_at + i - at] >= step;
        }
        var grad = 0.0;
        if (open && live) {
            let log_share = logits[i] - top - log_mass;
            let share = exp_down(log_share);
            let hit = select(0.0, 1.0, i - at == path[row]);
            grad = flush(g * (hit - share) + bonus * share * (log_share + entropy));
        }
        logits[i] = grad;
    }
}
