// A product out = left · right for software drivers: a thread computes eight rows by eight columns in registers and
// reads its operands straight from their buffers. Reads are dear there, and shared memory is no faster.
const PRODUCT_WIDTH: u32 = 8u;
const PRODUCT_HEIGHT: u32 = 2u;

fn product(group: vec3<u32>, thread: vec3<u32>, rows: u32, terms4: u32, columns4: u32) {
    let row = (group.y * PRODUCT_HEIGHT + thread.y) * 8u;
    let column = (group.x * PRODUCT_WIDTH + thread.x) * 2u;
    if (row >= rows || column >= columns4) {
        return;
    }
    let second = min(column + 1u, columns4 - 1u);
    var at: array<u32, 8>;
    var sums: array<vec4<f32>, 8>;
    var more: array<vec4<f32>, 8>;
    for (var i = 0u; i < 8u; i++) {
        at[i] = left_row(min(row + i, rows - 1u));
        sums[i] = vec4(0.0);
        more[i] = vec4(0.0);
    }
    for (var term4 = 0u; term4 < terms4; term4++) {
        let r0 = right(term4 * 4u, column);
        let r1 = right(term4 * 4u + 1u, column);
        let r2 = right(term4 * 4u + 2u, column);
        let r3 = right(term4 * 4u + 3u, column);
        let m0 = right(term4 * 4u, second);
        let m1 = right(term4 * 4u + 1u, second);
        let m2 = right(term4 * 4u + 2u, second);
        let m3 = right(term4 * 4u + 3u, second);
        for (var i = 0u; i < 8u; i++) {
            let v = left(at[i], term4);
            sums[i] += v.x * r0 + v.y * r1 + v.z * r2 + v.w * r3;
            more[i] += v.x * m0 + v.y * m1 + v.z * m2 + v.w * m3;
        }
    }
    for (var i = 0u; i < 8u; i++) {
        if (row + i < rows) {
            finish(row + i, column, sums[i]);
            if (column + 1u < columns4) {
                finish(row + i, column + 1u, more[i]);
            }
        }
    }
}
