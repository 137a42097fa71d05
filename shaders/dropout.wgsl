// Fills a layer's dropout multipliers, 16 random bits a unit: zero with probability
// threshold / 65536, else the inverse of the probability to keep.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let block = id.x;
    let tape_row = id.y;
    let blocks = (p.pitch + 7u) / 8u;
    if (block >= blocks || tape_row >= p.rows * p.steps) {
        return;
    }
    let t = tape_row / p.rows;
    let bits = random_bits(p.stream, p.first + tape_row % p.rows, t, block);
    let keep = 65536.0 / f32(65536u - p.threshold);
    for (var i = 0u; i < 8u; i++) {
        let unit_index = i * blocks + block;
        let draw = (bits[i / 2u] >> (16u * (i % 2u))) & 0xffffu;
        if (unit_index < p.pitch) {
            multiplier[tape_row * p.pitch + unit_index] = select(0.0, keep, draw >= p.threshold);
        }
    }
}
