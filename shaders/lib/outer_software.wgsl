// A product out = leftᵀ · right over the rows of both, for software drivers: as product_software.wgsl.
const PRODUCT_WIDTH: u32 = 8u;
const PRODUCT_HEIGHT: u32 = 2u;

fn outer_product(group: vec3<u32>, thread: vec3<u32>, rows4: u32, terms: u32, columns4: u32) {
    let row = (group.y * PRODUCT_HEIGHT + thread.y) * 2u;
    let column = (group.x * PRODUCT_WIDTH + thread.x) * 2u;
    if (row >= rows4 || column >= columns4) {
        return;
    }
    let second_row = min(row + 1u, rows4 - 1u);
    let second_column = min(column + 1u, columns4 - 1u);
    var sums: array<vec4<f32>, 8>;
    var more: array<vec4<f32>, 8>;
    for (var i = 0u; i < 8u; i++) {
        sums[i] = vec4(0.0);
        more[i] = vec4(0.0);
    }
    for (var index = 0u; index < terms; index++) {
        let term = term_at(index);
        let l0 = left(term, row);
        let l1 = left(term, second_row);
        let r = right(term, column);
        let m = right(term, second_column);
        sums[0] += l0.x * r;
        sums[1] += l0.y * r;
        sums[2] += l0.z * r;
        sums[3] += l0.w * r;
        sums[4] += l1.x * r;
        sums[5] += l1.y * r;
        sums[6] += l1.z * r;
        sums[7] += l1.w * r;
        more[0] += l0.x * m;
        more[1] += l0.y * m;
        more[2] += l0.z * m;
        more[3] += l0.w * m;
        more[4] += l1.x * m;
        more[5] += l1.y * m;
        more[6] += l1.z * m;
        more[7] += l1.w * m;
    }
    for (var i = 0u; i < 8u; i++) {
        if (row + i / 4u < rows4) {
            finish(row * 4u + i, column, sums[i]);
            if (column + 1u < columns4) {
                finish(row * 4u + i, column + 1u, more[i]);
            }
        }
    }
}
