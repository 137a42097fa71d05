// Another batch of episodes is in the replay memory.

@compute @workgroup_size(1)
fn main() {
    kept[0] += p.batches;
}
