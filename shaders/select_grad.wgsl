// Backward through one acquisition (forward: select.wgsl), a workgroup an instance. M is the gradient
// of J with respect to the next relaxed mask, S' that with respect to the next survival:
//   dq = s (ℓ − α price − S')            dr̃ = s α g c + (1 − m̃) ⊙ M
//   du_stop = q g dq                     du_j = −g r̃_j q dq + r̃_j (dr̃_j − Σ r̃ dr̃)
//   dz = du/(τs τh) + λ s p (ln p + H)/τh, zero where blocked
//   S = α g price + q ℓ − λ H + g S'
// (softmax(u)_j = g r̃_j, so the derivative of q is −q g r̃_j for a feature and q (1 − q) = q g for the
// stop; −λ s ∂H/∂z = λ s p (ln p + H)/τh.) The logits are overwritten by dz.
// Two options that the published method has not: with lure < 1 only that share of λ H counts in S, so
// the bonus does not reward surviving; and a guard −μ s (½ ln π + ½ ln(1 − π)), π = p_stop, s held fixed,
// whose gradient  dz_stop = μ s (π − ½)/τh,  dz_j = −μ s (π − ½) p_j/((1 − π) τh)  does not vanish when
// π does, as that of J and H do: a decision that has become certain can still be unlearned.
struct Params {
    rows: u32,
    step: u32,
    steps: u32,
    features: u32,
    logit_pitch: u32,
    relax_pitch: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> logits: array<f32>;
@group(0) @binding(2) var<storage, read> relax: array<f32>;
@group(0) @binding(3) var<storage, read> mask_grad: array<f32>;
@group(0) @binding(4) var<storage, read_write> scalars: array<f32>;
@group(0) @binding(5) var<storage, read> losses: array<f32>;
@group(0) @binding(6) var<storage, read> costs: array<f32>;
@group(0) @binding(7) var<storage, read> hyper: array<f32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group.y * groups.x + group.x;
    if (row >= p.rows) {
        return;
    }
    let tape_row = p.step * p.rows + row;
    let next_row = tape_row + p.rows;
    let z_at = tape_row * p.logit_pitch;
    let alpha = hyper[ALPHA];
    let lambda = hyper[LAMBDA];
    let tau_hard = hyper[TAU_HARD];
    let tau_soft = hyper[TAU_SOFT];
    let at = tape_row * SCALARS;
    let survival = scalars[at + SURVIVAL];
    let halt = scalars[at + HALT];
    let go = scalars[at + GO];
    let entropy = scalars[at + ENTROPY];
    let price = scalars[at + PRICE];
    let loss = losses[tape_row * LOSSES + LOSS];
    var value_next = 0.0;
    if (p.step + 1u == p.steps) {
        value_next = losses[next_row * LOSSES + LOSS];
    } else {
        value_next = scalars[next_row * SCALARS + VALUE];
    }
    let dq = survival * (loss - alpha * price - value_next);

    var top_z = Best(BLOCKED, NOBODY);
    var pull = 0.0; // Σ r̃ dr̃
    for (var i = lane; i <= p.features; i += WIDTH) {
        let raw = logits[z_at + i];
        if (i < p.features && is_blocked(raw)) {
            continue;
        }
        let candidate = Best(raw / tau_hard, i);
        if (better(candidate, top_z)) {
            top_z = candidate;
        }
        if (i < p.features) {
            let mask = relax[soft_at(tape_row, p.relax_pitch) + i];
            let r = relax[chance_at(tape_row, p.relax_pitch) + i];
            let dr = survival * alpha * go * costs[i] + (1.0 - mask) * mask_grad[row * p.relax_pitch + i];
            pull += r * dr;
        }
    }
    top_z = best_all(lane, top_z);
    pull = sum_all(lane, pull);
    var mass_p = 0.0;
    for (var i = lane; i <= p.features; i += WIDTH) {
        let raw = logits[z_at + i];
        if (i == p.features || !is_blocked(raw)) {
            mass_p += exp_down(raw / tau_hard - top_z.value);
        }
    }
    mass_p = sum_all(lane, mass_p);
    let log_mass_p = ln_pos(mass_p);
    let stopping = exp_down(logits[z_at + p.features] / tau_hard - top_z.value - log_mass_p);
    let push = hyper[GUARD] * survival * (stopping - 0.5) / tau_hard;
    storageBarrier(); // the stop's logit is read by all and overwritten by one

    for (var i = lane; i <= p.features; i += WIDTH) {
        let raw = logits[z_at + i];
        var dz = 0.0;
        if (i == p.features || !is_blocked(raw)) {
            var du = halt * go * dq;
            if (i < p.features) {
                let mask = relax[soft_at(tape_row, p.relax_pitch) + i];
                let r = relax[chance_at(tape_row, p.relax_pitch) + i];
                let dr = survival * alpha * go * costs[i] + (1.0 - mask) * mask_grad[row * p.relax_pitch + i];
                du = r * (dr - pull - halt * go * dq);
            }
            let log_p = raw / tau_hard - top_z.value - log_mass_p;
            dz = du / (tau_soft * tau_hard);
            let chance = exp_down(log_p);
            dz += lambda * survival * chance * (log_p + entropy) / tau_hard;
            dz += push * select(-chance / max(1.0 - stopping, 1e-6), 1.0, i == p.features);
        }
        logits[z_at + i] = flush(dz);
    }
    if (lane == 0u) {
        scalars[at + VALUE] =
            alpha * go * price + halt * loss - hyper[LURE] * lambda * entropy + go * value_next;
    }
}
