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
    let edge = columns4 - 1u;
    let at1 = min(row4 + 1u, last);
    let at2 = min(row4 + 2u, last);
    let at3 = min(row4 + 3u, last);
    let c1 = min(column + 1u, edge);
    let c2 = min(column + 2u, edge);
    let c3 = min(column + 3u, edge);
    let c4 = min(column + 4u, edge);
    let c5 = min(column + 5u, edge);
    let c6 = min(column + 6u, edge);
    let c7 = min(column + 7u, edge);
    var sums0 = Column();
    var sums1 = Column();
    var sums2 = Column();
    var sums3 = Column();
    var sums4 = Column();
    var sums5 = Column();
    var sums6 = Column();
    var sums7 = Column();
    for (var term = 0u; term < terms; term++) {
        let l0 = left(term, row4);
        let l1 = left(term, at1);
        let l2 = left(term, at2);
        let l3 = left(term, at3);
        let r0 = right(term, column);
        let r1 = right(term, c1);
        let r2 = right(term, c2);
        let r3 = right(term, c3);
        let r4 = right(term, c4);
        let r5 = right(term, c5);
        let r6 = right(term, c6);
        let r7 = right(term, c7);
        add_column(&sums0, l0, l1, l2, l3, r0);
        add_column(&sums1, l0, l1, l2, l3, r1);
        add_column(&sums2, l0, l1, l2, l3, r2);
        add_column(&sums3, l0, l1, l2, l3, r3);
        add_column(&sums4, l0, l1, l2, l3, r4);
        add_column(&sums5, l0, l1, l2, l3, r5);
        add_column(&sums6, l0, l1, l2, l3, r6);
        add_column(&sums7, l0, l1, l2, l3, r7);
    }
    // Column by column, the others moving up: see tile_software.wgsl.
    let across = min(WIDE, columns4 - column);
    for (var j = 0u; j < across; j++) {
        finish_column(row, column + j, rows, &sums0);
        sums0 = sums1;
        sums1 = sums2;
        sums2 = sums3;
        sums3 = sums4;
        sums4 = sums5;
        sums5 = sums6;
        sums6 = sums7;
    }
}

// A term of a column of a block.
fn add_column(sums: ptr<function, Column>, l0: vec4<f32>, l1: vec4<f32>, l2: vec4<f32>, l3: vec4<f32>, r: vec4<f32>) {
    (*sums)[0] += l0.x * r;
    (*sums)[1] += l0.y * r;
    (*sums)[2] += l0.z * r;
    (*sums)[3] += l0.w * r;
    (*sums)[4] += l1.x * r;
    (*sums)[5] += l1.y * r;
    (*sums)[6] += l1.z * r;
    (*sums)[7] += l1.w * r;
    (*sums)[8] += l2.x * r;
    (*sums)[9] += l2.y * r;
    (*sums)[10] += l2.z * r;
    (*sums)[11] += l2.w * r;
    (*sums)[12] += l3.x * r;
    (*sums)[13] += l3.y * r;
    (*sums)[14] += l3.z * r;
    (*sums)[15] += l3.w * r;
}
