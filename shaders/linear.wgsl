// Linear layer forward, y = x·W + b, then ReLU and dropout if asked for. Weights are stored
// [input][output]. All pitches are multiples of four and what lies between a width and its pitch is
// zero in weights and activations, so nothing is checked inside a row. A thread computes four rows
// by four outputs in registers.
struct Params {
    rows: u32,
    inputs_pitch: u32,
    outputs_pitch: u32,
    x_row: u32,
    y_row: u32,
    weight: u32,
    bias: u32,
    relu: u32,
    dropout: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> multiplier: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

fn store(row: u32, output4: u32, sum: vec4<f32>) {
    if (row >= p.rows) {
        return;
    }
    let at = (p.y_row + row) * (p.outputs_pitch / 4u) + output4;
    var value = sum;
    if (p.relu != 0u) {
        value = max(value, vec4(0.0));
    }
    if (p.dropout != 0u) {
        value *= multiplier[at];
    }
    y[at] = value;
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let output4 = id.x;
    let row = id.y * 4u;
    let outputs4 = p.outputs_pitch / 4u;
    let inputs4 = p.inputs_pitch / 4u;
    if (output4 >= outputs4 || row >= p.rows) {
        return;
    }
    let last = p.rows - 1u;
    let x0 = (p.x_row + row) * inputs4;
    let x1 = (p.x_row + min(row + 1u, last)) * inputs4;
    let x2 = (p.x_row + min(row + 2u, last)) * inputs4;
    let x3 = (p.x_row + min(row + 3u, last)) * inputs4;
    let bias = weights[p.bias / 4u + output4];
    var sum0 = bias;
    var sum1 = bias;
    var sum2 = bias;
    var sum3 = bias;
    var at = p.weight / 4u + output4;
    for (var i = 0u; i < inputs4; i++) {
        let w0 = weights[at];
        let w1 = weights[at + outputs4];
        let w2 = weights[at + 2u * outputs4];
        let w3 = weights[at + 3u * outputs4];
        at += 4u * outputs4;
        let v0 = x[x0 + i];
        sum0 += v0.x * w0 + v0.y * w1 + v0.z * w2 + v0.w * w3;
        let v1 = x[x1 + i];
        sum1 += v1.x * w0 + v1.y * w1 + v1.z * w2 + v1.w * w3;
        let v2 = x[x2 + i];
        sum2 += v2.x * w0 + v2.y * w1 + v2.z * w2 + v2.w * w3;
        let v3 = x[x3 + i];
        sum3 += v3.x * w0 + v3.y * w1 + v3.z * w2 + v3.w * w3;
    }
    store(row, output4, sum0);
    store(row + 1u, output4, sum1);
    store(row + 2u, output4, sum2);
    store(row + 3u, output4, sum3);
}
