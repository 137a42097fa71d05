// A weight row added at step τ is part of every later pre-activation, so its gradient is the sum of
// theirs: D_t = Σ_{t' ≥ t} d_{t'}, in place.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let unit4 = id.x;
    let row = id.y;
    let pitch4 = p.pitch / 4u;
    if (unit4 >= pitch4 || row >= p.rows) {
        return;
    }
    var later = vec4(0.0);
    // Bounds that depend on the row: see select.wgsl of NM-PPG.
    for (var next = p.steps * p.rows + row; next >= p.rows; next -= p.rows) {
        let at = (next - p.rows) * pitch4 + unit4;
        later += grad_hidden[at];
        grad_hidden[at] = later;
    }
}
