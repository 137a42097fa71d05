// Adam. The micro-batches' gradients lie one after the other in `grad`, one a lane, and are added up
// in order. With v̂ = v/(1 − β2^t), m̂ = m/(1 − β1^t): w −= rate m̂/(√v̂ + ε). `powers` holds β^(t−1).
// A gradient that is not a finite number leaves its value alone and is noted in `status` with the
// step; the test is on the bits, as WGSL promises nothing about NaN.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 64u + id.x;
    if (i >= p.len) {
        return;
    }
    var g = 0.0;
    for (var lane = 0u; lane < p.lanes; lane++) {
        g += grad[lane * p.len + i];
    }
    if ((bitcast<u32>(g) & 0x7f800000u) == 0x7f800000u) {
        atomicMin(&status[0], clock[STEP]);
        return;
    }
    let beta1 = settings[BETA1];
    let beta2 = settings[BETA2];
    let m = flush(beta1 * mean[i] + (1.0 - beta1) * g);
    let raw = beta2 * variance[i] + (1.0 - beta2) * g * g;
    let v = select(raw, 0.0, raw < TINY * TINY);
    mean[i] = m;
    variance[i] = v;
    let m_hat = m / (1.0 - powers[p.power] * beta1);
    let v_hat = v / (1.0 - powers[p.power + 1u] * beta2);
    values[i] -= settings[p.rate] * m_hat / (sqrt(v_hat) + settings[EPSILON]);
}
