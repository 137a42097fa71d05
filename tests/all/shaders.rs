//! Tier 1: what naga finds in every shader is what the Rust table says, it stays within default WebGPU,
//! and it can be translated for every backend. No device is needed.

use naga::back::{hlsl, msl, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, GlobalUse, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Expression, Literal, Module, Scalar, ShaderStage, StorageAccess, TypeInner};
use querent::engine::cpu::Real;
use querent::engine::kernels::words::{self, Words};
use querent::engine::kernels::{Access, Kernel, Part, Target, View, WORDS};
use querent::engine::plan::Elem;
use querent::methods::kernels;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

// WebGPU's defaults: what every device has.
const MAX_STORAGE_BUFFERS: usize = 8;
const MAX_INVOCATIONS: u32 = 256;
const MAX_WORKGROUP_BYTES: u32 = 16 << 10;

/// Parses and validates a shader as default WebGPU would: no optional capability.
fn parse(source: &str) -> Result<(Module, ModuleInfo), String> {
    let module = naga::front::wgsl::parse_str(source).map_err(|error| error.emit_to_string(source))?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::empty())
        .validate(&module)
        .map_err(|error| error.emit_to_string(source))?;
    Ok((module, info))
}

/// What sources are made for.
const TARGETS: [Target; 2] = [Target::Gpu, Target::Software];

/// Everything in which a kernel's shader differs from its entry in the table, or goes beyond default
/// WebGPU.
fn complaints(kernel: &Kernel) -> Vec<String> {
    TARGETS.iter().flat_map(|&target| complaints_on(kernel, target)).collect()
}

fn complaints_on(kernel: &Kernel, target: Target) -> Vec<String> {
    let (module, info) = match parse(&kernel.source(target)) {
        Ok(parsed) => parsed,
        Err(error) => return vec![format!("{}: {error}", kernel.name)],
    };
    let mut wrong = Vec::new();
    entry_complaints(&module, &info, &mut wrong);
    params_complaints(kernel, &module, &mut wrong);
    storage_complaints(kernel, &module, &info, &mut wrong);
    wrong.into_iter().map(|what| format!("{}: {what}", kernel.name)).collect()
}

fn entry_complaints(module: &Module, info: &ModuleInfo, wrong: &mut Vec<String>) {
    let [entry] = &module.entry_points[..] else {
        wrong.push(format!("{} entry points", module.entry_points.len()));
        return;
    };
    if entry.name != "main" || entry.stage != ShaderStage::Compute {
        wrong.push(format!("the entry point is {:?} `{}`, not compute `main`", entry.stage, entry.name));
    }
    let invocations: u32 = entry.workgroup_size.iter().product();
    if invocations > MAX_INVOCATIONS {
        wrong.push(format!("{invocations} threads in a workgroup, {MAX_INVOCATIONS} are allowed"));
    }
    let used = info.get_entry_point(0);
    let bytes: u32 = module
        .global_variables
        .iter()
        .filter(|(handle, variable)| variable.space == AddressSpace::WorkGroup && !used[*handle].is_empty())
        .map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx()).next_multiple_of(16))
        .sum();
    if bytes > MAX_WORKGROUP_BYTES {
        wrong.push(format!("{bytes} bytes of workgroup memory, {MAX_WORKGROUP_BYTES} are allowed"));
    }
}

/// `@group(0) @binding(0) var<uniform> …: Params`, its members the table's fields in order.
fn params_complaints(kernel: &Kernel, module: &Module, wrong: &mut Vec<String>) {
    if kernel.fields.len() > WORDS {
        wrong.push(format!("{} fields do not fit a block of {WORDS} words", kernel.fields.len()));
    }
    let mut uniforms = module.global_variables.iter().filter(|(_, v)| v.space == AddressSpace::Uniform);
    let (Some((_, uniform)), None) = (uniforms.next(), uniforms.next()) else {
        wrong.push("there is not exactly one uniform buffer".into());
        return;
    };
    if uniform.binding.is_none_or(|at| (at.group, at.binding) != (0, 0)) {
        wrong.push(format!("the uniform buffer is at {:?}, not group 0, binding 0", uniform.binding));
    }
    let ty = &module.types[uniform.ty];
    let TypeInner::Struct { members, .. } = &ty.inner else {
        wrong.push("the uniform buffer is not a struct".into());
        return;
    };
    if ty.name.as_deref() != Some("Params") {
        wrong.push(format!("the uniform buffer's type is {:?}, not Params", ty.name));
    }
    let names: Vec<&str> = members.iter().map(|m| m.name.as_deref().unwrap_or("")).collect();
    if names != kernel.fields {
        wrong.push(format!("Params has the fields {names:?}, the table {:?}", kernel.fields));
    }
    // The words of a call are copied as they are, so each member is one word, without gaps.
    for ((member, name), index) in members.iter().zip(&names).zip(0..) {
        let is_word = module.types[member.ty].inner == TypeInner::Scalar(Scalar::U32);
        if !is_word || member.offset != 4 * index {
            wrong.push(format!("Params.{name} is not the u32 at word {index}"));
        }
    }
}

