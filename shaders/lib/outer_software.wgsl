// A product out = leftᵀ · right over the rows of both, for software drivers: see tile_software.wgsl.
fn outer_product(group: vec3<u32>, thread: vec3<u32>, rows4: u32, terms: u32, columns4: u32) {
    let block = block_of(group, thread, columns4);
    let row = block.x;
    let column = block.y;
    let rows = rows4 * 4u;
    if (row >= rows) {
        return;
    }
    let row4 = row / 4u;
    let last = rows4 - 1u;
    var sums0 = mat4x4<f32>();
    var sums1 = mat4x4<f32>();
    var sums2 = mat4x4<f32>();
    var sums3 = mat4x4<f32>();
    var sums4 = mat4x4<f32>();
    var sums5 = mat4x4<f32>();
    var sums6 = mat4x4<f32>();
    var sums7 = mat4x4<f32>();
    for (var term = 0u; term < terms; term++) {
        let r = right_row(term, column, columns4);
        let l0 = left(term, row4);
        let l1 = left(term, min(row4 + 1u, last));
        sums0 += l0.x * r;
        sums1 += l0.y * r;
        sums2 += l0.z * r;
        sums3 += l0.w * r;
        sums4 += l1.x * r;
        sums5 += l1.y * r;
        sums6 += l1.z * r;
        sums7 += l1.w * r;
    }
    let sums = array(sums0, sums1, sums2, sums3, sums4, sums5, sums6, sums7);
    finish_block(block, rows, columns4, sums);
}
