// Draws the warm-up's masks into the first row of the relax tape: one random bit a feature; or, with
// `all`, every feature is seen: what the reference predictor is trained and evaluated on.
struct Params {
    rows: u32,
    features: u32,
    pitch: u32,
    first: u32,
    all: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> clock: array<u32>;
@group(0) @binding(2) var<storage, read_write> relax: array<f32>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = id.x;
    let row = id.y;
    if (word * 32u >= p.features || row >= p.rows) {
        return;
    }
    var bits = random_bits(STREAM_MASK, p.first + row, 0u, word / 4u)[word % 4u];
    if (p.all != 0u) {
        bits = 0xffffffffu;
    }
    for (var i = 0u; i < 32u; i++) {
        let feature = word * 32u + i;
        if (feature < p.features) {
            relax[soft_at(row, p.pitch) + feature] = f32((bits >> i) & 1u);
        }
    }
}
