// A product out = left · right for software drivers: see tile_software.wgsl.
fn product(group: vec3<u32>, thread: vec3<u32>, rows: u32, terms4: u32, columns4: u32) {
    let block = block_of(group, thread, columns4);
    let row = block.x;
    let column = block.y;
    if (row >= rows) {
        return;
    }
    let last = rows - 1u;
    let edge = columns4 - 1u;
    let at0 = left_row(row);
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
    for (var term4 = 0u; term4 < terms4; term4++) {
        var l = Column();
        l[0] = left(at0, term4);
        l[1] = left(at1, term4);
        l[2] = left(at2, term4);
        l[3] = left(at3, term4);
        l[4] = left(at4, term4);
        l[5] = left(at5, term4);
        l[6] = left(at6, term4);
        l[7] = left(at7, term4);
        l[8] = left(at8, term4);
        l[9] = left(at9, term4);
        l[10] = left(at10, term4);
        l[11] = left(at11, term4);
        l[12] = left(at12, term4);
        l[13] = left(at13, term4);
        l[14] = left(at14, term4);
        l[15] = left(at15, term4);
        add_column(&sums0, &l, term4 * 4u, column);
        add_column(&sums1, &l, term4 * 4u, c1);
        add_column(&sums2, &l, term4 * 4u, c2);
        add_column(&sums3, &l, term4 * 4u, c3);
        add_column(&sums4, &l, term4 * 4u, c4);
        add_column(&sums5, &l, term4 * 4u, c5);
        add_column(&sums6, &l, term4 * 4u, c6);
        add_column(&sums7, &l, term4 * 4u, c7);
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

// Four terms of a column of a block.
fn add_column(sums: ptr<function, Column>, l: ptr<function, Column>, term: u32, column: u32) {
    let r0 = right(term, column);
    let r1 = right(term + 1u, column);
    let r2 = right(term + 2u, column);
    let r3 = right(term + 3u, column);
    (*sums)[0] += (*l)[0].x * r0 + (*l)[0].y * r1 + (*l)[0].z * r2 + (*l)[0].w * r3;
    (*sums)[1] += (*l)[1].x * r0 + (*l)[1].y * r1 + (*l)[1].z * r2 + (*l)[1].w * r3;
    (*sums)[2] += (*l)[2].x * r0 + (*l)[2].y * r1 + (*l)[2].z * r2 + (*l)[2].w * r3;
    (*sums)[3] += (*l)[3].x * r0 + (*l)[3].y * r1 + (*l)[3].z * r2 + (*l)[3].w * r3;
    (*sums)[4] += (*l)[4].x * r0 + (*l)[4].y * r1 + (*l)[4].z * r2 + (*l)[4].w * r3;
    (*sums)[5] += (*l)[5].x * r0 + (*l)[5].y * r1 + (*l)[5].z * r2 + (*l)[5].w * r3;
    (*sums)[6] += (*l)[6].x * r0 + (*l)[6].y * r1 + (*l)[6].z * r2 + (*l)[6].w * r3;
    (*sums)[7] += (*l)[7].x * r0 + (*l)[7].y * r1 + (*l)[7].z * r2 + (*l)[7].w * r3;
    (*sums)[8] += (*l)[8].x * r0 + (*l)[8].y * r1 + (*l)[8].z * r2 + (*l)[8].w * r3;
    (*sums)[9] += (*l)[9].x * r0 + (*l)[9].y * r1 + (*l)[9].z * r2 + (*l)[9].w * r3;
    (*sums)[10] += (*l)[10].x * r0 + (*l)[10].y * r1 + (*l)[10].z * r2 + (*l)[10].w * r3;
    (*sums)[11] += (*l)[11].x * r0 + (*l)[11].y * r1 + (*l)[11].z * r2 + (*l)[11].w * r3;
    (*sums)[12] += (*l)[12].x * r0 + (*l)[12].y * r1 + (*l)[12].z * r2 + (*l)[12].w * r3;
    (*sums)[13] += (*l)[13].x * r0 + (*l)[13].y * r1 + (*l)[13].z * r2 + (*l)[13].w * r3;
    (*sums)[14] += (*l)[14].x * r0 + (*l)[14].y * r1 + (*l)[14].z * r2 + (*l)[14].w * r3;
    (*sums)[15] += (*l)[15].x * r0 + (*l)[15].y * r1 + (*l)[15].z * r2 + (*l)[15].w * r3;
}

