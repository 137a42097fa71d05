// Mean and standard deviation of every column that is not known, into the policy's input: those of the points that the
// flow has made of points of its base, a part each (flow_start.wgsl), for each class, which counts as much as it is
// believed. Columns that were not asked for are zero. What lies far out counts as LIMIT.
const LIMIT: f32 = 10.0;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let column = id.x;
    let row = id.y;
    if (column >= p.columns || row >= p.rows) {
        return;
    }
    let belief = (p.step * p.rows + row) * p.input_pitch + p.at;
    // Bounds that depend on the row: see nmppg/select.wgsl.
    let end = belief + p.classes;
    let to = end + column;
    let part = p.rows * p.classes;
    var mean = 0.0;
    for (var i = belief; i < end; i++) {
        let at = ((i - belief) * p.rows + row) * p.z_pitch + column;
        let first = clamp(z[at], -LIMIT, LIMIT);
        let second = clamp(z[part * p.z_pitch + at], -LIMIT, LIMIT);
        mean += input[i] * 0.5 * (first + second);
    }
    var variance = 0.0;
    for (var i = belief; i < end; i++) {
        let at = ((i - belief) * p.rows + row) * p.z_pitch + column;
        let first = clamp(z[at], -LIMIT, LIMIT) - mean;
        let second = clamp(z[part * p.z_pitch + at], -LIMIT, LIMIT) - mean;
        variance += input[i] * 0.5 * (first * first + second * second);
    }
    input[to] = mean;
    input[to + p.columns] = sqrt(variance);
}
