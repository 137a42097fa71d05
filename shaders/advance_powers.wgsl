// Moves the powers of Adam's decays on and the clock not, for several updates of one training step. Each optimiser group
// has two powers and a bit in `slots`, as in advance.wgsl.

@compute @workgroup_size(1)
fn main() {
    for (var slot = 0u; slot < arrayLength(&powers) / 2u; slot++) {
        if (((p.slots >> slot) & 1u) != 0u) {
            powers[2u * slot] *= settings[BETA1];
            powers[2u * slot + 1u] *= settings[BETA2];
        }
    }
}
