// What a coupling's network reads: the columns that are asked for and not moved, then what is given: its columns, its
// mask; the mask of what is asked for, and the class. Zeros up to the pitch.
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = id.x;
    let row = id.y;
    if (at >= p.input_pitch || row >= p.rows) {
        return;
    }
    let columns = p.columns;
    var value = 0.0;
    if (at < columns) {
        if (!is_moved(at) && is_asked_column(row, at)) {
            value = z[row * p.z_pitch + at];
        }
    } else if (at < 2u * columns) {
        let column = at - columns;
        let feature = feature_of(column);
        var given = feature == p.features;
        if (!given) {
            given = is_given(row, feature);
        }
        if (given) {
            value = x[instance_of(row) * p.x_pitch + column];
        }
    } else if (at < 2u * columns + p.features) {
        value = select(0.0, 1.0, is_given(row, at - 2u * columns));
    } else if (at < 2u * (columns + p.features)) {
        value = select(0.0, 1.0, is_asked(row, at - 2u * columns - p.features));
    } else if (at < 2u * (columns + p.features) + p.classes) {
        value = select(0.0, 1.0, class_of(row) == at - 2u * (columns + p.features));
    }
    input[row * p.input_pitch + at] = value;
}
