// A block-diagonal linear layer backward to its weights and biases: dW_j = xᵀ·dy / divisor and db_j = Σ dy / divisor over
// the rows of each block j. A number a thread: the inputs of a block, and behind them its bias.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let output = id.x;
    let input = id.y % (p.inputs_pitch + 1u);
    let block = id.y / (p.inputs_pitch + 1u);
    if (output >= p.outputs_pitch || block >= p.blocks) {
        return;
    }
    let first = block * p.rows;
    var sum = 0.0;
    if (input == p.inputs_pitch) {
        for (var row = first; row < first + p.rows; row++) {
            sum += dy[row * p.outputs_pitch + output];
        }
        grad[p.bias + block * p.outputs_pitch + output] = sum / f32(p.divisor);
    } else {
        for (var row = first; row < first + p.rows; row++) {
            sum += x[row * p.inputs_pitch + input] * dy[row * p.outputs_pitch + output];
        }
        grad[p.weight + (block * p.inputs_pitch + input) * p.outputs_pitch + output] = sum / f32(p.divisor);
    }
}
