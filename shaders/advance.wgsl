// Moves the clock on, so that many steps can be recorded before anything runs.
struct Params {
    what: u32,
    batches: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> clock: array<u32>;
@group(0) @binding(2) var<storage, read_write> powers: array<f32>;
@group(0) @binding(3) var<storage, read> hyper: array<f32>;

@compute @workgroup_size(1)
fn main() {
    if ((p.what & (ADVANCE_POLICY | ADVANCE_PREDICTOR)) != 0u) {
        clock[STEP] += 1u;
        clock[BATCH] += 1u;
        if (clock[BATCH] == p.batches) {
            clock[BATCH] = 0u;
            clock[EPOCH] += 1u;
        }
    }
    if ((p.what & ADVANCE_POLICY) != 0u) {
        powers[0] *= hyper[BETA1];
        powers[1] *= hyper[BETA2];
    }
    if ((p.what & ADVANCE_PREDICTOR) != 0u) {
        powers[2] *= hyper[BETA1];
        powers[3] *= hyper[BETA2];
    }
    if ((p.what & ADVANCE_CHUNK) != 0u) {
        clock[CHUNK] += 1u;
    }
}
