// Copies a block of a matrix into another: so many rows and columns, each block's first number at `from_at` and `to_at`.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.columns && id.y < p.rows) {
        to[p.to_at + id.y * p.to_pitch + id.x] = values[p.from_at + id.y * p.from_pitch + id.x];
    }
}
