// Samples of Gaussian latents, reparametrised: z = μ + σ ε with ε of the noise tape. Heads lie [block][row][μ…, v…] with
// σ = softplus(v) + 0.001 (lib/latent.wgsl), samples [sample][row][block][latent]. Not `noisy`: z = μ.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let unit = id.x;
    let row = id.y;
    if (unit >= p.blocks * p.latent || row >= p.rows) {
        return;
    }
    let at = ((unit / p.latent) * p.rows + row) * p.heads_pitch + unit % p.latent;
    let spread = select(0.0, deviation(heads[at + p.latent]), p.noisy != 0u);
    let end = p.samples * p.rows;
    for (var tape_row = row; tape_row < end; tape_row += p.rows) {
        let to = tape_row * p.z_pitch + unit;
        z[to] = heads[at] + spread * noise[to];
    }
}