/// The storage buffers in order of their bindings: the table's names, element types and accesses.
fn storage_complaints(kernel: &Kernel, module: &Module, info: &ModuleInfo, wrong: &mut Vec<String>) {
    let mut found: Vec<_> = module
        .global_variables
        .iter()
        .filter_map(|(handle, variable)| match variable.space {
            AddressSpace::Storage { access } => Some((handle, variable, access)),
            _ => None,
        })
        .collect();
    found.sort_by_key(|(_, variable, _)| variable.binding.map(|at| (at.group, at.binding)));
    if found.len() > MAX_STORAGE_BUFFERS {
        wrong.push(format!("{} storage buffers, {MAX_STORAGE_BUFFERS} are allowed", found.len()));
    }
    if found.len() != kernel.bindings.len() {
        wrong.push(format!("{} storage buffers, the table has {}", found.len(), kernel.bindings.len()));
    }
    for ((&(handle, variable, access), binding), index) in found.iter().zip(kernel.bindings).zip(1..) {
        let name = binding.name;
        if variable.binding.is_none_or(|at| (at.group, at.binding) != (0, index)) {
            wrong.push(format!("`{name}` is at {:?}, not group 0, binding {index}", variable.binding));
        }
        if variable.name.as_deref() != Some(name) {
            wrong.push(format!("binding {index} is {:?}, in the table `{name}`", variable.name));
        }
        if element(module, variable.ty) != Some(binding.view.elem()) {
            wrong.push(format!("`{name}` is not an array of {:?}", binding.view.elem()));
        }
        let expected = match binding.access {
            Access::Read => StorageAccess::LOAD,
            Access::Write => StorageAccess::LOAD | StorageAccess::STORE,
        };
        if access != expected {
            wrong.push(format!("`{name}` has access {access:?}, in the table {:?}", binding.access));
        }
        // What the table says is written keeps lanes and ranges apart: it must not say so in vain.
        let used = info.get_entry_point(0)[handle];
        if used.is_empty() {
            wrong.push(format!("`{name}` is never used"));
        } else if binding.access == Access::Write && !used.intersects(GlobalUse::WRITE | GlobalUse::ATOMIC) {
            wrong.push(format!("`{name}` is never written, but Write in the table"));
        }
    }
}

/// What an array holds, by the table's types.
fn element(module: &Module, ty: naga::Handle<naga::Type>) -> Option<Elem> {
    let TypeInner::Array { base, .. } = module.types[ty].inner else { return None };
    match module.types[base].inner {
        TypeInner::Scalar(Scalar::F32) => Some(Elem::F32),
        TypeInner::Vector { size: naga::VectorSize::Quad, scalar: Scalar::F32 } => Some(Elem::F32),
        TypeInner::Scalar(Scalar::U32) | TypeInner::Atomic(Scalar::U32) => Some(Elem::U32),
        _ => None,
    }
}

