// Rows of a conditional flow; with `GROUPS`. Each of `batch` instances has a row for each class, one batch after the
// other, and all of that once for each part. What a row is given and what it is asked for follow from the instance's mask m:
//   kind 0   given what is known from the start, asked for what m has;
//   kind 1   given that and what m has, asked for all the rest.
// The first part is of the kind `kind`, further ones are of kind 1.
fn instance_of(row: u32) -> u32 {
    return row % p.batch;
}
fn class_of(row: u32) -> u32 {
    return row / p.batch % p.classes;
}
fn part_of(row: u32) -> u32 {
    return row / (p.batch * p.classes);
}
fn is_conditional(row: u32) -> bool {
    return p.kind + part_of(row) > 0u;
}
fn is_seen(row: u32, feature: u32) -> bool {
    return masks[(p.step * p.batch + instance_of(row)) * p.mask_stride + feature] > 0.5;
}
fn is_given(row: u32, feature: u32) -> bool {
    return is_conditional(row) && is_seen(row, feature);
}
fn is_asked(row: u32, feature: u32) -> bool {
    return is_conditional(row) != is_seen(row, feature);
}
// The same of a column.
fn is_asked_column(row: u32, column: u32) -> bool {
    let feature = feature_of(column);
    if (feature == p.features) {
        return false;
    }
    return is_asked(row, feature);
}
