//! The shaders of fused calls, made of the kernels' own functions.
//!
//! - Of a **chain**: a workgroup takes a few instances through all calls, one after the other, with a barrier between.
//! - **Together**: a workgroup finds the call it belongs to, and does of it what a workgroup of that kernel would.
//! - **Solo**: one kernel, as it is, on buffers that lie in arenas.

use super::arena::Home;
use super::wgsl::{Functions, STRIDE, Variant, functions};
use crate::engine::kernels::{Access, Grid, Part, View};
use crate::engine::plan::MOST_FUSED;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Vectors of the table that a dispatch sees: WebGPU's default limit of a uniform binding is 64 KiB.
pub(super) const SEEN: usize = 4096;
const _: () = assert!(MOST_FUSED * STRIDE <= SEEN);

/// What a shader is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Chain,
    Together,
    Solo,
}

/// A shader's text and the homes it binds, in order, with whether it only reads there.
#[derive(Debug)]
pub(super) struct Shader {
    pub source: String,
    pub homes: Vec<(Home, bool)>,
}

/// Threads of a workgroup of fused calls: as many as a workgroup of nearly every kernel has.
const THREADS: u32 = 64;

/// Writes the shader of some variants, whose numbers in the table are their places here.
///
/// # Errors
/// Two kernels have different things of one name, or one cannot be fused on this kind of device.
pub(super) fn shader(form: Form, variants: &[(Variant, Grid)]) -> Result<Shader> {
    let mut shared = BTreeMap::new();
    let (mut texts, mut entry, mut cases) = (String::new(), String::new(), Vec::new());
    for (index, (variant, grid)) in variants.iter().enumerate() {
        let prefix = format!("k{index}_");
        let made = functions(variant, &prefix, form == Form::Chain)?;
        let name = variant.kernel.0.name;
        if !fits(form, variant, &made) {
            return Err(Error::Internal(format!("{name} cannot be fused")));
        }
        let _ = writeln!(texts, "// {name}\n{}", made.text);
        match form {
            Form::Chain => cases.push(chain_call(&prefix, &made, *grid)),
            Form::Together => cases.push(together_call(&prefix, &made)),
            Form::Solo => entry = solo_entry(&prefix, &made),
        }
        for (name, text) in made.shared {
            // The numbers in a workgroup variable's type are those of the kernel that declares it.
            let plain = text.replace(&prefix, "");
            let (_, known) = shared.entry(name.clone()).or_insert((text, plain.clone()));
            if *known != plain {
                return Err(Error::Internal(format!("two kernels of one shader have a `{name}`")));
            }
        }
    }
    let (bindings, homes) = bindings(variants);
    let shared: String = shared.values().map(|(text, _)| format!("{text}\n")).collect();
    match form {
        Form::Chain => entry = chain_entry(&cases),
        Form::Together => entry = together_entry(&cases),
        Form::Solo => {}
    }
    Ok(Shader { source: [bindings, shared, texts, entry].concat(), homes })
}

/// Whether a kernel can be part of such a shader: in a chain, only threads that share a row or a product of a few rows may
/// meet; side by side, only as many threads as a workgroup has.
fn fits(form: Form, variant: &Variant, made: &Functions) -> bool {
    let by_rows = variant.kernel.0.parts.iter().any(|part| matches!(part, Part::Team | Part::Product));
    match form {
        Form::Chain => !made.meets() || by_rows,
        Form::Together => !made.meets() || made.size.iter().product::<u32>() == THREADS,
        Form::Solo => true,
    }
}

fn solo_entry(prefix: &str, made: &Functions) -> String {
    let [across, down] = made.size;
    let arguments: Vec<String> =
        made.builtins.iter().map(|b| format!("@builtin({b}) {b}: {}", type_of(b))).collect();
    format!(
        "@compute @workgroup_size({across}, {down})
fn main({}) {{
    {prefix}main(range.x * {STRIDE}u, {});
}}
",
        arguments.join(", "),
        made.builtins.join(", ")
    )
}

fn type_of(builtin: &str) -> &'static str {
    if builtin == "local_invocation_index" { "u32" } else { "vec3<u32>" }
}

