// The gradient of a class's probability in each sample by its logits: with f = softmax(logits),
//   ∂f_c/∂logits_i = f_c ([i = c] − f_i). A thread a sample of an instance.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let at = row * p.pitch;
    var top = logits[at];
    for (var i = at + 1u; i < at + p.classes; i++) {
        top = max(top, logits[i]);
    }
    var mass = 0.0;
    for (var i = at; i < at + p.classes; i++) {
        mass += exp_down(logits[i] - top);
    }
    let f = exp_down(logits[at + p.label] - top) / mass;
    // What is left to the others, added up so that it is exact where the class is nearly sure.
    var others = 0.0;
    for (var c = 0u; c < p.classes; c++) {
        if (c != p.label) {
            let other = exp_down(logits[at + c] - top) / mass;
            others += other;
            grad[at + c] = -flush(f * other);
        }
    }
    grad[at + p.label] = flush(f * others);
}
