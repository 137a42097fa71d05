// Adds the belief softmax(logits) of a sample of dropout to the mean of so many:
//   p̄ = Σ_s softmax(z_s) / samples,      begun anew with the first.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let at = row * p.pitch;
    // Bounds and conditions that depend on the row: see nmppg/select.wgsl.
    let end = at + p.classes;
    let anew = p.anew * p.rows > row;
    var top = outputs[at];
    for (var i = at; i < end; i++) {
        top = max(top, outputs[i]);
    }
    var mass = 0.0;
    for (var i = at; i < end; i++) {
        mass += exp_down(outputs[i] - top);
    }
    let share = 1.0 / (mass * f32(p.samples));
    for (var i = 0u; at + i < end; i++) {
        let to = row * p.classes + i;
        beliefs[to] = select(beliefs[to], 0.0, anew) + exp_down(outputs[at + i] - top) * share;
    }
}
