// Multiplies the gradients of all lanes by the factor that grad_norm has found.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 64u + id.x;
    if (i < p.len) {
        grad[i] *= factor[0];
    }
}
