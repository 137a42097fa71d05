// Whether a row still asks at the call's step: while at least the mass `negligible` of one of its instance's
// rollouts is left. Rollouts of an instance end together, as each is the others' baseline.
fn still_asks(row: u32) -> bool {
    let tape_row = p.step * p.rows + row;
    if (tape_row < p.rows || hyper[NEGLIGIBLE] == 0.0) {
        return true;
    }
    let twins = max(u32(hyper[TWINS]), 1u);
    let first = row - row % twins;
    var most = 0.0;
    for (var twin = first; twin < min(first + twins, p.rows); twin++) {
        most = max(most, scalars[(p.step * p.rows + twin) * SCALARS + SURVIVAL]);
    }
    return most >= hyper[NEGLIGIBLE];
}
