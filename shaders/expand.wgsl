// The networks' dense input for relaxed masks: the columns times their feature's mask, then the
// mask itself; zeros up to the pitch. `nothing_seen`: the mask is zero, whatever the tape says. Columns
// that are known from the start have no mask.
struct Params {
    rows: u32,
    step: u32,
    columns: u32,
    features: u32,
    x_pitch: u32,
    relax_pitch: u32,
    input_pitch: u32,
    nothing_seen: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> groups: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> relax: array<f32>;
@group(0) @binding(4) var<storage, read_write> input: array<f32>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    let row = id.y;
    if (i >= p.input_pitch || row >= p.rows) {
        return;
    }
    let tape_row = p.step * p.rows + row;
    let mask = soft_at(tape_row, p.relax_pitch);
    var value = 0.0;
    if (i < p.columns) {
        let feature = feature_of(i);
        if (feature == p.features) {
            value = x[row * p.x_pitch + i];
        } else if (p.nothing_seen == 0u) {
            value = x[row * p.x_pitch + i] * relax[mask + feature];
        }
    } else if (p.nothing_seen == 0u && i < p.columns + p.features) {
        value = relax[mask + i - p.columns];
    }
    input[tape_row * p.input_pitch + i] = value;
}
