// A block-diagonal linear layer backward to its input: dx = dy·W_jᵀ of each block j.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let input = id.x;
    let row = id.y;
    if (input >= p.inputs_pitch || row >= p.blocks * p.rows) {
        return;
    }
    let first = row * p.outputs_pitch;
    var weight = p.weight + ((row / p.rows) * p.inputs_pitch + input) * p.outputs_pitch;
    var sum = 0.0;
    for (var at = first; at < first + p.outputs_pitch; at++) {
        sum += dy[at] * weights[weight];
        weight++;
    }
    dx[row * p.inputs_pitch + input] = sum;
}
