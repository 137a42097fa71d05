// The way back through a coupling. With g the gradient of the row's log-density, which the log-determinant is part of, and
// v = ∂/∂z' of a column that was moved,
//   ∂/∂u = v (u ≥ 0),  v·e^r (u < 0)      ∂/∂r = v·u·e^r + g where u < 0, else 0
//   ∂/∂t = ∂/∂u      ∂/∂s = ∂/∂u · z·e^s + g      ∂/∂z = ∂/∂u · e^s,
// then through the bounds of s and r. The gradient of z' becomes that of z, the network's outputs become their
// gradient; outputs of columns that were not asked for had no say. A thread a row.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups_: vec3<u32>) {
    let row = id.y * groups_.x * 64u + id.x;
    if (row >= p.rows) {
        return;
    }
    let at = row * p.z_pitch;
    let end = at + p.columns;
    let outputs_at = row * p.outputs_pitch;
    let moved = moved_columns();
    let g = grad_logs[row];
    for (var i = at; i < end; i++) {
        let column = i - at;
        if (!is_moved(column)) {
            continue;
        }
        let o = outputs_at + column / p.stride;
        var grads = vec3(0.0, 0.0, 0.0);
        if (is_asked_column(row, column)) {
            let s = bounded(outputs[o], SCALE_BOUND);
            let r = bounded(outputs[o + 2u * moved], SLOPE_BOUND);
            let scaled = from_z[i] * exp(s);
            let u = scaled + outputs[o + moved];
            var du = grad_z[i];
            if (u < 0.0) {
                du *= exp(r);
                grads.z = (du * u + g) * bounded_grad(r, SLOPE_BOUND);
            }
            grads.x = (du * scaled + g) * bounded_grad(s, SCALE_BOUND);
            grads.y = du;
            grad_z[i] = du * exp(s);
        }
        outputs[o] = grads.x;
        outputs[o + moved] = grads.y;
        outputs[o + 2u * moved] = grads.z;
    }
}
