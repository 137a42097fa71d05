// An instance a workgroup: its threads share the loops over features and meet in reductions (reduce.wgsl). Every
// thread of the workgroup must call these. Software drivers get alone.wgsl instead.
const GROUP: u32 = 64u;

var<workgroup> reduce_index: array<u32, WIDTH>;

fn row_of(group: vec3<u32>, groups: vec3<u32>, thread: u32) -> u32 {
    return group.y * groups.x + group.x;
}

fn lane_of(thread: u32) -> u32 {
    return thread;
}

// What was read by all may be changed by one.
fn meet() {
    storageBarrier();
}

// The largest value and its index; of equals the lowest index.
fn best_all(lane: u32, candidate: Best) -> Best {
    reduce_value[lane] = candidate.value;
    reduce_index[lane] = candidate.index;
    workgroupBarrier();
    for (var half = WIDTH / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            let mine = Best(reduce_value[lane], reduce_index[lane]);
            let other = Best(reduce_value[lane + half], reduce_index[lane + half]);
            if (better(other, mine)) {
                reduce_value[lane] = other.value;
                reduce_index[lane] = other.index;
            }
        }
        workgroupBarrier();
    }
    let value = workgroupUniformLoad(&reduce_value[0]);
    let index = workgroupUniformLoad(&reduce_index[0]);
    return Best(value, index);
}
