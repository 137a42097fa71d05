// Columns through their empirical distributions to a normal one, in place: between two knots, values of the column that
// are known with their normal scores, the score is linear; beyond the first and the last it is theirs. `values` has, from
// `at` on, the knots of each column from the smallest to the largest, then their scores. Fewer knots than there is room
// for repeat the last.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 64u + id.x;
    if (i >= p.rows * p.columns) {
        return;
    }
    let place = (i / p.columns) * p.pitch + i % p.columns;
    let first = p.at + (i % p.columns) * 2u * p.knots;
    let value = x[place];
    // The last knot of those that are not above the value lies in `low..high`.
    var low = first;
    var high = first + p.knots;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (values[middle] <= value) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let next = min(low + 1u, first + p.knots - 1u);
    let width = values[next] - values[low];
    var share = 0.0;
    if (width > 0.0) {
        share = clamp((value - values[low]) / width, 0.0, 1.0);
    }
    let score = values[low + p.knots];
    x[place] = score + share * (values[next + p.knots] - score);
}
