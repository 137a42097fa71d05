// Batch norm backward to its scale and shift, y = γ x̂ + β:
//   ∂/∂β = Σ dy      ∂/∂γ = Σ dy x̂      over the rows, divided by `divisor`;
// both sums are kept as they are, as the way back to the input needs them. A unit a thread, rows in order.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = id.y * groups.x * 64u + id.x;
    let units = p.blocks * p.pitch;
    if (unit >= units) {
        return;
    }
    let first = (unit / p.pitch) * p.rows * p.pitch + unit % p.pitch;
    let end = first + p.rows * p.pitch;
    let mean = moments[unit];
    let inverse = moments[units + unit];
    var plain = 0.0;
    var along = 0.0;
    for (var at = first; at < end; at += p.pitch) {
        plain += dy[at];
        along += dy[at] * ((x[at] - mean) * inverse);
    }
    sums[unit] = plain;
    sums[units + unit] = along;
    grad[p.norm + unit] = along / f32(p.divisor);
    grad[p.norm + units + unit] = plain / f32(p.divisor);
}
