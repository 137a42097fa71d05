// Batch norm's moments: of each unit over the rows, N of them,
//   μ = Σx/N      v = Σ(x − μ)²/N      and kept are μ and 1/√(v + ε), which this batch is normalized by.
// Evaluations are by the running moments, a tenth of each batch's and the rest of what they were; that of the variance
// has the unbiased v·N/(N − 1), as in PyTorch. `values` has of each unit, one after the other for all of them: scale,
// shift, running mean, running variance. Rows lie in blocks, each with units of its own; a unit a thread, rows in order.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let unit = id.y * groups.x * 64u + id.x;
    let units = p.blocks * p.pitch;
    if (unit >= units) {
        return;
    }
    let first = (unit / p.pitch) * p.rows * p.pitch + unit % p.pitch;
    let end = first + p.rows * p.pitch;
    var sum = 0.0;
    for (var at = first; at < end; at += p.pitch) {
        sum += x[at];
    }
    let mean = sum / f32(p.rows);
    var square = 0.0;
    for (var at = first; at < end; at += p.pitch) {
        let apart = x[at] - mean;
        square += apart * apart;
    }
    let variance = square / f32(p.rows);
    moments[unit] = mean;
    moments[units + unit] = 1.0 / sqrt(variance + NORM_EPSILON);
    let running = p.norm + 2u * units + unit;
    values[running] += NORM_SHARE * (mean - values[running]);
    let unbiased = square / f32(max(p.rows, 2u) - 1u);
    values[running + units] += NORM_SHARE * (unbiased - values[running + units]);
}
