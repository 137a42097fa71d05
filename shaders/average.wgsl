// The exponential moving average of a network's weights, which evaluation uses:
//   average += share (value − average), share in `hyper`.
struct Params {
    len: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> average: array<f32>;
@group(0) @binding(3) var<storage, read> hyper: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 64u + id.x;
    if (i < p.len) {
        average[i] += hyper[AVERAGE] * (values[i] - average[i]);
    }
}
