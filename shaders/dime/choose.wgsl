// One step of DIME. A row of the outputs has the classes' logits, then v of each feature. With f = softmax(logits) and
// class weights w, what an instance is expected to lose now is
//   B = H(f) / Σ_y f_y/w_y,      H(f) = −Σ f ln f,
// as a predictor trained with weights believes f ∝ w p, so that Σ_y p_y w_y (−ln f_y) = H(f) Σ_y w_y p_y; without weights
// it is H(f). (A class of no weight is hardly believed; it counts as if it had one of 1.) No feature can be worth more:
//   q_i = σ(v_i) B      a = argmax of q_i / max(c_i, 0.001), or of q_i − price·c_i,      of those not acquired;
// or, with probability ε and if there is to be exploration, one of them by chance: that with the largest random number.
// B does not change the order of the quotients and is left out of them. It is kept for the way back.
fn acquired(feature_at: u32) -> bool {
    return p.step > 0u && acquired_at[feature_at] != NEVER;
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let row = row_of(group, groups, thread);
    let lane = lane_of(thread);
    if (row >= p.rows) {
        return;
    }
    let tape_row = p.first_row + row;
    let logits_at = tape_row * p.pitch;
    let values_at = logits_at + p.classes;
    let seen_at = row * p.features;
    // Bounds that depend on the row: see nmppg/select.wgsl.
    let end = seen_at + p.features;

    var top = outputs[logits_at];
    for (var i = logits_at; i < values_at; i++) {
        top = max(top, outputs[i]);
    }
    var mass = 0.0;
    var spread = 0.0;
    var weighed = 0.0;
    for (var i = logits_at; i < values_at; i++) {
        let e = exp_down(outputs[i] - top);
        let weight = costs[p.features + i - logits_at];
        mass += e;
        spread += e * (top - outputs[i]);
        weighed += e / select(1.0, weight, weight > 0.0);
    }
    // H = ln mass + spread/mass, of which Σ f/w = weighed/mass is the share.
    let bound = (ln_pos(mass) * mass + spread) / weighed;

    let instance = p.first + row;
    let drawn = random_bits(STREAM_EXPLORE, instance, p.step, 0u);
    let explores = p.explore * p.rows > row && unit(drawn.x) < settings[EXPLORE];
    let by_ratio = settings[RATIO] > 0.5;
    var best = Best(BLOCKED, NOBODY);
    for (var i = lane; seen_at + i < end; i += WIDTH) {
        if (acquired(seen_at + i)) {
            continue;
        }
        var value = 0.0;
        if (explores) {
            value = unit(random_bits(STREAM_EXPLORE, instance, p.step, 1u + i / 4u)[i % 4u]);
        } else {
            let share = sigmoid(outputs[values_at + i]);
            value = select(share * bound - settings[PRICE] * costs[i], share / max(costs[i], 0.001), by_ratio);
        }
        let candidate = Best(value, i);
        if (better(candidate, best)) {
            best = candidate;
        }
    }
    best = best_all(lane, best);
    meet(); // `acquired_at` was read by all and is changed by one
    if (p.step == 0u) {
        for (var i = lane; seen_at + i < end; i += WIDTH) {
            acquired_at[seen_at + i] = NEVER;
        }
        meet();
    }
    if (lane == 0u) {
        bounds[tape_row * VALUES + BOUND] = bound;
        path[p.step * p.rows + row] = min(best.index, p.features);
        if (best.index < p.features) {
            acquired_at[seen_at + best.index] = p.step;
        }
    }
}
