// Linear layer backward to its bias: the column sums of dy / divisor, rows in order.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let output = id.x;
    if (output >= p.pitch) {
        return;
    }
    var total = 0.0;
    for (var row = 0u; row < p.rows; row++) {
        total += dy[row * p.pitch + output];
    }
    total /= f32(p.divisor);
    if (p.accumulate != 0u) {
        total += grad[p.bias + output];
    }
    grad[p.bias + output] = total;
}
