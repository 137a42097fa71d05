// Adds noise to the batch's rows, in units of each column's standard deviation: rows that are gone through
// hundreds of times are learned by heart otherwise, above all by the policy. The rows of one instance get the
// same noise, so that they still differ by their choices only. The sum of four random bytes is nearly normal:
// each has mean 127.5 and variance (256² − 1)/12, so their sum has mean 510 and deviation √(4·5461.25) = 147.80.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let block = id.x;
    let row = id.y;
    if (block * 4u >= p.columns || row >= p.rows) {
        return;
    }
    let instance = (p.first + row) / max(clock[COPIES], 1u);
    let bits = random_bits(STREAM_INPUT_NOISE, instance, 0u, block);
    for (var i = 0u; i < 4u; i++) {
        let column = block * 4u + i;
        if (column < p.columns) {
            let word = bits[i];
            let bytes = (word & 255u) + ((word >> 8u) & 255u) + ((word >> 16u) & 255u) + (word >> 24u);
            let noise = (f32(bytes) - 510.0) * (settings[INPUT_NOISE] / 147.80);
            x[row * p.pitch + column] += noise * spread[column];
        }
    }
}
