// Which rows of the tape a call works on: all of them, p.rows from the first one on; or, if there is a range of
// lists, those that were still asking at the steps live_from .. live_to. `live` holds where each step's list
// begins, and from live_list on the tape rows of all steps, one after the other (live.wgsl). Both networks use
// them: the policy the rows themselves; the predictor the first live_shift rows (a whole step: before anything
// is asked) and then each listed row one step later, for what it saw after its question.
fn is_listed() -> bool {
    return p.live_from != p.live_to;
}

fn row_count() -> u32 {
    if (is_listed()) {
        return live[p.live_to] - live[p.live_from] + p.live_shift;
    }
    return p.rows;
}

fn row_at(index: u32) -> u32 {
    if (!is_listed() || index < p.live_shift) {
        return index;
    }
    return live[p.live_list + live[p.live_from] + index - p.live_shift] + p.live_shift;
}
