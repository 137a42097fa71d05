// Reductions over a workgroup of WIDTH threads, by a fixed tree: the same bits every time. Every
// thread of the workgroup must call them.
const WIDTH: u32 = 64u;

var<workgroup> reduce_value: array<f32, WIDTH>;

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
