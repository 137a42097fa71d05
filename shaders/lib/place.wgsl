// Where a row of a batch or of an evaluation chunk lies in the data set.
// Shuffled, the batch is the clock's, and each instance has as many rows one after the other as the
// clock says; in order, the chunk of the split is, and rows past its end are not there. A split has `chunks`
// of them: after the last comes the first again, of another pass over the split.
struct Place {
    source: u32,
    there: bool,
}

fn place(row: u32) -> Place {
    var position = p.first + row;
    var there = true;
    if (p.shuffled != 0u) {
        let copies = max(clock[COPIES], 1u);
        position = clock[BATCH] * ((p.batch + copies - 1u) / copies) + position / copies;
        position = shuffled_index(position, p.split_len);
    } else {
        position += (clock[CHUNK] % max(p.chunks, 1u)) * p.batch;
        there = position < p.split_len;
    }
    return Place(p.split_start + select(0u, position, there), there);
}
