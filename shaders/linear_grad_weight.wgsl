// Linear layer backward to its weights: dW = xᵀ·dy / divisor over all rows of the tape, in order.
// A thread computes four inputs by four outputs.
struct Params {
    rows: u32,
    inputs_pitch: u32,
    outputs_pitch: u32,
    weight: u32,
    accumulate: u32,
    divisor: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> grad: array<vec4<f32>>;

fn store(at: u32, sum: vec4<f32>) {
    var value = sum / f32(p.divisor);
    if (p.accumulate != 0u) {
        value += grad[at];
    }
    grad[at] = value;
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let output4 = id.x;
    let input4 = id.y;
    let outputs4 = p.outputs_pitch / 4u;
    let inputs4 = p.inputs_pitch / 4u;
    if (output4 >= outputs4 || input4 >= inputs4) {
        return;
    }
    var sum0 = vec4(0.0);
    var sum1 = vec4(0.0);
    var sum2 = vec4(0.0);
    var sum3 = vec4(0.0);
    for (var row = 0u; row < p.rows; row++) {
        let v = x[row * inputs4 + input4];
        let g = dy[row * outputs4 + output4];
        sum0 += v.x * g;
        sum1 += v.y * g;
        sum2 += v.z * g;
        sum3 += v.w * g;
    }
    let at = p.weight / 4u + input4 * 4u * outputs4 + output4;
    store(at, sum0);
    store(at + outputs4, sum1);
    store(at + 2u * outputs4, sum2);
    store(at + 3u * outputs4, sum3);
}
