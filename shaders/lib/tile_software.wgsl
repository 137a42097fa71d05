// What the products for software drivers share (product_software.wgsl, outer_software.wgsl). A thread computes sixteen
// rows by thirty-two columns, eight columns of vectors, and reads its operands straight from their buffers: on lavapipe a read of
// a vector is a loop over the eight lanes, so what counts is how few there are: 48 for 2,048 multiplications. Every sum is
// used by a constant index alone, also where it is written: the columns move up instead.
const PRODUCT_WIDTH: u32 = 8u;
const PRODUCT_HEIGHT: u32 = 1u;
const TALL: u32 = 16u;
const WIDE: u32 = 8u;

// One vector of each of a thread's rows.
alias Column = array<vec4<f32>, TALL>;

// A thread's first row and vector of columns: block by block along the columns, so that the threads of a narrow product
// are not idle. 65535 workgroups are a line of the grid (`line` in src/engine/kernels/mod.rs).
fn block_of(group: vec3<u32>, thread: vec3<u32>, columns4: u32) -> vec2<u32> {
    let block = (group.y * 65535u + group.x) * PRODUCT_WIDTH + thread.x;
    let across = (columns4 + WIDE - 1u) / WIDE;
    return vec2((block / across) * TALL, (block % across) * WIDE);
}

// Writes a column of a block.
fn finish_column(row: u32, column: u32, rows: u32, sums: ptr<function, Column>) {
    finish(row, column, (*sums)[0]);
    if (row + 1u < rows) { finish(row + 1u, column, (*sums)[1]); }
    if (row + 2u < rows) { finish(row + 2u, column, (*sums)[2]); }
    if (row + 3u < rows) { finish(row + 3u, column, (*sums)[3]); }
    if (row + 4u < rows) { finish(row + 4u, column, (*sums)[4]); }
    if (row + 5u < rows) { finish(row + 5u, column, (*sums)[5]); }
    if (row + 6u < rows) { finish(row + 6u, column, (*sums)[6]); }
    if (row + 7u < rows) { finish(row + 7u, column, (*sums)[7]); }
    if (row + 8u < rows) { finish(row + 8u, column, (*sums)[8]); }
    if (row + 9u < rows) { finish(row + 9u, column, (*sums)[9]); }
    if (row + 10u < rows) { finish(row + 10u, column, (*sums)[10]); }
    if (row + 11u < rows) { finish(row + 11u, column, (*sums)[11]); }
    if (row + 12u < rows) { finish(row + 12u, column, (*sums)[12]); }
    if (row + 13u < rows) { finish(row + 13u, column, (*sums)[13]); }
    if (row + 14u < rows) { finish(row + 14u, column, (*sums)[14]); }
    if (row + 15u < rows) { finish(row + 15u, column, (*sums)[15]); }
}
