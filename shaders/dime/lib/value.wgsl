// 1/(1 + e^−v), without an overflow.
fn sigmoid(v: f32) -> f32 {
    let e = exp_down(-abs(v));
    return select(e, 1.0, v >= 0.0) / (1.0 + e);
}