/// The table, the part of it that is to be done, and the buffers.
fn bindings(variants: &[(Variant, Grid)]) -> (String, Vec<(Home, bool)>) {
    let mut used: BTreeMap<Home, (View, bool)> = BTreeMap::new();
    for (variant, _) in variants {
        for (home, binding) in variant.homes.iter().zip(variant.kernel.0.bindings) {
            // What lies in an arena is written as a whole: a device knows no parts of a buffer.
            let only_read = matches!(home, Home::Alone(_)) && binding.access == Access::Read;
            let entry = used.entry(*home).or_insert((binding.view, only_read));
            entry.1 &= only_read;
        }
    }
    let mut text = format!(
        "@group(0) @binding(0) var<uniform> ops: array<vec4<u32>, {SEEN}>;\n\
         @group(0) @binding(1) var<uniform> range: vec4<u32>;\n"
    );
    for ((home, (view, only_read)), index) in used.iter().zip(2..) {
        let element = match home {
            Home::Vectors(_) => "vec4<f32>",
            Home::Scalars(_) => "f32",
            Home::Words(_) => "u32",
            Home::Alone(_) => view.wgsl(),
        };
        let access = if *only_read { "read" } else { "read_write" };
        let _ =
            writeln!(text, "@group(0) @binding({index}) var<storage, {access}> {home}: array<{element}>;");
        if matches!(home, Home::Scalars(_)) {
            let _ = writeln!(
                text,
                "fn {home}_load(i: u32) -> vec4<f32> {{\n    \
                 return vec4({home}[i], {home}[i + 1u], {home}[i + 2u], {home}[i + 3u]);\n}}\n\
                 fn {home}_store(i: u32, value: vec4<f32>) {{\n    {home}[i] = value.x;\n    \
                 {home}[i + 1u] = value.y;\n    {home}[i + 2u] = value.z;\n    {home}[i + 3u] = value.w;\n}}"
            );
        }
    }
    (text, used.into_iter().map(|(home, (_, only_read))| (home, only_read)).collect())
}

/// A workgroup's instances are `first` to `first + count`; of a tape's row t, they are at t · instances.
fn chain_entry(cases: &[String]) -> String {
    format!(
        "@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {{
    let instances = range.z;
    let first = group.x * range.w;
    let count = min(range.w, instances - first);
    for (var index = range.x; index < range.y; index++) {{
        let op_at = index * {STRIDE}u;
        let head = ops[op_at];
        switch head.x {{
{}            default: {{}}
        }}
        storageBarrier();
        workgroupBarrier();
    }}
}}
",
        numbered(cases)
    )
}

fn numbered(cases: &[String]) -> String {
    let case =
        |(index, text): (usize, &String)| format!("            case {index}u: {{\n{text}            }}\n");
    cases.iter().enumerate().map(case).collect()
}

/// What a workgroup does of a call of a chain: `head` has the variant, the steps of the tape, and the threads of a row.
fn chain_call(prefix: &str, made: &Functions, grid: Grid) -> String {
    let argument = |builtin: &String| -> &str {
        match (grid, builtin.as_str()) {
            (Grid::Area { .. }, "global_invocation_id") => "vec3(i % head.z, tape + i / head.z, 0u)",
            (Grid::Line(_), "global_invocation_id") => "vec3(tape + i, 0u, 0u)",
            (Grid::Each(_), "workgroup_id") => "vec3(tape + i, 0u, 0u)",
            (Grid::Each(_), "local_invocation_index") => "thread",
            (Grid::Tiles { .. }, "workgroup_id") => "vec3(0u, tape, tape + count)",
            (Grid::Tiles { .. }, "local_invocation_id") => "vec3(thread, 0u, 0u)",
            _ => "vec3(1u)",
        }
    };
    let arguments = made.builtins.iter().map(argument).collect::<Vec<_>>().join(", ");
    let call = format!("{prefix}main(op_at, {arguments});");
    let rows = match grid {
        Grid::Tiles { .. } => call,
        // All threads at one row.
        Grid::Each(_) => format!("for (var i = 0u; i < count; i++) {{ {call} }}"),
        _ => format!("for (var i = thread; i < count * head.z; i += {THREADS}u) {{ {call} }}"),
    };
    format!(
        "                for (var t = 0u; t < head.y; t++) {{
                    let tape = t * instances + first;
                    {rows}
                }}
"
    )
}

/// `head` has the variant, the first workgroup of the call, how many lie across, and how many there are.
fn together_entry(cases: &[String]) -> String {
    format!(
        "@compute @workgroup_size({THREADS})
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {{
    let place = range.z + group.y * groups.x + group.x;
    for (var index = range.x; index < range.y; index++) {{
        let op_at = index * {STRIDE}u;
        let head = ops[op_at];
        if (place < head.y || place - head.y >= head.w) {{
            continue;
        }}
        let at = vec3((place - head.y) % head.z, (place - head.y) / head.z, 0u);
        switch head.x {{
{}            default: {{}}
        }}
    }}
}}
",
        numbered(cases)
    )
}

fn together_call(prefix: &str, made: &Functions) -> String {
    let [across, down] = made.size;
    let size = across * down;
    let argument = |builtin: &String| -> String {
        match builtin.as_str() {
            "workgroup_id" => "at".into(),
            "num_workgroups" => "vec3(head.z, (head.w + head.z - 1u) / head.z, 1u)".into(),
            "local_invocation_index" => "i".into(),
            "local_invocation_id" => format!("vec3(i % {across}u, i / {across}u, 0u)"),
            _ => format!("at * vec3({across}u, {down}u, 1u) + vec3(i % {across}u, i / {across}u, 0u)"),
        }
    };
    let arguments = made.builtins.iter().map(argument).collect::<Vec<_>>().join(", ");
    let call = format!("{prefix}main(op_at, {arguments});");
    if size == THREADS {
        format!("                let i = thread;\n                {call}\n")
    } else {
        format!("                for (var i = thread; i < {size}u; i += {THREADS}u) {{ {call} }}\n")
    }
}
