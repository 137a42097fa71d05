// A product out = left · right on a GPU: a workgroup computes 32 rows by 32 columns, a thread four by four of them in
// registers. Sixteen terms at a time of both operands go through shared memory, so that each number is read once
// by the workgroup instead of once by eight threads. The kernel says where numbers come from (left_row, left, right)
// and what becomes of four sums (finish). Software drivers get product_software.wgsl.
const PRODUCT_WIDTH: u32 = 8u;
const PRODUCT_HEIGHT: u32 = 8u;
const TILE: u32 = 32u;
const DEEP: u32 = 16u;

// By term: 32 rows of left, and 8 times 4 columns of right.
var<workgroup> left_tile: array<array<f32, TILE>, DEEP>;
var<workgroup> right_tile: array<array<vec4<f32>, 8>, DEEP>;

fn product(group: vec3<u32>, thread: vec3<u32>, rows: u32, terms4: u32, columns4: u32) {
    let first_row = group.y * TILE;
    let first_column = group.x * 8u;
    if (first_row >= rows) {
        return;
    }
    let index = thread.y * PRODUCT_WIDTH + thread.x;
    // What this thread brings: four terms of two rows of left, a vector of two terms of right.
    let bring_row = index / 4u;
    let bring_term4 = index % 4u;
    let from_row = left_row(min(first_row + bring_row, rows - 1u));
    let from_row_too = left_row(min(first_row + bring_row + 16u, rows - 1u));
    let bring_column = first_column + index % 8u;
    var sum0 = vec4(0.0);
    var sum1 = vec4(0.0);
    var sum2 = vec4(0.0);
    var sum3 = vec4(0.0);
    for (var first = 0u; first < terms4; first += DEEP / 4u) {
        let term4 = first + bring_term4;
        var one = vec4(0.0);
        var two = vec4(0.0);
        if (term4 < terms4) {
            one = left(from_row, term4);
            two = left(from_row_too, term4);
        }
        for (var i = 0u; i < 4u; i++) {
            left_tile[bring_term4 * 4u + i][bring_row] = one[i];
            left_tile[bring_term4 * 4u + i][bring_row + 16u] = two[i];
        }
        for (var down = index / 8u; down < DEEP; down += 8u) {
            var value = vec4(0.0);
            if (first * 4u + down < terms4 * 4u && bring_column < columns4) {
                value = right(first * 4u + down, bring_column);
            }
            right_tile[down][index % 8u] = value;
        }
        workgroupBarrier();
        for (var term = 0u; term < DEEP; term++) {
            let factor = right_tile[term][thread.x];
            sum0 += left_tile[term][thread.y * 4u] * factor;
            sum1 += left_tile[term][thread.y * 4u + 1u] * factor;
            sum2 += left_tile[term][thread.y * 4u + 2u] * factor;
            sum3 += left_tile[term][thread.y * 4u + 3u] * factor;
        }
        workgroupBarrier();
    }
    let row = first_row + thread.y * 4u;
    let column = first_column + thread.x;
    if (column >= columns4) {
        return;
    }
    if (row < rows) {
        finish(row, column, sum0);
    }
    if (row + 1u < rows) {
        finish(row + 1u, column, sum1);
    }
    if (row + 2u < rows) {
        finish(row + 2u, column, sum2);
    }
    if (row + 3u < rows) {
        finish(row + 3u, column, sum3);
    }
}
