// The gradient of a loss with respect to the mask. The input is (x ⊙ expand(m), m), so
//   ∂/∂m_j = Σ_{columns i of j} din_i x_i + din_{columns + j}
// for every row of the tape; `batch` rows repeat their x along it.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let feature = id.x;
    let row = id.y;
    if (feature >= p.features || row >= p.rows) {
        return;
    }
    let x_at = (row % p.batch) * p.x_pitch;
    grad_mask[row * p.pitch + feature] = through_input(feature, row * p.input_pitch, x_at);
}
