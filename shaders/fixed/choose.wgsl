// Puts the next feature into the list, if one is due: of the candidates the one that lowers the loss most for its cost,
//   (L − L_c) / max(cost_c, 0.001),  or times it where the loss rises, so that the cheaper one comes first there as well,
// with L the loss of the list so far, which is the score of the last candidate: nothing. Then it writes what is left as
// candidates, and d, for nothing, behind them. One thread; it has hardly anything to do but once an epoch.

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) thread: u32) {
    if (thread > 0u) {
        return;
    }
    // Bounds that depend on the thread: see nmppg/select.wgsl.
    let nothing = p.features + thread;
    let end = p.steps + thread;
    var count = thread;
    while (count < end && u32(list[count]) < nothing) {
        count++;
    }
    let known = candidates[nothing] == nothing;
    let due = known && count < end && f32(count) < settings[CHOSEN];
    if (known && !due) {
        return;
    }
    if (due) {
        var best = nothing;
        var most = 0.0;
        for (var i = thread; i < nothing; i++) {
            let feature = candidates[i];
            if (feature < nothing) {
                let less = scores[nothing] - scores[i];
                let cost = max(costs[feature], 0.001);
                let gain = select(less * cost, less / cost, less > 0.0);
                if (best == nothing || gain > most) {
                    best = feature;
                    most = gain;
                }
            }
        }
        list[count] = f32(best);
        average[count] = f32(best);
    }
    var at = thread;
    for (var feature = thread; feature < nothing; feature++) {
        var open = true;
        for (var t = thread; t < end; t++) {
            open = open && u32(list[t]) != feature;
        }
        if (open) {
            candidates[at] = feature;
            at++;
        }
    }
    for (; at <= nothing; at++) {
        candidates[at] = nothing;
    }
}
