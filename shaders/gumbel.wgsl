// Fills the noise tape with Gumbel(0, 1) numbers: ε = −ln E with E = −ln v exponential for a
// uniform v. `ln_pos` keeps its relative accuracy for v next to 1, which is the upper tail of ε.

fn gumbel_of(bits: u32) -> f32 {
    return -ln_pos(-ln_pos(unit(bits)));
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let block = id.x;
    let tape_row = id.y;
    if (block * 4u >= p.pitch || tape_row >= p.rows * p.steps) {
        return;
    }
    let t = tape_row / p.rows;
    let bits = random_bits(STREAM_GUMBEL, p.first + tape_row % p.rows, t, block);
    for (var i = 0u; i < 4u; i++) {
        let action = i * (p.pitch / 4u) + block;
        gumbel[tape_row * p.pitch + action] = select(0.0, gumbel_of(bits[i]), action < p.actions);
    }
}
