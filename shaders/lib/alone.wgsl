// An instance a thread, instead of reduce.wgsl and team.wgsl: nobody to meet. For software drivers, where a barrier is
// dear and the threads of a workgroup are the lanes of a vector.
const GROUP: u32 = 16u;
const WIDTH: u32 = 1u;

fn row_of(group: vec3<u32>, groups: vec3<u32>, thread: u32) -> u32 {
    return (group.y * groups.x + group.x) * GROUP + thread;
}

fn lane_of(thread: u32) -> u32 {
    return 0u;
}

fn meet() {}

fn sum_all(lane: u32, value: f32) -> f32 {
    return value;
}

fn best_all(lane: u32, candidate: Best) -> Best {
    return candidate;
}
