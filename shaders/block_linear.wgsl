// A block-diagonal linear layer: y = x·W_j + b_j, with ReLU if asked for, for each block j of the rows. Weights are
// stored [block][input][output], rows [block][row][unit]; pitches are padded with zeros as in linear.wgsl.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let output = id.x;
    let row = id.y;
    if (output >= p.outputs_pitch || row >= p.blocks * p.rows) {
        return;
    }
    let block = row / p.rows;
    let first = row * p.inputs_pitch;
    var weight = p.weight + block * p.inputs_pitch * p.outputs_pitch + output;
    var sum = weights[p.bias + block * p.outputs_pitch + output];
    for (var at = first; at < first + p.inputs_pitch; at++) {
        sum += x[at] * weights[weight];
        weight += p.outputs_pitch;
    }
    y[row * p.outputs_pitch + output] = select(sum, max(sum, 0.0), p.relu != 0u);
}
