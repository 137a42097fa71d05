// Reductions over a workgroup of WIDTH threads, by a fixed tree: the same bits every time. Every
// thread of the workgroup must call them.
const WIDTH: u32 = 64u;

var<workgroup> reduce_value: array<f32, WIDTH>;
var<workgroup> reduce_index: array<u32, WIDTH>;

fn sum_all(lane: u32, value: f32) -> f32 {
    reduce_value[lane] = value;
    workgroupBarrier();
    for (var half = WIDTH / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            reduce_value[lane] += reduce_value[lane + half];
        }
        workgroupBarrier();
    }
    let sum = workgroupUniformLoad(&reduce_value[0]);
    return sum;
}

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
