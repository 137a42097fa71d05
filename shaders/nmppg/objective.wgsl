// Adds a micro-batch to the metrics, in one workgroup and a fixed order: the sums over its instances
// of J (with the α and λ of each instance), of G = Σ_t s_t Δ_t + s_k ℓ_k, of H = Σ_t s_t H_t (J = G − λ H), of the predictor's loss
// Σ_t ℓ_t/(k + 1), the number of instances, and the mass s still asking at three marks on the way (none
// for a mark of 0 or past the end).
// With no steps (warm-up) all of J is the loss.

// (Conditions of the parameters alone are avoided: see select.wgsl.)
fn mass_at(mark: u32, row: u32) -> f32 {
    let tape_row = mark * p.rows + row;
    if (tape_row < p.rows || tape_row >= (p.steps + 1u) * p.rows) {
        return 0.0;
    }
    return scalars[tape_row * SCALARS + SURVIVAL];
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    var g = 0.0;
    var h = 0.0;
    var lifted = 0.0; // what the instances' factors make of h
    var l = 0.0;
    var still = vec3(0.0, 0.0, 0.0);
    for (var row = lane; row < p.rows; row += WIDTH) {
        var total = 0.0;
        let factor = scalars[row * SCALARS + FACTOR];
        let alpha = settings[ALPHA] * factor;
        let last = p.steps * p.rows + row;
        for (var tape_row = row; tape_row < last; tape_row += p.rows) {
            let at = tape_row * SCALARS;
            let loss = losses[tape_row * LOSSES + LOSS];
            let survival = scalars[at + SURVIVAL];
            g += survival * (alpha * scalars[at + GO] * scalars[at + PRICE] + scalars[at + HALT] * loss);
            let entropy = scalars[at + ENTROPY];
            h += survival * entropy;
            lifted += (factor - 1.0) * survival * entropy;
            total += loss;
        }
        let loss = losses[last * LOSSES + LOSS];
        var survival = 1.0;
        if (last > row) {
            survival = scalars[last * SCALARS + SURVIVAL];
        }
        g += survival * loss;
        l += (total + loss) / f32(p.steps + 1u);
        still += vec3(mass_at(p.mark0, row), mass_at(p.mark1, row), mass_at(p.mark2, row));
    }
    g = sum_all(lane, g);
    h = sum_all(lane, h);
    lifted = sum_all(lane, lifted);
    l = sum_all(lane, l);
    still.x = sum_all(lane, still.x);
    still.y = sum_all(lane, still.y);
    still.z = sum_all(lane, still.z);
    if (lane == 0u) {
        metrics[0] += g - settings[LAMBDA] * (h + lifted);
        metrics[1] += g;
        metrics[2] += h;
        metrics[3] += l;
        metrics[4] += f32(p.rows);
        metrics[5] += still.x;
        metrics[6] += still.y;
        metrics[7] += still.z;
    }
}
