// masks: two vectors of d a tape row, the relaxed mask m̃ and the selection r̃.
fn soft_at(tape_row: u32, pitch: u32) -> u32 {
    return tape_row * 2u * pitch;
}
fn chance_at(tape_row: u32, pitch: u32) -> u32 {
    return tape_row * 2u * pitch + pitch;
}
