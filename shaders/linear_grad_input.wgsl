// Linear layer backward to its input: dx = dy·Wᵀ, from the transposed weight (transpose.wgsl). With `gate`, x was h = relu(a) ⊙ multiplier and the
// result is the gradient of a: ∂h/∂a = multiplier where h > 0, else 0 (a unit that was dropped has
// h = 0 as well). A thread computes four rows by four inputs.
struct Params {
    rows: u32,
    inputs_pitch: u32,
    outputs_pitch: u32,
    dy_row: u32,
    dx_row: u32,
    hidden_row: u32,
    weight: u32,
    gate: u32,
    dropout: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> transposed: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> hidden: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> multiplier: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> dx: array<vec4<f32>>;

fn store(row: u32, input4: u32, sum: vec4<f32>) {
    if (row >= p.rows) {
        return;
    }
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

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let input4 = id.x;
    let row = id.y * 4u;
    let outputs4 = p.outputs_pitch / 4u;
    if (input4 >= p.inputs_pitch / 4u || row >= p.rows) {
        return;
    }
    let last = p.rows - 1u;
    let y0 = (p.dy_row + row) * outputs4;
    let y1 = (p.dy_row + min(row + 1u, last)) * outputs4;
    let y2 = (p.dy_row + min(row + 2u, last)) * outputs4;
    let y3 = (p.dy_row + min(row + 3u, last)) * outputs4;
    let inputs4 = p.inputs_pitch / 4u;
    var at = p.weight / 4u + input4;
    var sum0 = vec4(0.0);
    var sum1 = vec4(0.0);
    var sum2 = vec4(0.0);
    var sum3 = vec4(0.0);
    for (var o = 0u; o < outputs4; o++) {
        let w0 = transposed[at];
        let w1 = transposed[at + inputs4];
        let w2 = transposed[at + 2u * inputs4];
        let w3 = transposed[at + 3u * inputs4];
        at += 4u * inputs4;
        let v0 = dy[y0 + o];
        sum0 += v0.x * w0 + v0.y * w1 + v0.z * w2 + v0.w * w3;
        let v1 = dy[y1 + o];
        sum1 += v1.x * w0 + v1.y * w1 + v1.z * w2 + v1.w * w3;
        let v2 = dy[y2 + o];
        sum2 += v2.x * w0 + v2.y * w1 + v2.z * w2 + v2.w * w3;
        let v3 = dy[y3 + o];
        sum3 += v3.x * w0 + v3.y * w1 + v3.z * w2 + v3.w * w3;
    }
    store(row, input4, sum0);
    store(row + 1u, input4, sum1);
    store(row + 2u, input4, sum2);
    store(row + 3u, input4, sum3);
}
