// Backward through one acquisition (forward: select.wgsl). M is the gradient
// of J with respect to the next relaxed mask, S' that with respect to the next survival:
//   dq = s (ℓ − α price − S')            dr̃ = s α g c + (1 − m̃) ⊙ M
//   du_stop = q g dq                     du_j = −g r̃_j q dq + r̃_j (dr̃_j − Σ r̃ dr̃)
//   dz = du/(τs τh) + λ s p (ln p + H)/τh, zero where blocked
//   S = α g price + q ℓ − λ H + g S'
// (softmax(u)_j = g r̃_j, so the derivative of q is −q g r̃_j for a feature and q (1 − q) = q g for the
// stop; −λ s ∂H/∂z = λ s p (ln p + H)/τh.) ln p is z/τh less the two numbers that the forward pass has kept. The
// logits are overwritten by dz.
// Options that the published method has not. With lure < 1 only that share of λ H counts in S, so
// the bonus does not reward surviving; and a guard −μ s (½ ln π + ½ ln(1 − π)), π = p_stop, s held fixed,
// whose gradient  dz_stop = μ s (π − ½)/τh,  dz_j = −μ s (π − ½) p_j/((1 − π) τh)  does not vanish when
// π does, as that of J and H do: a decision that has become certain can still be unlearned.
// Hazard h (select.wgsl): ∂q/∂q₀ = 1 − h, so q g dq becomes (q − h) g/(1 − h) dq.
// Exact stop: q₀ = p_stop, so  dz_stop = π g dq/τh,  dz_j = −π g dq p_j/((1 − π) τh),  without τs.
// REINFORCE: what the choice of feature j costs from here on is s g Q, Q = α price + S'; its exact gradient is
// the mean of  s g (Q − b) ∂ln r_j/∂z,  r = p over the features, for any b that does not depend on j.
// b is the mean Q of the instance's other rollouts (leave-one-out baseline). The share `reinforce` of the gradient of r
// is this one, the rest the relaxed one; not `relaxed`, all of it, and `masks` and `mask_grad` are not read.

// An instance has its own α, λ and guard, `factor` times those of the settings (condition.wgsl).

// S' of a row: what surviving this step is worth.
fn value_after(row: u32) -> f32 {
    let next_row = (p.step + 1u) * p.rows + row;
    if (p.step + 1u == p.steps) {
        return losses[next_row * LOSSES + LOSS];
    }
    return scalars[next_row * SCALARS + VALUE];
}

// Q of a row: what it pays from here on, if it goes on.
fn ahead(row: u32) -> f32 {
    return settings[ALPHA] * scalars[row * SCALARS + FACTOR] * scalars[(p.step * p.rows + row) * SCALARS + PRICE] + value_after(row);
}

// Q − b of a row; 0 if its instance has no other rollout in this micro-batch.
fn advantage_of(row: u32) -> f32 {
    let rollouts = u32(settings[ROLLOUTS]);
    let first = row - row % max(rollouts, 1u);
    let end = min(first + rollouts, p.rows);
    var others = 0.0;
    var count = 0.0;
    for (var other = first; other < end; other++) {
        if (other != row) {
            others += ahead(other);
            count += 1.0;
        }
    }
    return select(0.0, ahead(row) - others / max(count, 1.0), count > 0.0);
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
    let z_at = tape_row * p.logit_pitch;
    let factor = scalars[row * SCALARS + FACTOR];
    let alpha = settings[ALPHA] * factor;
    let lambda = settings[LAMBDA] * factor;
    let tau_hard = settings[TAU_HARD];
    let tau_soft = settings[TAU_SOFT];
    let at = tape_row * SCALARS;
    let survival = scalars[at + SURVIVAL];
    let halt = scalars[at + HALT];
    let go = scalars[at + GO];
    let entropy = scalars[at + ENTROPY];
    let price = scalars[at + PRICE];
    let loss = losses[tape_row * LOSSES + LOSS];
    let value_next = value_after(row);
    let dq = survival * (loss - alpha * price - value_next);
    let hazard = settings[HAZARD];
    let reinforce = settings[REINFORCE];
    var advantage = 0.0;
    if (reinforce > 0.0) {
        advantage = reinforce * survival * go * advantage_of(row);
    }
    let chosen = path[tape_row];
    let exact = settings[EXACT_STOP] != 0.0;

    let top = scalars[at + TOP];
    let log_mass = scalars[at + LOG_MASS];

    var pull = 0.0; // Σ r̃ dr̃; r̃ is zero where it is blocked
    if (p.relaxed != 0u) {
        for (var i = lane; i < p.features; i += WIDTH) {
            let mask = masks[soft_at(tape_row, p.mask_pitch) + i];
            let r = masks[chance_at(tape_row, p.mask_pitch) + i];
            let dr = survival * alpha * go * costs[i] + (1.0 - mask) * mask_grad[row * p.mask_pitch + i];
            pull += r * dr;
        }
        pull = sum_all(lane, pull);
    }
    let stopping = exp_down(logits[z_at + p.features] / tau_hard - top - log_mass);
    // Where nothing can be had, there is no decision to guard.
    let guard = select(0.0, settings[GUARD] * factor, chosen < p.features);
    let push = guard * survival * (stopping - 0.5);
    // The stop's gradient comes through u, which is divided by τs, or through p, which is not.
    let turn = select((halt - hazard) * go / ((1.0 - hazard) * tau_soft), stopping * go, exact) * dq;
    let going = max(select(1.0 - stopping, go / (1.0 - hazard), exact), 1e-6);
    meet(); // the stop's logit is read by all and overwritten by one

    for (var i = lane; i <= p.features; i += WIDTH) {
        let raw = logits[z_at + i];
        var dz = 0.0;
        if (i == p.features || !is_blocked(raw)) {
            let log_p = raw / tau_hard - top - log_mass;
            let chance = exp_down(log_p);
            dz = lambda * survival * chance * (log_p + entropy);
            if (i < p.features) {
                let share = chance / going;
                if (p.relaxed != 0u) {
                    let mask = masks[soft_at(tape_row, p.mask_pitch) + i];
                    let r = masks[chance_at(tape_row, p.mask_pitch) + i];
                    let back = (1.0 - mask) * mask_grad[row * p.mask_pitch + i];
                    let dr = survival * alpha * go * costs[i] + back;
                    dz += (1.0 - reinforce) * r * (dr - pull) / tau_soft - turn * select(r, share, exact);
                } else {
                    dz -= turn * share;
                }
                dz += advantage * (select(0.0, 1.0, i == chosen) - share) - push * share;
            } else {
                dz += turn + push;
            }
            dz /= tau_hard;
        }
        logits[z_at + i] = flush(dz);
    }
    if (lane == 0u) {
        scalars[at + VALUE] =
            alpha * go * price + halt * loss - settings[LURE] * lambda * entropy + go * value_next;
    }
}
