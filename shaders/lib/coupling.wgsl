// A coupling moves every `stride`-th column from `offset` on: all of them, or one half.
fn is_moved(column: u32) -> bool {
    return column % p.stride == p.offset;
}
fn moved_columns() -> u32 {
    return (p.columns - p.offset + p.stride - 1u) / p.stride;
}

// Bounded outputs: v/(1 + |v|/bound), whose derivative is (1 − |s|/bound)² of what comes out.
const SCALE_BOUND: f32 = 2.0;
const SLOPE_BOUND: f32 = 1.0;
fn bounded(v: f32, bound: f32) -> f32 {
    return v / (1.0 + abs(v) / bound);
}
fn bounded_grad(s: f32, bound: f32) -> f32 {
    let rest = 1.0 - abs(s) / bound;
    return rest * rest;
}
