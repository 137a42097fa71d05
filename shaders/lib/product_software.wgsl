// A product out = left · right for software drivers: see tile_software.wgsl.
fn product(group: vec3<u32>, thread: vec3<u32>, rows: u32, terms4: u32, columns4: u32) {
    let block = block_of(group, thread, columns4);
    let row = block.x;
    let column = block.y;
    if (row >= rows) {
        return;
    }
    let last = rows - 1u;
    let at0 = left_row(row);
    let at1 = left_row(min(row + 1u, last));
    let at2 = left_row(min(row + 2u, last));
    let at3 = left_row(min(row + 3u, last));
    let at4 = left_row(min(row + 4u, last));
    let at5 = left_row(min(row + 5u, last));
    let at6 = left_row(min(row + 6u, last));
    let at7 = left_row(min(row + 7u, last));
    var sums0 = mat4x4<f32>();
    var sums1 = mat4x4<f32>();
    var sums2 = mat4x4<f32>();
    var sums3 = mat4x4<f32>();
    var sums4 = mat4x4<f32>();
    var sums5 = mat4x4<f32>();
    var sums6 = mat4x4<f32>();
    var sums7 = mat4x4<f32>();
    for (var term4 = 0u; term4 < terms4; term4++) {
        let r0 = right_row(term4 * 4u, column, columns4);
        let r1 = right_row(term4 * 4u + 1u, column, columns4);
        let r2 = right_row(term4 * 4u + 2u, column, columns4);
        let r3 = right_row(term4 * 4u + 3u, column, columns4);
        let v0 = left(at0, term4);
        sums0 += v0.x * r0 + v0.y * r1 + v0.z * r2 + v0.w * r3;
        let v1 = left(at1, term4);
        sums1 += v1.x * r0 + v1.y * r1 + v1.z * r2 + v1.w * r3;
        let v2 = left(at2, term4);
        sums2 += v2.x * r0 + v2.y * r1 + v2.z * r2 + v2.w * r3;
        let v3 = left(at3, term4);
        sums3 += v3.x * r0 + v3.y * r1 + v3.z * r2 + v3.w * r3;
        let v4 = left(at4, term4);
        sums4 += v4.x * r0 + v4.y * r1 + v4.z * r2 + v4.w * r3;
        let v5 = left(at5, term4);
        sums5 += v5.x * r0 + v5.y * r1 + v5.z * r2 + v5.w * r3;
        let v6 = left(at6, term4);
        sums6 += v6.x * r0 + v6.y * r1 + v6.z * r2 + v6.w * r3;
        let v7 = left(at7, term4);
        sums7 += v7.x * r0 + v7.y * r1 + v7.z * r2 + v7.w * r3;
    }
    let sums = array(sums0, sums1, sums2, sums3, sums4, sums5, sums6, sums7);
    finish_block(block, rows, columns4, sums);
}
