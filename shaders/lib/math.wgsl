// Logits of features that cannot be acquired; stopping always can. A finite number: nothing here relies on infinities.
const BLOCKED: f32 = -1e30;
fn is_blocked(z: f32) -> bool {
    return z < -1e29;
}

// Below this, exp is taken for zero: the smallest normal f32 is e^-87.3.
const EXP_FLOOR: f32 = -87.0;
fn exp_down(x: f32) -> f32 {
    return select(exp(max(x, EXP_FLOOR)), 0.0, x < EXP_FLOOR);
}

// Masses and gradients below this are taken for zero: they could not change a sum, and their products
// would be denormal numbers, which software drivers are a hundred times slower with.
const TINY: f32 = 1e-18;
fn flush(x: f32) -> f32 {
    return select(x, 0.0, abs(x) < TINY);
}

// ln x for a positive, normal x, to about one unit in the last place everywhere. WGSL's `log` is
// accurate only absolutely for x near 1, which is where Gumbel noise gets its tail from.
// x = 2^e·(1 + f) with 1 + f in [√½, √2), and with s = f/(2 + f)
//   ln(1 + f) = 2 artanh s = 2s + s·R(s²),  2s = f − s·f = f − f²/2 + s·f²/2.
fn ln_pos(x: f32) -> f32 {
    let bits = bitcast<u32>(x) + (0x3f800000u - 0x3f3504f3u);
    let e = f32(i32(bits >> 23u) - 127);
    let f = bitcast<f32>((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let r = z * (0.66666662693 + w * 0.28498786688) + w * (0.40000972152 + w * 0.24279078841);
    let half = 0.5 * f * f;
    return s * (half + r) + e * 9.0580006145e-6 - half + f + e * 0.69313812256;
}
