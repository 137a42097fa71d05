// Appends the rows that still ask at a step to the list of those of the steps before. In `live`: for each step
// where its list begins (and after the last where that ends), from `ends` on how many steps each row asks, from
// `list` on the tape rows. One workgroup, in the rows' order: the same list every time.
struct Params {
    rows: u32,
    step: u32,
    ends: u32,
    list: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> scalars: array<f32>;
@group(0) @binding(2) var<storage, read> hyper: array<f32>;
@group(0) @binding(3) var<storage, read_write> live: array<u32>;

const LANES: u32 = 64u;
var<workgroup> asking: array<u32, LANES>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    var at = 0u;
    if (p.step > 0u) {
        at = live[p.step];
    }
    for (var first = 0u; first < p.rows; first += LANES) {
        let row = first + lane;
        asking[lane] = 0u;
        if (row < p.rows && still_asks(row)) {
            asking[lane] = 1u;
        }
        workgroupBarrier();
        var before = 0u;
        var all = 0u;
        for (var other = 0u; other < LANES; other++) {
            before += select(0u, asking[other], other < lane);
            all += asking[other];
        }
        if (asking[lane] == 1u) {
            live[p.list + at + before] = p.step * p.rows + row;
            live[p.ends + row] = p.step + 1u;
        }
        at += all;
        workgroupBarrier();
    }
    if (lane == 0u) {
        if (p.step == 0u) {
            live[0] = 0u;
        }
        live[p.step + 1u] = at;
    }
}
