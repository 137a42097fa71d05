// A product out = leftᵀ · right over the rows of both, on a GPU: as product.wgsl, but both operands already lie term
// by term. Software drivers get outer_software.wgsl.
const PRODUCT_WIDTH: u32 = 8u;
const PRODUCT_HEIGHT: u32 = 8u;
const DEEP: u32 = 16u;

var<workgroup> left_tile: array<array<vec4<f32>, 8>, DEEP>;
var<workgroup> right_tile: array<array<vec4<f32>, 8>, DEEP>;

fn outer_product(group: vec3<u32>, thread: vec3<u32>, rows4: u32, terms: u32, columns4: u32) {
    let first_row = group.y * 8u;
    let first_column = group.x * 8u;
    let index = thread.y * PRODUCT_WIDTH + thread.x;
    let bring = index % 8u;
    var sum0 = vec4(0.0);
    var sum1 = vec4(0.0);
    var sum2 = vec4(0.0);
    var sum3 = vec4(0.0);
    for (var first = 0u; first < terms; first += DEEP) {
        for (var down = index / 8u; down < DEEP; down += 8u) {
            var from_left = vec4(0.0);
            var from_right = vec4(0.0);
            if (first + down < terms) {
                let term = first + down;
                if (first_row + bring < rows4) {
                    from_left = left(term, first_row + bring);
                }
                if (first_column + bring < columns4) {
                    from_right = right(term, first_column + bring);
                }
            }
            left_tile[down][bring] = from_left;
            right_tile[down][bring] = from_right;
        }
        workgroupBarrier();
        for (var term = 0u; term < DEEP; term++) {
            let rows = left_tile[term][thread.y];
            let factor = right_tile[term][thread.x];
            sum0 += rows.x * factor;
            sum1 += rows.y * factor;
            sum2 += rows.z * factor;
            sum3 += rows.w * factor;
        }
        workgroupBarrier();
    }
    let row4 = first_row + thread.y;
    let column = first_column + thread.x;
    if (row4 < rows4 && column < columns4) {
        finish(row4 * 4u, column, sum0);
        finish(row4 * 4u + 1u, column, sum1);
        finish(row4 * 4u + 2u, column, sum2);
        finish(row4 * 4u + 3u, column, sum3);
    }
}
