// Linear layer forward, y = x·W + b, then ReLU and dropout if asked for. Weights are stored
// [input][output]. All pitches are multiples of four and what lies between a width and its pitch is
// zero in weights and activations, so nothing is checked inside a row.

fn left_row(row: u32) -> u32 {
    return (p.x_row + row) * (p.inputs_pitch / 4u);
}

fn left(row: u32, term4: u32) -> vec4<f32> {
    return x[row + term4];
}

fn right(term: u32, column4: u32) -> vec4<f32> {
    return weights[p.weight / 4u + term * (p.outputs_pitch / 4u) + column4];
}

fn finish(row: u32, output4: u32, sum: vec4<f32>) {
    let at = (p.y_row + row) * (p.outputs_pitch / 4u) + output4;
    var value = sum + weights[p.bias / 4u + output4];
    if (p.relu != 0u) {
        value = max(value, vec4(0.0));
    }
    if (p.dropout != 0u) {
        value *= multiplier[at];
    }
    y[at] = value;
}

@compute @workgroup_size(PRODUCT_WIDTH, PRODUCT_HEIGHT)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
    product(group, thread, p.rows, p.inputs_pitch / 4u, p.outputs_pitch / 4u);
}
