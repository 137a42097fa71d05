// A layer as evaluations have it, where batch norms are nothing but factors a = γ/√(v + ε) and constants c = β − μ a of
// their units, by the running moments: what came through one before the layer, and goes through one behind it, is
//   a' (Σ_i (a_i x_i + c_i) W_io + b_o) + c' = Σ_i x_i (a_i W_io a'_o) + a'_o (b_o + Σ_i c_i W_io) + c'_o,
// a linear layer of other weights. `before` and `behind` are where the norms lie, plus one; 0: there is none.
// An output of a block a thread.

fn factors(norm: u32, units: u32, unit: u32) -> vec2<f32> {
    if (norm == 0u) {
        return vec2(1.0, 0.0);
    }
    let at = norm - 1u + unit;
    let factor = values[at] / sqrt(values[at + 3u * units] + NORM_EPSILON);
    return vec2(factor, values[at + units] - values[at + 2u * units] * factor);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = id.y * groups.x * 64u + id.x;
    if (unit >= p.blocks * p.outputs_pitch) {
        return;
    }
    let block = unit / p.outputs_pitch;
    let behind = factors(p.behind, p.blocks * p.outputs_pitch, unit);
    var bias = values[p.bias + unit];
    let first = block * p.inputs_pitch;
    for (var input = first; input < first + p.inputs_pitch; input++) {
        let before = factors(p.before, p.blocks * p.inputs_pitch, input);
        let at = p.weight + input * p.outputs_pitch + unit % p.outputs_pitch;
        let weight = values[at];
        bias += before.y * weight;
        folded[at] = before.x * weight * behind.x;
    }
    folded[p.bias + unit] = bias * behind.x + behind.y;
}
