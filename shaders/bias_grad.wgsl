// Linear layer backward to its bias: the column sums of dy / divisor, rows in order.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let output4 = id.x;
    let pitch4 = p.pitch / 4u;
    if (output4 >= pitch4) {
        return;
    }
    var total = vec4(0.0);
    for (var row = 0u; row < p.rows; row++) {
        total += dy[row * pitch4 + output4];
    }
    total /= f32(p.divisor);
    let at = p.bias / 4u + output4;
    if (p.accumulate != 0u) {
        total += grad[at];
    }
    grad[at] = total;
}
