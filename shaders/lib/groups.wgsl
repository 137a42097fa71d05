// Which columns a feature reveals. `groups` holds, one after the other: for each of the d features
// the start of its columns in the list (d + 1 words), the list of columns, and for each column its
// feature. Columns that are known from the start have d for a feature and come last in the list.

fn columns_start(feature: u32) -> u32 {
    return p.features + 1u + groups[feature];
}
fn columns_end(feature: u32) -> u32 {
    return p.features + 1u + groups[feature + 1u];
}
// The columns that are known from the start.
fn known_start() -> u32 {
    return p.features + 1u + groups[p.features];
}
fn known_end() -> u32 {
    return p.features + 1u + p.columns;
}
fn feature_of(column: u32) -> u32 {
    return groups[p.features + 1u + p.columns + column];
}
