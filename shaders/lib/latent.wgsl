// A latent's standard deviation σ = softplus(v) + 0.001, softplus(v) = ln(1 + e^v), without an overflow.
fn deviation(v: f32) -> f32 {
    return max(v, 0.0) + ln_pos(1.0 + exp_down(-abs(v))) + 0.001;
}
