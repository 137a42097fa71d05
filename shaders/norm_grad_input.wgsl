// Batch norm backward to its input, in place. With N rows, s = 1/√(v + ε), x̂ = (x − μ) s and g = γ dy the gradient of x̂:
// μ and v depend on every row, ∂μ/∂x_i = 1/N, ∂v/∂x_i = 2 (x_i − μ)/N, and s falls by s³/2 with v, so
//   dx_i = s (g_i − Σg/N − x̂_i Σ(g x̂)/N) = γ s (dy_i − Σdy/N − x̂_i Σ(dy x̂)/N),
// the sums being those of norm_grad.wgsl. `gate`: x came out of a ReLU, and the gradient is that of what went into it.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.y * groups.x * 64u + id.x;
    let units = p.blocks * p.pitch;
    if (at >= units * p.rows) {
        return;
    }
    let unit = (at / (p.rows * p.pitch)) * p.pitch + at % p.pitch;
    let inverse = moments[units + unit];
    let apart = (x[at] - moments[unit]) * inverse;
    let rest = dy[at] - (sums[unit] + apart * sums[units + unit]) / f32(p.rows);
    let open = x[at] > 0.0 || p.gate == 0u;
    dy[at] = select(0.0, values[p.norm + unit] * inverse * rest, open);
}
