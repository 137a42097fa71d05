// Writes one number into a block of a matrix: so many rows and columns, its first number at `at`.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.columns && id.y < p.rows) {
        to[p.at + id.y * p.pitch + id.x] = f32(p.value);
    }
}
