// Linear layer backward to its input: dx = dy·Wᵀ, from the transposed weight (transpose.wgsl). With `gate`, x was
// h = relu(a) ⊙ multiplier and the result is the gradient of a: ∂h/∂a = multiplier where h > 0, else 0 (a unit
// that was dropped has h = 0 as well).

fn left_row(row: u32) -> u32 {
    return (p.dy_row + row) * (p.outputs_pitch / 4u);
}

fn left(row: u32, term4: u32) -> vec4<f32> {
    return dy[row + term4];
}

fn right(term: u32, column4: u32) -> vec4<f32> {
    return transposed[p.weight / 4u + term * (p.inputs_pitch / 4u) + column4];
}

fn finish(row: u32, input4: u32, sum: vec4<f32>) {
    var value = sum;
    if (p.gate != 0u) {
        let at = (p.hidden_row + row) * (p.inputs_pitch / 4u) + input4;
        value = select(vec4(0.0), value, hidden[at] > vec4(0.0));
        if (p.dropout != 0u) {
            value *= multiplier[at];
        }
    }
    dx[(p.dx_row + row) * (p.inputs_pitch / 4u) + input4] = value;
}

@compute @workgroup_size(PRODUCT_WIDTH, PRODUCT_HEIGHT)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
    product(group, thread, p.rows, p.outputs_pitch / 4u, p.inputs_pitch / 4u);
}