#[test]
fn every_shader_is_what_the_table_says() {
    let wrong: Vec<String> = kernels().flat_map(complaints).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The complaints about a kernel after a change to its own text.
fn changed(name: &str, change: impl FnOnce(&mut String)) -> Vec<String> {
    let kernel = kernels().find(|kernel| kernel.name == name).expect("a kernel");
    let mut body = kernel.body.to_string();
    change(&mut body);
    complaints(&Kernel { body: body.leak(), ..*kernel })
}

/// Replaces text that must be there: a control whose change changes nothing controls nothing.
fn edit(source: &mut String, from: &str, to: &str) {
    assert!(source.contains(from), "`{from}` is not in the shader any more");
    *source = source.replace(from, to);
}

/// The control: each kind of mistake must be reported. The header is written from the table, so what is left are
/// mistakes of the body, and a table that says what the body does not do.
#[test]
fn mistakes_in_shader_or_table_are_seen() {
    let first = |wrong: Vec<String>| wrong.into_iter().next().unwrap_or_else(|| "no complaint".into());
    let select = "nmppg/select";
    assert!(changed(select, |_| {}).is_empty());

    // The shader does not parse, or parses but is not valid.
    let wrong = first(changed(select, |body| edit(body, "fn main(", "fn main((")));
    assert!(wrong.contains("expected"), "{wrong}");
    let wrong = first(changed(select, |body| body.push_str("fn f() -> u32 { return 1.5; }")));
    assert!(wrong.contains("1.5"), "{wrong}");
    let wrong = first(changed(select, |body| edit(body, "path[tape_row] = chosen;", "costs[0] = 1.0;")));
    assert!(wrong.contains("costs"), "a write to what is read only: {wrong}");
    let wrong = first(changed(select, |body| edit(body, "p.mask_pitch", "p.stride")));
    assert!(wrong.contains("stride"), "{wrong}");
    let wrong = first(changed("gumbel", |body| edit(body, "fn main(", "fn other(")));
    assert!(wrong.contains("`other`"), "{wrong}");

    // The table says more than the shader does, or something else.
    let wrong = first(changed(select, |body| {
        edit(body, "path[tape_row] = chosen;", "");
    }));
    assert!(wrong.contains("`path` is never used"), "{wrong}");
    let kernel = kernels().find(|kernel| kernel.name == select).expect("a kernel");
    let with = |index: usize, change: fn(&mut querent::engine::kernels::Binding)| {
        let mut bindings = kernel.bindings.to_vec();
        change(&mut bindings[index]);
        first(complaints(&Kernel { bindings: bindings.leak(), ..*kernel }))
    };
    let wrong = with(1, |gumbel| gumbel.access = Access::Write);
    assert!(wrong.contains("`gumbel` is never written"), "{wrong}");
    let wrong = with(0, |logits| logits.view = View::U32);
    assert!(wrong.contains("select"), "{wrong}");
    let ninth = querent::engine::kernels::Binding { name: "ninth", view: View::F32, access: Access::Read };
    let bindings = [kernel.bindings, &[ninth]].concat();
    let wrong = first(complaints(&Kernel { bindings: bindings.leak(), ..*kernel }));
    assert!(wrong.contains("9 storage buffers, 8 are allowed"), "{wrong}");

    // Default WebGPU's limits.
    let wrong = first(changed("gumbel", |body| {
        edit(body, "@workgroup_size(8, 8)", "@workgroup_size(8, 8, 5)");
    }));
    assert!(wrong.contains("320 threads"), "{wrong}");
    let wrong = first(changed(select, |body| {
        body.push_str("var<workgroup> much: array<f32, 4096>;");
        edit(body, "path[tape_row] = chosen;", "path[tape_row] = chosen; much[chosen] = 1.0;");
    }));
    assert!(wrong.contains("bytes of workgroup memory"), "{wrong}");
}

/// Words that both languages name come from one declaration; what a shader makes of it is what Rust has.
#[test]
fn words_have_the_same_numbers_in_shaders() {
    let kernel = kernels().find(|kernel| kernel.name == "nmppg/select").expect("a kernel");
    let (module, _) = parse(&kernel.source(Target::Gpu)).expect("valid");
    let found = constants(&module);
    let mut compared = 0;
    for part in kernel.parts {
        let Part::Words(Words { numbers }) = part else { continue };
        for (name, number) in numbers.iter() {
            assert_eq!(found.get(*name), Some(&Literal::U32(*number)), "{name}");
            compared += 1;
        }
    }
    assert!(compared > 20);
    assert_eq!(found["NEVER"], Literal::U32(words::NEVER));
    assert_eq!(found["HAZARD"], Literal::U32(querent::nmppg::kernels::hyper::HAZARD as u32));
    assert_eq!(
        words::settings::LEN,
        querent::nmppg::kernels::hyper::ALPHA,
        "a method's words follow the general ones"
    );
}

/// A module's named constants.
fn constants(module: &Module) -> BTreeMap<String, Literal> {
    module
        .constants
        .iter()
        .filter_map(|(_, constant)| match module.global_expressions[constant.init] {
            Expression::Literal(literal) => Some((constant.name.clone()?, literal)),
            _ => None,
        })
        .collect()
}

fn shaders() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders")
}

