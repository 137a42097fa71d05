// First layer under hard masks. Acquiring feature j adds its columns' weight rows, times their
// values, and its mask's row to the pre-activation, so step t + 1 is step t plus one feature:
// the cost of a step does not depend on how many features there are.
//   a_0 = b + Σ_{columns i known from the start} x_i W_i,
//   a_t = a_{t−1} + Σ_{columns i of j_{t−1}} x_i W_i + W_{columns + j_{t−1}},  h_t = relu(a_t)
// The steps first_step .. first_step + steps are done in one call; `sum` carries a between calls.
// With `tape`, h_t goes to its row of the tape, else to the row of the instance.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let unit4 = id.x;
    let row = id.y;
    let pitch4 = p.hidden_pitch / 4u;
    if (unit4 >= pitch4 || row >= p.rows) {
        return;
    }
    let weight4 = p.weight / 4u + unit4;
    var a = vec4(0.0);
    if (p.first_step > 0u) {
        a = sum[row * pitch4 + unit4];
    }
    // Bounds that depend on the row: see select.wgsl of NM-PPG.
    let end = (p.first_step + p.steps) * p.rows + row;
    for (var tape_row = p.first_step * p.rows + row; tape_row < end; tape_row += p.rows) {
        if (tape_row < p.rows) {
            a = weights[p.bias / 4u + unit4];
            for (var i = known_start(); i < known_end(); i++) {
                let column = groups[i];
                a += x[row * p.x_pitch + column] * weights[weight4 + column * pitch4];
            }
        } else {
            let feature = path[tape_row - p.rows];
            if (feature < p.features) {
                for (var i = columns_start(feature); i < columns_end(feature); i++) {
                    let column = groups[i];
                    a += x[row * p.x_pitch + column] * weights[weight4 + column * pitch4];
                }
                a += weights[weight4 + (p.columns + feature) * pitch4];
            }
        }
        let at = select(row, tape_row, p.tape != 0u) * pitch4 + unit4;
        var h = max(a, vec4(0.0));
        if (p.dropout != 0u) {
            h *= multiplier[at];
        }
        hidden[at] = h;
    }
    sum[row * pitch4 + unit4] = a;
}
