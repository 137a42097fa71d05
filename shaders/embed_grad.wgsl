// First layer's weight gradient under hard masks. A feature acquired at step τ is in the input from
// step τ + 1 on, so with the suffix sums D (embed_suffix)
//   ∂W_i = Σ_b x_{b,i} D_{b,τ_b+1},   ∂W_{columns + j} = Σ_b D_{b,τ_b+1},   ∂b = Σ_b D_{b,0}
// over the instances b that acquired the feature early enough; a column that is known from the start has
// D_{b,0} for D_{b,τ_b+1}. One thread sums four units of one row, over the instances in order: no atomics, the
// same bits every time.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let unit4 = id.x;
    let i = id.y;
    let pitch4 = p.hidden_pitch / 4u;
    if (unit4 >= pitch4 || i > p.columns + p.features) {
        return;
    }
    // Conditions as a thread sees them, not of the parameters alone: see nmppg/select.wgsl.
    let rows = min(p.rows, arrayLength(&acquired_at));
    let accumulate = p.accumulate * (i + 1u) > i;
    var total = vec4(0.0);
    var to = p.weight / 4u + i * pitch4 + unit4;
    if (i == p.columns + p.features) {
        to = p.bias / 4u + unit4;
        for (var row = 0u; row < rows; row++) {
            total += suffix[row * pitch4 + unit4];
        }
    } else {
        let is_column = i < p.columns;
        var feature = 0u;
        if (is_column) {
            feature = feature_of(i);
        } else {
            feature = i - p.columns;
        }
        let known = feature == p.features;
        for (var row = 0u; row < rows; row++) {
            var from_step = 0u;
            if (!known) {
                // Never acquired: 2³² − 1, which must not wrap around to 0.
                from_step = min(acquired_at[row * p.features + feature], p.steps) + 1u;
            }
            if (from_step < p.steps) {
                let value = suffix[(from_step * p.rows + row) * pitch4 + unit4];
                if (is_column) {
                    total += x[row * p.x_pitch + i] * value;
                } else {
                    total += value;
                }
            }
        }
    }
    total /= f32(p.divisor);
    if (accumulate) {
        total += grad[to];
    }
    grad[to] = total;
}
