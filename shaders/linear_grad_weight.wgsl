// Linear layer backward to its weights: dW = xᵀ·dy / divisor over all rows of the tape, in order.

fn left(row: u32, input4: u32) -> vec4<f32> {
    return x[row * (p.inputs_pitch / 4u) + input4];
}

fn right(row: u32, output4: u32) -> vec4<f32> {
    return dy[row * (p.outputs_pitch / 4u) + output4];
}

fn finish(input: u32, output4: u32, sum: vec4<f32>) {
    let at = (p.weight + input * p.outputs_pitch) / 4u + output4;
    var value = sum / f32(p.divisor);
    if (p.accumulate != 0u) {
        value += grad[at];
    }
    grad[at] = value;
}

@compute @workgroup_size(PRODUCT_WIDTH, PRODUCT_HEIGHT)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
    outer_product(group, thread, p.inputs_pitch / 4u, p.rows, p.outputs_pitch / 4u);
}
