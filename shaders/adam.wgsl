// Adam. The micro-batches' gradients lie one after the other in `grad`, one a lane, and are added up
// in order. With v̂ = v/(1 − β2^t), m̂ = m/(1 − β1^t): w −= rate m̂/(√v̂ + ε). `powers` holds β^(t−1).
// A gradient that is not a finite number leaves its value alone and is noted in `status` with the
// step; the test is on the bits, as WGSL promises nothing about NaN.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 64u + id.x;
    if (i * 4u >= p.len) {
        return;
    }
    var g = vec4(0.0);
    for (var lane = 0u; lane < p.lanes; lane++) {
        g += grad[lane * (p.len / 4u) + i];
    }
    let bad = (bitcast<vec4<u32>>(g) & vec4(0x7f800000u)) == vec4(0x7f800000u);
    if (any(bad)) {
        atomicMin(&status[0], clock[STEP]);
    }
    let beta1 = settings[BETA1];
    let beta2 = settings[BETA2];
    let raw_m = beta1 * mean[i] + (1.0 - beta1) * g;
    let m = vec4(flush(raw_m.x), flush(raw_m.y), flush(raw_m.z), flush(raw_m.w));
    let raw_v = beta2 * variance[i] + (1.0 - beta2) * g * g;
    let v = select(raw_v, vec4(0.0), raw_v < vec4(TINY * TINY));
    let m_hat = m / (1.0 - powers[p.power] * beta1);
    let v_hat = v / (1.0 - powers[p.power + 1u] * beta2);
    let moved = values[i] - settings[p.rate] * m_hat / (sqrt(v_hat) + settings[EPSILON]);
    mean[i] = select(m, mean[i], bad);
    variance[i] = select(v, variance[i], bad);
    values[i] = select(moved, values[i], bad);
}
