// Everybody is asked the list: path_t = list_t, and d where the list has ended.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 64u + id.x;
    if (i < p.rows * p.steps) {
        path[i] = u32(list[i / p.rows]);
    }
}
