// The exponential moving average of a network's weights, which evaluation uses:
//   average += share (value − average), share in `settings`.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 64u + id.x;
    if (i * 4u < p.len) {
        average[i] = average[i] + settings[AVERAGE] * (values[i] - average[i]);
    }
}
