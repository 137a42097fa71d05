// Back through z = μ + σ ε to the heads, with the divergence from a standard normal that is paid for, times β of the
// settings, KL = ½ (σ² + μ² − 1) − ln σ of each latent:
//   dμ = Σ dz + β μ      dv = (Σ dz ε + β (σ − 1/σ)) ∂σ/∂v      ∂σ/∂v = 1/(1 + e^−v)      sums over the samples.
// What is paid is written beside. Not `noisy`: z = μ, nothing is paid, and v has no gradient.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let unit = id.x;
    let row = id.y;
    if (unit >= p.blocks * p.latent || row >= p.rows) {
        return;
    }
    let at = ((unit / p.latent) * p.rows + row) * p.heads_pitch + unit % p.latent;
    var plain = 0.0;
    var along = 0.0;
    let end = p.samples * p.rows;
    for (var tape_row = row; tape_row < end; tape_row += p.rows) {
        let z_at = tape_row * p.z_pitch + unit;
        plain += dz[z_at];
        along += dz[z_at] * noise[z_at];
    }
    let mean = heads[at];
    let v = heads[at + p.latent];
    let sigma = deviation(v);
    let e = exp_down(-abs(v));
    let slope = select(e, 1.0, v >= 0.0) / (1.0 + e);
    let noisy = p.noisy != 0u;
    let beta = select(0.0, settings[p.beta], noisy);
    grad[at] = plain + beta * mean;
    grad[at + p.latent] = select(0.0, (along + beta * (sigma - 1.0 / sigma)) * slope, noisy);
    paid[row * p.z_pitch + unit] = beta * (0.5 * (sigma * sigma + mean * mean - 1.0) - ln_pos(sigma));
}