/// The reals that twins and shaders must agree on, and the width the reductions count on.
#[test]
fn sentinels_and_reduction_width_agree() {
    let mut compared = 0;
    for kernel in kernels() {
        let (module, _) = parse(&kernel.source(Target::Gpu)).expect("valid");
        let constants = constants(&module);
        for (name, expected) in [("BLOCKED", <f32 as Real>::BLOCKED), ("EXP_FLOOR", <f32 as Real>::EXP_FLOOR)]
        {
            if let Some(&value) = constants.get(name) {
                assert_eq!(value, Literal::F32(expected), "{}: {name}", kernel.name);
                compared += 1;
            }
        }
        if let Some(&width) = constants.get("WIDTH") {
            let size = module.entry_points[0].workgroup_size;
            assert_eq!(width, Literal::U32(size.iter().product()), "{}: WIDTH", kernel.name);
            compared += 1;
        }
    }
    assert!(compared >= 3, "the constants were renamed: nothing was compared");
}

/// The names of files that belong to no kernel.
fn strangers<'a>(files: &'a [String], kernels: &[&Kernel]) -> Vec<&'a str> {
    let known = |file: &str| kernels.iter().any(|kernel| kernel.name == file);
    files.iter().map(String::as_str).filter(|file| !known(file)).collect()
}

/// The shaders of a folder: their places under `shaders/`, without the ending.
fn wgsl_files(folder: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("shaders").flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wgsl"));
    files.sort();
    let name = |path: &Path| path.strip_prefix(shaders()).expect("inside").with_extension("");
    files.iter().map(|path| name(path).to_string_lossy().replace('\\', "/")).collect()
}

/// `shaders/` and the methods' folders in it.
fn folders() -> Vec<PathBuf> {
    let inside = std::fs::read_dir(shaders()).expect("lists").flatten().map(|entry| entry.path());
    let methods = inside.filter(|path| path.is_dir() && !path.ends_with("lib"));
    std::iter::once(shaders()).chain(methods).collect()
}

#[test]
fn every_file_is_a_kernel_or_part_of_one() {
    let all: Vec<&Kernel> = kernels().collect();
    let files: Vec<String> = folders().iter().flat_map(|folder| wgsl_files(folder)).collect();
    assert!(strangers(&files, &all).is_empty(), "no kernels: {:?}", strangers(&files, &all));
    // A kernel is found by its name: on a device, in the tables of benchmarks, among the files that `info` writes.
    assert_eq!(files.len(), all.len(), "two kernels have one name, or one file");
    for file in folders()
        .iter()
        .map(|folder| folder.join("lib"))
        .filter(|lib| lib.exists())
        .flat_map(|lib| wgsl_files(&lib))
    {
        let text = std::fs::read_to_string(shaders().join(&file).with_extension("wgsl")).expect("reads");
        let has = |kernel: &&Kernel| {
            let forms = TARGETS.iter().flat_map(|&target| [false, true].map(|chain| (target, chain)));
            forms.into_iter().any(|(target, chain)| kernel.pieces(target, chain).join("\n").contains(&text))
        };
        assert!(all.iter().any(has), "{file} is part of no kernel");
    }
    // The control: without the last kernel a file is nobody's.
    let last = all[all.len() - 1].name;
    assert_eq!(strangers(&files, &all[..all.len() - 1]), [last]);
}

/// The shader in every backend's language, with every binding given a place: the words of SPIR-V, the
/// texts of MSL and HLSL.
struct Translated {
    spirv: Vec<u32>,
    msl: String,
    hlsl: String,
}

