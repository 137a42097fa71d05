// What is believed of the label, p(y|x_O) = softmax(ln p(x_O|y) + ln p(y)), into the policy's input, and its entropy. A
// thread an instance.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let prior_at = row * p.prior_pitch;
    let end = prior_at + p.classes;
    let to = (p.step * p.rows + row) * p.input_pitch + p.at;
    var top = BLOCKED;
    for (var i = prior_at; i < end; i++) {
        top = max(top, logs[(i - prior_at) * p.rows + row] + prior[i]);
    }
    var mass = 0.0;
    var spread = 0.0;
    for (var i = prior_at; i < end; i++) {
        let z = logs[(i - prior_at) * p.rows + row] + prior[i] - top;
        let e = exp_down(z);
        mass += e;
        spread -= e * z;
    }
    for (var i = prior_at; i < end; i++) {
        input[to + i - prior_at] = exp_down(logs[(i - prior_at) * p.rows + row] + prior[i] - top) / mass;
    }
    doubts[p.step * p.rows + row] = ln_pos(mass) + spread / mass;
}
