// A candidate; with index NOBODY there is none.
struct Best {
    value: f32,
    index: u32,
}
const NOBODY: u32 = 0xffffffffu;

// Any candidate is better than none, also one that is not a number.
fn better(a: Best, b: Best) -> bool {
    if (b.index == NOBODY) {
        return a.index != NOBODY;
    }
    if (a.index == NOBODY) {
        return false;
    }
    return a.value > b.value || (a.value == b.value && a.index < b.index);
}
