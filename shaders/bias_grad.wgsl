// Linear layer backward to its bias: the column sums of dy / divisor, rows in order.
struct Params {
    rows: u32,
    pitch: u32,
    bias: u32,
    accumulate: u32,
    divisor: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read_write> grad: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let output = id.x;
    if (output >= p.pitch) {
        return;
    }
    var total = 0.0;
    for (var row = 0u; row < p.rows; row++) {
        total += dy[row * p.pitch + output];
    }
    total /= f32(p.divisor);
    if (p.accumulate != 0u) {
        total += grad[p.bias + output];
    }
    grad[p.bias + output] = total;
}
