// Moves the clock on, so that many steps can be recorded before anything runs. Each optimiser group has two powers, of
// Adam's two decays, and a bit in `slots`.

@compute @workgroup_size(1)
fn main() {
    if (p.slots != 0u) {
        clock[STEP] += 1u;
        clock[BATCH] += 1u;
        if (clock[BATCH] == p.batches) {
            clock[BATCH] = 0u;
            clock[EPOCH] += 1u;
        }
    }
    for (var slot = 0u; slot < arrayLength(&powers) / 2u; slot++) {
        if (((p.slots >> slot) & 1u) != 0u) {
            powers[2u * slot] *= settings[BETA1];
            powers[2u * slot + 1u] *= settings[BETA2];
        }
    }
    if (p.chunk != 0u) {
        clock[CHUNK] += 1u;
    }
}
