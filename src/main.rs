//! The `querent` command.
fn main() {}
