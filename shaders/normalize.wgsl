// Batch norm: y = γ x̂ + β with x̂ = (x − μ)/√(v + ε), by the moments of this batch (moments.wgsl). A unit that is
// padding has γ = β = 0, so it stays zero.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.y * groups.x * 64u + id.x;
    let units = p.blocks * p.pitch;
    if (at >= units * p.rows) {
        return;
    }
    let unit = (at / (p.rows * p.pitch)) * p.pitch + at % p.pitch;
    let apart = (x[at] - moments[unit]) * moments[units + unit];
    y[at] = values[p.norm + unit] * apart + values[p.norm + units + unit];
}
