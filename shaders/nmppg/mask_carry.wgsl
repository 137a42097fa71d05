// Carries M, the gradient of J with respect to the relaxed mask, one step back:
//   M_k = s_k ∂ℓ_k/∂m        M_t = (1 − r̃_t) ⊙ M_{t+1} + s_t q_t ∂ℓ_t/∂m + D_t
// ∂ℓ/∂m comes multiplied by the predictor's weight of the tape row (loss.wgsl), which is divided out;
// with D_t the policy's gradient through its input (as mask_grad.wgsl), or 0 where that is left out. In place.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let feature = id.x;
    let row = id.y;
    if (feature >= p.features || row >= p.rows) {
        return;
    }
    let tape_row = p.step * p.rows + row;
    let survival = scalars[tape_row * SCALARS + SURVIVAL];
    let from_loss = loss_mask_grad[tape_row * p.pitch + feature] / scalars[tape_row * SCALARS + WEIGHT];
    let at = row * p.pitch + feature;
    if (p.step == p.steps) {
        mask_grad[at] = survival * from_loss;
        return;
    }
    // No branch: a software driver would compile the kernel anew for every dispatch (docs/gpu.md).
    let total = select(0.0, through_input(feature, row * p.input_pitch, row * p.x_pitch), p.through != 0u);
    let halt = scalars[tape_row * SCALARS + HALT];
    let r = masks[chance_at(tape_row, p.pitch) + feature];
    mask_grad[at] = flush((1.0 - r) * mask_grad[at] + survival * halt * from_loss + total);
}
