// A product out = left · right over a few rows of a chain (src/engine/gpu/fuse), on a GPU: the workgroup takes rows group.y
// to group.z through all columns, eight rows at a time. A thread has four columns of four rows in registers; 64 terms at a time
// of the rows go through shared memory, and the weights, which every workgroup reads, come from the cache.
// The sums are added up in the order of product.wgsl.
const PRODUCT_WIDTH: u32 = 64u;
const PRODUCT_HEIGHT: u32 = 1u;
const HIGH: u32 = 8u;
const ACROSS: u32 = 32u;
const SPAN: u32 = 16u; // vectors of four terms at a time

// By term: eight rows of left.
var<workgroup> left_rows: array<array<f32, HIGH>, 64>;

fn product(group: vec3<u32>, thread: vec3<u32>, rows: u32, terms4: u32, columns4: u32) {
    for (var first_row = group.y; first_row < group.z; first_row += HIGH) {
        for (var first_column = 0u; first_column < columns4; first_column += ACROSS) {
            product_tile(thread.x, vec2(first_row, group.z), first_column, terms4, columns4);
        }
    }
}

fn product_tile(thread: u32, rows: vec2<u32>, first_column: u32, terms4: u32, columns4: u32) {
    let column = first_column + thread % ACROSS;
    let half = (thread / ACROSS) * 4u;
    var sum0 = vec4(0.0);
    var sum1 = vec4(0.0);
    var sum2 = vec4(0.0);
    var sum3 = vec4(0.0);
    for (var first = 0u; first < terms4; first += SPAN) {
        let span = min(SPAN, terms4 - first);
        for (var i = thread; i < HIGH * span; i += PRODUCT_WIDTH) {
            let row = i % HIGH;
            let term4 = i / HIGH;
            let value = left(left_row(min(rows.x + row, rows.y - 1u)), first + term4);
            left_rows[term4 * 4u][row] = value.x;
            left_rows[term4 * 4u + 1u][row] = value.y;
            left_rows[term4 * 4u + 2u][row] = value.z;
            left_rows[term4 * 4u + 3u][row] = value.w;
        }
        workgroupBarrier();
        if (column < columns4) {
            for (var term = 0u; term < span * 4u; term++) {
                let factor = right(first * 4u + term, column);
                sum0 += left_rows[term][half] * factor;
                sum1 += left_rows[term][half + 1u] * factor;
                sum2 += left_rows[term][half + 2u] * factor;
                sum3 += left_rows[term][half + 3u] * factor;
            }
        }
        workgroupBarrier();
    }
    if (column >= columns4) {
        return;
    }
    let row = rows.x + half;
    if (row < rows.y) {
        finish(row, column, sum0);
    }
    if (row + 1u < rows.y) {
        finish(row + 1u, column, sum1);
    }
    if (row + 2u < rows.y) {
        finish(row + 2u, column, sum2);
    }
    if (row + 3u < rows.y) {
        finish(row + 3u, column, sum3);
    }
}
