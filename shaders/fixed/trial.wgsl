// The first layer as if one more feature were known, for several features at once: candidate c of row r has the row
// c rows + r of the tape. `sum` has what is known so far.
//   h = relu(sum + Σ_{columns i of the candidate} x_i W_i + W_{columns + candidate})
// A candidate of d is nothing: what is known so far, for comparison.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let unit4 = id.x;
    let tape_row = id.y;
    let pitch4 = p.hidden_pitch / 4u;
    if (unit4 >= pitch4 || tape_row >= p.rows * p.count) {
        return;
    }
    let row = tape_row % p.rows;
    let weight4 = p.weight / 4u + unit4;
    var a = sum[row * pitch4 + unit4];
    let feature = candidates[p.first + tape_row / p.rows];
    if (feature < p.features) {
        for (var i = columns_start(feature); i < columns_end(feature); i++) {
            let column = groups[i];
            a += x[row * p.x_pitch + column] * weights[weight4 + column * pitch4];
        }
        a += weights[weight4 + (p.columns + feature) * pitch4];
    }
    hidden[tape_row * pitch4 + unit4] = max(a, vec4(0.0));
}
