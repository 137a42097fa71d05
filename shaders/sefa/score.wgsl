// What each feature's latents move a class's probability by, for its cost c_j: with g_sj the gradient of f_c in sample s by
// the latents of feature j,
//   score_j += f̄_c / (S c_j) Σ_s ‖g_sj‖ / (Σ_k ‖g_sk‖ + 1e-20),      c_j at least 0.001.
// Only the direction of a sample's gradient matters; so gradients are by f_sc, not by f̄_c = Σ f_sc / S, which is S times
// less. (The original adds 1e-8 to the smaller ones, where a sure sample's are below that: here they count as any.)
// `whole`: the class stands for all, with weight 1: of two classes, the gradients are each other's negatives. The first
// class begins the sums. A thread an instance.

fn length_of(first: u32) -> f32 {
    var square = 0.0;
    for (var i = first; i < first + p.latent; i++) {
        // Scaled, as squares of what a sure sample has are below what f32 has.
        let g = dz[i] * 1e12;
        square += g * g;
    }
    return sqrt(square);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let to = row * p.scores_pitch;
    if (p.label == 0u) {
        for (var j = to; j < to + p.features; j++) {
            scores[j] = 0.0;
        }
    }
    let weight = select(belief[row * p.belief_pitch + p.label], 1.0, p.whole != 0u) / f32(p.samples);
    for (var tape_row = row; tape_row < p.rows * p.samples; tape_row += p.rows) {
        let at = tape_row * p.z_pitch;
        var total = 0.0;
        for (var j = 0u; j < p.blocks; j++) {
            total += length_of(at + j * p.latent);
        }
        for (var j = 0u; j < p.features; j++) {
            scores[to + j] += weight * length_of(at + j * p.latent) / ((total + 1e-8) * max(costs[j], 0.001));
        }
    }
}
