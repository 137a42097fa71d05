// The latents of each instance's samples at a step of an evaluation: those of its own row for what is known from the
// start or was acquired, those of the row that sees nothing, behind the last, for the rest; z = μ + σ ε as in
// latents.wgsl. The noise ε of a sample is the same for every instance and step, so that what changes is what was learned.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let unit = id.x;
    let row = id.y;
    if (unit >= p.blocks * p.latent || row >= p.rows) {
        return;
    }
    let block = unit / p.latent;
    var seen = row;
    if (block < p.features) {
        if (p.step == 0u || acquired_at[row * p.features + block] == NEVER) {
            seen = p.rows;
        }
    }
    let at = (block * (p.rows + 1u) + seen) * p.heads_pitch + unit % p.latent;
    let spread = select(0.0, deviation(heads[at + p.latent]), p.noisy != 0u);
    for (var sample = 0u; sample < p.samples; sample++) {
        z[(sample * p.rows + row) * p.z_pitch + unit] = heads[at] + spread * noise[sample * p.z_pitch + unit];
    }
}
