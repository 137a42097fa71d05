// A product out = left · right for software drivers: see tile_software.wgsl.
fn product(group: vec3<u32>, thread: vec3<u32>, rows: u32, terms4: u32, columns4: u32) {
    let block = block_of(group, thread, columns4);
    let row = block.x;
    let column = block.y;
    if (row >= rows) {
        return;
    }
    let last = rows - 1u;
    let at0 = left_row(min(row + 0u, last));
    let at1 = left_row(min(row + 1u, last));
    let at2 = left_row(min(row + 2u, last));
    let at3 = left_row(min(row + 3u, last));
    let at4 = left_row(min(row + 4u, last));
    let at5 = left_row(min(row + 5u, last));
    let at6 = left_row(min(row + 6u, last));
    let at7 = left_row(min(row + 7u, last));
    let at8 = left_row(min(row + 8u, last));
    let at9 = left_row(min(row + 9u, last));
    let at10 = left_row(min(row + 10u, last));
    let at11 = left_row(min(row + 11u, last));
    let at12 = left_row(min(row + 12u, last));
    let at13 = left_row(min(row + 13u, last));
    let at14 = left_row(min(row + 14u, last));
    let at15 = left_row(min(row + 15u, last));
    var sums0 = mat4x4<f32>();
    var sums1 = mat4x4<f32>();
    var sums2 = mat4x4<f32>();
    var sums3 = mat4x4<f32>();
    var sums4 = mat4x4<f32>();
    var sums5 = mat4x4<f32>();
    var sums6 = mat4x4<f32>();
    var sums7 = mat4x4<f32>();
    var sums8 = mat4x4<f32>();
    var sums9 = mat4x4<f32>();
    var sums10 = mat4x4<f32>();
    var sums11 = mat4x4<f32>();
    var sums12 = mat4x4<f32>();
    var sums13 = mat4x4<f32>();
    var sums14 = mat4x4<f32>();
    var sums15 = mat4x4<f32>();
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
        let v8 = left(at8, term4);
        sums8 += v8.x * r0 + v8.y * r1 + v8.z * r2 + v8.w * r3;
        let v9 = left(at9, term4);
        sums9 += v9.x * r0 + v9.y * r1 + v9.z * r2 + v9.w * r3;
        let v10 = left(at10, term4);
        sums10 += v10.x * r0 + v10.y * r1 + v10.z * r2 + v10.w * r3;
        let v11 = left(at11, term4);
        sums11 += v11.x * r0 + v11.y * r1 + v11.z * r2 + v11.w * r3;
        let v12 = left(at12, term4);
        sums12 += v12.x * r0 + v12.y * r1 + v12.z * r2 + v12.w * r3;
        let v13 = left(at13, term4);
        sums13 += v13.x * r0 + v13.y * r1 + v13.z * r2 + v13.w * r3;
        let v14 = left(at14, term4);
        sums14 += v14.x * r0 + v14.y * r1 + v14.z * r2 + v14.w * r3;
        let v15 = left(at15, term4);
        sums15 += v15.x * r0 + v15.y * r1 + v15.z * r2 + v15.w * r3;
    }
    finish_block(
        block,
        rows,
        columns4,
        array(
            sums0, sums1, sums2, sums3, sums4, sums5, sums6, sums7,
            sums8, sums9, sums10, sums11, sums12, sums13, sums14, sums15,
        ),
    );
}
