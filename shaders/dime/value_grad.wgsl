// What the values of all steps are wrong by, and its gradient. With a the feature acquired at step t, B kept from there
// (choose.wgsl), and δ = ℓ_t − ℓ_{t+1}, both constants,
//   E = (q_a − δ)²,  q_a = σ(v_a) B      ∂E/∂v_a = 2 (q_a − δ) B σ(v_a) (1 − σ(v_a)),      zero for every other feature
// and for all of them after the last step. The values are overwritten; the loss has done the same with the logits before
// them. Without steps every row is a last one: then only the predictor learns.
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let feature = id.x;
    let tape_row = id.y;
    if (feature >= p.features || tape_row >= p.rows * (p.steps + 1u)) {
        return;
    }
    let at = tape_row * p.pitch + p.classes + feature;
    var grad = 0.0;
    if (tape_row < p.rows * p.steps) {
        if (path[tape_row] == feature) {
            let next = tape_row + p.rows;
            let less = losses[tape_row * LOSSES + LOSS] - losses[next * LOSSES + LOSS];
            let bound = bounds[tape_row * VALUES + BOUND];
            let share = sigmoid(outputs[at]);
            let error = share * bound - less;
            grad = flush(2.0 * error * bound * share * (1.0 - share));
            bounds[tape_row * VALUES + ERROR] = error * error;
        }
    } else if (feature == 0u) {
        bounds[tape_row * VALUES + ERROR] = 0.0;
    }
    outputs[at] = grad;
}
