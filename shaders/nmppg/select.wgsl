// One acquisition of the rollout. With z the logits (acquired ones blocked):
//   p = softmax(z/τh)            H = −Σ p ln p
//   u = (z/τh + ε)/τs            r̃ = softmax(u over features)     j = argmax u over features
//   q, g: the stop's and the features' shares of softmax(u), g summed from the feature masses
//   exact stop: q, g are the shares of p instead. Of the feature that is chosen if one is, u and p say
//   the same (Gumbel noise), so this only takes the noise out of the stop: J is then its mean over it.
//   hazard h, a run may be cut short at any step: q = h + (1 − h) q₀, g = (1 − h) g₀
//   m̃' = m̃ + (1 − m̃) r̃           s' = s g        price = c_j, or Σ r̃ c when the rollout is soft
//   predictor's weights: (1 − submasks) (1 − focus + focus (k + 1) s q), with q = 1 at the end
// Not `relaxed` (no step of the gradient goes through m̃ and r̃, and the stop is exact): m̃ and r̃ are not made.
// What was acquired or cannot be had is blocked (`acquired_at`, which available.wgsl begins). Where nothing is open, p is the
// stop's alone, so q₀ = 1 and g = 0; the step acquires nobody's feature, d, which adds nothing to any sum.
// Blocked logits are written back as BLOCKED, so that the backward pass sees what was blocked.

// How much the predictor cares for a row where so much mass stops.
fn weight_of(mass: f32) -> f32 {
    let whole = 1.0 - settings[SUBMASKS];
    return whole * (1.0 - settings[FOCUS]) + whole * settings[FOCUS] * f32(p.steps + 1u) * mass;
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
    let tape_row = p.step * p.rows + row;
    let next_row = tape_row + p.rows;
    // Conditions as a row sees them: lavapipe compiles a kernel anew for every dispatch if it finds some that
    // depend on the parameters alone and hopes to gain by it.
    let first = tape_row < p.rows;
    let relaxed = p.relaxed * p.rows > row;
    let features = min(p.features, arrayLength(&costs));
    let z_at = tape_row * p.logit_pitch;
    let seen_at = row * p.features;
    let tau_hard = settings[TAU_HARD];
    let tau_soft = settings[TAU_SOFT];

    // Block, and find the largest z/τh and u.
    var top_z = Best(BLOCKED, NOBODY);
    var top_u = Best(BLOCKED, NOBODY);
    for (var i = lane; i <= features; i += WIDTH) {
        let is_stop = i == p.features;
        var blocked = false;
        if (!is_stop) {
            if (first) {
                masks[soft_at(tape_row, p.mask_pitch) + i] = 0.0;
            }
            blocked = acquired_at[seen_at + i] != NEVER;
        }
        if (blocked) {
            logits[z_at + i] = BLOCKED;
            continue;
        }
        let z = logits[z_at + i] / tau_hard;
        let candidate_z = Best(z, i);
        if (better(candidate_z, top_z)) {
            top_z = candidate_z;
        }
        let candidate_u = Best((z + gumbel[z_at + i]) / tau_soft, i);
        if (!is_stop && better(candidate_u, top_u)) {
            top_u = candidate_u;
        }
    }
    top_z = best_all(lane, top_z);
    top_u = best_all(lane, top_u);
    let chosen = min(top_u.index, features); // nobody's, where nothing is open

    // The softmaxes' sums.
    var mass_features = 0.0; // of p
    var mass_r = 0.0;
    for (var i = lane; i <= features; i += WIDTH) {
        let raw = logits[z_at + i];
        if (i < p.features && is_blocked(raw)) {
            continue;
        }
        let z = raw / tau_hard;
        if (i < p.features) {
            mass_features += exp_down(z - top_z.value);
            if (relaxed) {
                mass_r += exp_down((z + gumbel[z_at + i]) / tau_soft - top_u.value);
            }
        }
    }
    mass_features = sum_all(lane, mass_features);
    mass_r = sum_all(lane, mass_r);
    let mass_stop = exp_down(logits[z_at + p.features] / tau_hard - top_z.value);
    let log_mass_p = ln_pos(mass_features + mass_stop);

    var entropy = 0.0;
    var price = 0.0;
    for (var i = lane; i <= features; i += WIDTH) {
        let raw = logits[z_at + i];
        let blocked = i < p.features && is_blocked(raw);
        let z = raw / tau_hard;
        if (!blocked) {
            let log_p = z - top_z.value - log_mass_p;
            entropy -= exp_down(log_p) * log_p;
        }
        if (i == p.features || !relaxed) {
            continue;
        }
        var r = 0.0;
        if (!blocked) {
            r = flush(exp_down((z + gumbel[z_at + i]) / tau_soft - top_u.value) / mass_r);
        }
        let mask = masks[soft_at(tape_row, p.mask_pitch) + i];
        masks[chance_at(tape_row, p.mask_pitch) + i] = r;
        masks[soft_at(next_row, p.mask_pitch) + i] = mask + (1.0 - mask) * r;
        price += r * costs[i];
    }
    entropy = sum_all(lane, entropy);
    price = sum_all(lane, price);
    meet(); // `acquired_at` was read by all and is changed by one

    if (lane == 0u) {
        var stop_mass = mass_stop;
        var features_mass = mass_features;
        if (settings[EXACT_STOP] == 0.0) {
            let u_stop = (logits[z_at + p.features] / tau_hard + gumbel[z_at + p.features]) / tau_soft;
            let top = max(u_stop, top_u.value);
            features_mass = exp_down(top_u.value - top) * mass_r;
            stop_mass = exp_down(u_stop - top);
        }
        let hazard = settings[HAZARD];
        let mass = features_mass + stop_mass;
        let go = (1.0 - hazard) * (features_mass / mass);
        let halt = hazard + (1.0 - hazard) * (stop_mass / mass);
        let at = tape_row * SCALARS;
        var survival = 1.0;
        if (first) {
            scalars[at + SURVIVAL] = survival; // later ones are there, and the instance's other rollouts read them
        } else {
            survival = scalars[at + SURVIVAL];
        }
        scalars[at + HALT] = halt;
        scalars[at + GO] = go;
        scalars[at + ENTROPY] = entropy;
        scalars[at + TOP] = top_z.value;
        scalars[at + LOG_MASS] = log_mass_p;
        if (p.soft == 0u && chosen < features) {
            price = costs[chosen];
        }
        scalars[at + PRICE] = price;
        let survival_next = flush(survival * go);
        scalars[next_row * SCALARS + SURVIVAL] = survival_next;
        scalars[at + WEIGHT] = weight_of(survival * halt);
        scalars[next_row * SCALARS + WEIGHT] = weight_of(survival_next);
        path[tape_row] = chosen;
        if (chosen < features) {
            acquired_at[seen_at + chosen] = p.step;
        }
    }
}
