// What a gradient is multiplied by so that its norm is at most a limit: limit/‖g‖ if the norm is above it, else 1. g is the sum of
// the lanes' gradients. One workgroup, in a fixed order. A gradient that is not finite is left as it is: Adam sees to it.
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    var total = 0.0;
    for (var i = lane; i < p.len; i += WIDTH) {
        var g = 0.0;
        for (var part = 0u; part < p.lanes; part++) {
            g += grad[part * p.len + i];
        }
        total += g * g;
    }
    let norm = sqrt(sum_all(lane, total));
    let limit = settings[p.limit];
    if (lane == 0u) {
        factor[0] = 1.0;
        if (norm > limit) {
            factor[0] = limit / norm;
        }
    }
}
