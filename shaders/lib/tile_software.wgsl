// What the products for software drivers share (product_software.wgsl, outer_software.wgsl). A thread computes eight
// rows by sixteen columns in registers, a row as a matrix of four vectors, and reads its operands straight from their
// buffers: reads are dear there, and shared memory is no faster. The rows are written out one by one: as an array, the
// sums would be in memory, at half the speed. Sixteen rows are a quarter faster still, but take lavapipe twenty seconds
// to compile.
const PRODUCT_WIDTH: u32 = 8u;
const PRODUCT_HEIGHT: u32 = 1u;
const TALL: u32 = 8u;

// A thread's first row and vector of columns: block by block along the columns, so that the threads of a narrow product
// are not idle. 65535 workgroups are a line of the grid (`line` in src/engine/kernels/mod.rs).
fn block_of(group: vec3<u32>, thread: vec3<u32>, columns4: u32) -> vec2<u32> {
    let block = (group.y * 65535u + group.x) * PRODUCT_WIDTH + thread.x;
    let across = (columns4 + 3u) / 4u;
    return vec2((block / across) * TALL, (block % across) * 4u);
}

fn right_row(term: u32, column: u32, columns4: u32) -> mat4x4<f32> {
    let last = columns4 - 1u;
    return mat4x4(
        right(term, column),
        right(term, min(column + 1u, last)),
        right(term, min(column + 2u, last)),
        right(term, min(column + 3u, last)),
    );
}

// Writes a block, in loops of unknown length, which are not unrolled: thirty-two copies of `finish` would be most of a
// kernel.
fn finish_block(block: vec2<u32>, rows: u32, columns4: u32, sums: array<mat4x4<f32>, TALL>) {
    var block_sums = sums;
    let down = min(TALL, rows - block.x);
    let across = min(4u, columns4 - block.y);
    for (var i = 0u; i < down; i++) {
        for (var j = 0u; j < across; j++) {
            finish(block.x + i, block.y + j, block_sums[i][j]);
        }
    }
}
