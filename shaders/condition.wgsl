// Tells the networks a number besides the row: the condition, on a scale from 0 to 1. In training, instance i of n
// gets one of its own, from − margin + (to − from + 2 margin) (i + U)/n: stratified, so that every batch has all of the
// range, and all rollouts of an instance have the same. In an evaluation each pass over the split has its own, from the first to the
// last in equal steps. The networks read the `extra` hat functions of a linear spline,
//   h_j = max(0, 1 − |v (extra − 1) − j|),
// so that the first layer can add any piecewise linear function of the condition.
// What the condition is a logarithm of is a factor in the objective: factor = exp(span (v − unit)). Without a span it
// is exactly 1.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    // Conditions as a row sees them: see nmppg/select.wgsl.
    let is_evaluation = p.passes * p.rows > row;
    let copies = max(clock[COPIES], 1u);
    let instance = (p.first + row) / copies;
    let random = unit(random_bits(STREAM_CONDITION, instance, 0u, 0u).x);
    let start = settings[CONDITION_FROM];
    let width = settings[CONDITION_TO] - start;
    let margin = settings[CONDITION_MARGIN];
    let share = (f32(instance) + random) / f32((p.batch + copies - 1u) / copies);
    var at = start - margin + share * (width + (margin + margin));
    if (is_evaluation) {
        at = start + f32(clock[CHUNK] / max(p.chunks, 1u)) / f32(max(p.passes, 2u) - 1u) * width;
    }
    let steps = f32(max(p.extra, 1u) - 1u);
    let first = row * p.pitch + p.columns;
    // A bound that depends on the row.
    let end = min(first + p.extra, arrayLength(&x));
    for (var i = first; i < end; i++) {
        x[i] = max(0.0, 1.0 - abs(at * steps - f32(i - first)));
    }
    if (!is_evaluation) {
        let span = settings[CONDITION_SPAN];
        let lifted = (at - settings[CONDITION_UNIT]) * span;
        factors[row * p.stride + p.word] = select(exp(lifted), 1.0, span == 0.0);
    }
}
