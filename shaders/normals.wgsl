// Fills a tape of samples with standard normal numbers: √2 erf⁻¹(2u − 1) of uniform u, by the polynomials of Giles
// ("Approximating the erfinv function", 2010) in w = −ln(1 − x²) with x = 2u − 1, 1 − x² = 4u(1 − u). Four to a block of
// random bits: the first quarter of a row has the first words, and so on.

fn normal(u: f32) -> f32 {
    let w = -ln_pos(4.0 * u * (1.0 - u));
    let a = w - 2.5;
    let b = sqrt(w) - 3.0;
    let center = 1.50140941 + a * (0.246640727 + a * (-0.00417768164 + a * (-0.00125372503 + a * (0.00021858087
        + a * (-4.39150654e-6 + a * (-3.5233877e-6 + a * (3.43273939e-7 + a * 2.81022636e-8)))))));
    let tail = 2.83297682 + b * (1.00167406 + b * (0.00943887047 + b * (-0.0076224613 + b * (0.00573950773
        + b * (-0.00367342844 + b * (0.00134934322 + b * (0.000100950558 + b * -0.000200214257)))))));
    return 1.41421356237 * (2.0 * u - 1.0) * select(tail, center, w < 5.0);
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let block = id.x;
    let tape_row = id.y;
    let blocks = p.pitch / 4u;
    if (block >= blocks || tape_row >= p.rows * p.samples) {
        return;
    }
    let bits = random_bits(p.stream, p.first + tape_row % p.rows, tape_row / p.rows, block);
    for (var i = 0u; i < 4u; i++) {
        noise[tape_row * p.pitch + i * blocks + block] = normal(unit(bits[i]));
    }
}
