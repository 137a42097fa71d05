// The gradient with respect to the mask of a feature, through the first layer's input (x ⊙ expand(m), m):
//   ∂/∂m_j = Σ_{columns i of j} din_i x_i + din_{columns + j}
fn through_input(feature: u32, grad_at: u32, x_at: u32) -> f32 {
    var total = grad_input[grad_at + p.columns + feature];
    for (var i = columns_start(feature); i < columns_end(feature); i++) {
        let column = groups[i];
        total += grad_input[grad_at + column] * x[x_at + column];
    }
    return total;
}
