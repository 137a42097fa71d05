// A layer's weight, stored [input][output], as [output][input] at the same place of another buffer: backward
// to the input then reads whole rows, as forward does. Once a step, for all its rows. A thread turns a
// block of four by four.

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let output4 = id.x;
    let input4 = id.y;
    let outputs4 = p.outputs_pitch / 4u;
    let inputs4 = p.inputs_pitch / 4u;
    if (output4 >= outputs4 || input4 >= inputs4) {
        return;
    }
    let start = p.weight / 4u + input4 * 4u * outputs4 + output4;
    let turned = transpose(mat4x4<f32>(
        weights[start],
        weights[start + outputs4],
        weights[start + 2u * outputs4],
        weights[start + 3u * outputs4],
    ));
    let to = p.weight / 4u + output4 * 4u * inputs4 + input4;
    transposed[to] = turned[0];
    transposed[to + inputs4] = turned[1];
    transposed[to + 2u * inputs4] = turned[2];
    transposed[to + 3u * inputs4] = turned[3];
}