/// `bindings`: how many bindings get a place; one without is an error, as it is in wgpu.
fn translate(source: &str, bindings: u32) -> Result<Translated, String> {
    let (module, info) = parse(source)?;
    let places = || (0..bindings).map(|binding| (naga::ResourceBinding { group: 0, binding }, binding));
    // As wgpu does for safety: what is out of bounds is clamped.
    let bounds = BoundsCheckPolicies {
        index: BoundsCheckPolicy::Restrict,
        buffer: BoundsCheckPolicy::Restrict,
        ..BoundsCheckPolicies::default()
    };
    let entry = || (ShaderStage::Compute, "main".to_string());

    let spv_options = spv::Options {
        lang_version: (1, 0),
        fake_missing_bindings: false,
        binding_map: places()
            .map(|(at, binding)| {
                (at, spv::BindingInfo { descriptor_set: 0, binding, binding_array_size: None })
            })
            .collect(),
        capabilities: Some([spv::Capability::Shader].into_iter().collect()),
        bounds_check_policies: bounds,
        ..spv::Options::default()
    };
    let spv_pipeline = spv::PipelineOptions { shader_stage: entry().0, entry_point: entry().1 };
    let spirv = spv::write_vec(&module, &info, &spv_options, Some(&spv_pipeline))
        .map_err(|error| format!("SPIR-V: {error}"))?;

    let resources = msl::EntryPointResources {
        resources: places()
            .map(|(at, binding)| {
                let target =
                    msl::BindTarget { buffer: Some(binding as u8), mutable: true, ..Default::default() };
                (at, target)
            })
            .collect(),
        // Clamping needs the lengths of the buffers.
        sizes_buffer: Some(30),
        ..Default::default()
    };
    let msl_options = msl::Options {
        lang_version: (2, 0),
        per_entry_point_map: [(entry().1, resources)].into_iter().collect(),
        fake_missing_bindings: false,
        bounds_check_policies: bounds,
        ..msl::Options::default()
    };
    let msl_pipeline = msl::PipelineOptions { entry_point: Some(entry()), ..Default::default() };
    let (msl, translation) = msl::write_string(&module, &info, &msl_options, &msl_pipeline)
        .map_err(|error| format!("MSL: {error}"))?;
    if let Some(Err(error)) = translation.entry_point_names.into_iter().find(Result::is_err) {
        return Err(format!("MSL: {error}"));
    }

    let hlsl_options = hlsl::Options {
        shader_model: hlsl::ShaderModel::V5_1,
        binding_map: places()
            .map(|(at, register)| (at, hlsl::BindTarget { register, ..Default::default() }))
            .collect(),
        fake_missing_bindings: false,
        ..hlsl::Options::default()
    };
    let hlsl_pipeline = hlsl::PipelineOptions { entry_point: Some(entry()) };
    let mut hlsl = String::new();
    let reflection = hlsl::Writer::new(&mut hlsl, &hlsl_options, &hlsl_pipeline)
        .write(&module, &info, None)
        .map_err(|error| format!("HLSL: {error}"))?;
    if let Some(Err(error)) = reflection.entry_point_names.into_iter().find(Result::is_err) {
        return Err(format!("HLSL: {error}"));
    }
    Ok(Translated { spirv, msl, hlsl })
}

#[test]
fn every_shader_is_translated_for_every_backend() {
    const SPIRV_MAGIC: u32 = 0x0723_0203;
    for (kernel, target) in kernels().flat_map(|kernel| TARGETS.map(|target| (kernel, target))) {
        let bindings = kernel.bindings.len() as u32 + 1;
        let translated = translate(&kernel.source(target), bindings)
            .unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        assert_eq!(translated.spirv.first(), Some(&SPIRV_MAGIC), "{}", kernel.name);
        assert!(translated.spirv.len() > 100, "{}: SPIR-V", kernel.name);
        assert!(translated.msl.contains("kernel void main_"), "{}: MSL", kernel.name);
        assert!(translated.hlsl.contains("[numthreads("), "{}: HLSL", kernel.name);
    }
}

/// The control: a binding without a place is not passed over.
#[test]
fn a_binding_without_a_place_is_seen() {
    for kernel in kernels() {
        let error = translate(&kernel.source(Target::Gpu), kernel.bindings.len() as u32).err();
        assert!(error.is_some(), "{}: the last binding has no place", kernel.name);
    }
}
