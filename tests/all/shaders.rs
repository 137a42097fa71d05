//! Tier 1: what naga finds in every shader is what the Rust table says, it stays within default WebGPU,
//! and it can be translated for every backend. No device is needed.

use naga::back::{hlsl, msl, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, GlobalUse, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Expression, Literal, Module, Scalar, ShaderStage, StorageAccess, TypeInner};
use querent::engine::cpu::Real;
use querent::engine::kernels::{Access, Binding, Device, KERNELS, Kernel, WORDS};
use querent::engine::plan::Elem;
use querent::engine::state::{self, advance, clock, hyper, losses, scalars, stream};
use std::collections::{BTreeMap, BTreeSet};
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
const DEVICES: [Device; 2] = [Device::Gpu, Device::Software];

/// Everything in which a kernel's shader differs from its entry in the table, or goes beyond default
/// WebGPU.
fn complaints(kernel: &Kernel) -> Vec<String> {
    DEVICES.iter().flat_map(|&device| complaints_on(kernel, device)).collect()
}

fn complaints_on(kernel: &Kernel, device: Device) -> Vec<String> {
    let (module, info) = match parse(&kernel.source(device)) {
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
        if element(module, variable.ty) != Some(binding.elem) {
            wrong.push(format!("`{name}` is not an array of {:?}", binding.elem));
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
    let wrong: Vec<String> = KERNELS.iter().flat_map(complaints).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The complaints about a kernel of the table after a change to its source or its entry.
fn changed(
    name: &str,
    change: impl FnOnce(&mut String, &mut Vec<&'static str>, &mut Vec<Binding>),
) -> Vec<String> {
    let kernel = KERNELS.iter().find(|kernel| kernel.name == name).expect("a kernel");
    let (mut source, mut fields, mut bindings) =
        (kernel.source(Device::Gpu), kernel.fields.to_vec(), kernel.bindings.to_vec());
    change(&mut source, &mut fields, &mut bindings);
    complaints(&Kernel {
        name: kernel.name,
        about: kernel.about,
        parts: vec![&*source.leak()].leak(),
        fields: fields.leak(),
        bindings: bindings.leak(),
    })
}

/// Replaces text that must be there: a control whose change changes nothing controls nothing.
fn edit(source: &mut String, from: &str, to: &str) {
    assert!(source.contains(from), "`{from}` is not in the shader any more");
    *source = source.replace(from, to);
}

/// The control: each kind of mistake, on either side, must be reported.
#[test]
fn mistakes_in_shader_or_table_are_seen() {
    let first = |wrong: Vec<String>| wrong.into_iter().next().unwrap_or_else(|| "no complaint".into());
    assert!(changed("select", |_, _, _| {}).is_empty());

    // The shader does not parse, or parses but is not valid.
    let wrong = first(changed("select", |source, _, _| edit(source, "fn main(", "fn main((")));
    assert!(wrong.contains("expected"), "{wrong}");
    let wrong = first(changed("select", |source, _, _| source.push_str("fn f() -> u32 { return 1.5; }")));
    assert!(wrong.contains("1.5"), "{wrong}");
    let wrong = first(changed("select", |source, _, _| {
        edit(source, "path[tape_row] = chosen;", "costs[0] = 1.0;");
    }));
    assert!(wrong.contains("costs"), "a write to what is read only: {wrong}");

    // The table.
    let wrong = first(changed("select", |_, fields, _| fields[1] = "stage"));
    assert!(wrong.contains("stage"), "{wrong}");
    let wrong = first(changed("select", |_, fields, _| fields.swap(0, 1)));
    assert!(wrong.contains("Params has the fields"), "{wrong}");
    let wrong = first(changed("select", |_, _, bindings| bindings.swap(0, 1)));
    assert!(wrong.contains("binding 1 is Some(\"logits\"), in the table `gumbel`"), "{wrong}");
    let wrong = first(changed("select", |_, _, bindings| bindings[0].access = Access::Read));
    assert!(wrong.contains("`logits` has access"), "{wrong}");
    let wrong = first(changed("select", |_, _, bindings| bindings[0].elem = Elem::U32));
    assert!(wrong.contains("`logits` is not an array of U32"), "{wrong}");
    let wrong = first(changed("select", |_, _, bindings| bindings.truncate(7)));
    assert!(wrong.contains("8 storage buffers, the table has 7"), "{wrong}");

    // The shader.
    let wrong = first(changed("select", |source, _, _| edit(source, "relax_pitch", "stride")));
    assert!(wrong.contains("stride"), "{wrong}");
    let wrong = first(changed("advance", |source, _, _| {
        edit(source, "batches: u32", "batches: i32");
        edit(source, "p.batches", "u32(p.batches)");
    }));
    assert!(wrong.contains("Params.batches is not the u32 at word 1"), "{wrong}");
    let wrong = first(changed("select", |source, _, _| {
        edit(source, "@binding(1)", "@binding(99)");
        edit(source, "@binding(2)", "@binding(1)");
        edit(source, "@binding(99)", "@binding(2)");
    }));
    assert!(wrong.contains("binding 1 is Some(\"gumbel\")"), "{wrong}");
    let wrong = first(changed("select", |source, _, _| {
        edit(source, "<storage, read> gumbel", "<storage, read_write> gumbel");
    }));
    assert!(wrong.contains("`gumbel` has access"), "{wrong}");
    let wrong = changed("select", |source, _, bindings| {
        edit(source, "<storage, read> gumbel", "<storage, read_write> gumbel");
        bindings[1].access = Access::Write;
    });
    assert!(first(wrong.clone()).contains("`gumbel` is never written"), "{wrong:?}");
    let wrong = first(changed("noise", |source, _, _| edit(source, "@group(0)", "@group(1)")));
    assert!(wrong.contains("not group 0, binding 0"), "{wrong}");
    let wrong = first(changed("noise", |source, _, _| edit(source, "fn main(", "fn other(")));
    assert!(wrong.contains("`other`"), "{wrong}");

    // Default WebGPU's limits.
    let wrong = first(changed("noise", |source, _, _| {
        edit(source, "@workgroup_size(8, 8)", "@workgroup_size(8, 8, 5)");
    }));
    assert!(wrong.contains("320 threads"), "{wrong}");
    let wrong = first(changed("select", |source, _, _| {
        edit(source, "reduce_value: array<f32, WIDTH>", "reduce_value: array<f32, 4096>");
    }));
    assert!(wrong.contains("16656 bytes of workgroup memory"), "{wrong}");
    let wrong = first(changed("select", |source, _, _| {
        source.push_str("@group(0) @binding(9) var<storage, read> ninth: array<f32>;");
    }));
    assert!(wrong.contains("9 storage buffers, 8 are allowed"), "{wrong}");
}

/// The numbers of `lib/state.wgsl`, `lib/tape.wgsl` and `lib/random.wgsl` as Rust has them.
fn numbers() -> Vec<(&'static str, u32)> {
    let word = |value: usize| u32::try_from(value).expect("a word");
    vec![
        ("SEED_LO", word(clock::SEED_LO)),
        ("SEED_HI", word(clock::SEED_HI)),
        ("STEP", word(clock::STEP)),
        ("EPOCH", word(clock::EPOCH)),
        ("BATCH", word(clock::BATCH)),
        ("CHUNK", word(clock::CHUNK)),
        ("CLOCK_TWINS", word(clock::TWINS)),
        ("ALPHA", word(hyper::ALPHA)),
        ("TAU_HARD", word(hyper::TAU_HARD)),
        ("TAU_SOFT", word(hyper::TAU_SOFT)),
        ("LAMBDA", word(hyper::LAMBDA)),
        ("RATE_POLICY", word(hyper::RATE_POLICY)),
        ("RATE_PREDICTOR", word(hyper::RATE_PREDICTOR)),
        ("BETA1", word(hyper::BETA1)),
        ("BETA2", word(hyper::BETA2)),
        ("EPSILON", word(hyper::EPSILON)),
        ("AVERAGE", word(hyper::AVERAGE)),
        ("LURE", word(hyper::LURE)),
        ("GUARD", word(hyper::GUARD)),
        ("EXACT_STOP", word(hyper::EXACT_STOP)),
        ("HAZARD", word(hyper::HAZARD)),
        ("SCORE", word(hyper::SCORE)),
        ("TWINS", word(hyper::TWINS)),
        ("FOCUS", word(hyper::FOCUS)),
        ("PARTS", word(hyper::PARTS)),
        ("BLUR", word(hyper::BLUR)),
        ("ADVANCE_POLICY", advance::POLICY),
        ("ADVANCE_PREDICTOR", advance::PREDICTOR),
        ("ADVANCE_CHUNK", advance::CHUNK),
        ("SCALARS", word(scalars::LEN)),
        ("SURVIVAL", word(scalars::SURVIVAL)),
        ("HALT", word(scalars::HALT)),
        ("GO", word(scalars::GO)),
        ("ENTROPY", word(scalars::ENTROPY)),
        ("PRICE", word(scalars::PRICE)),
        ("VALUE", word(scalars::VALUE)),
        ("WEIGHT", word(scalars::WEIGHT)),
        ("TOP", word(scalars::TOP)),
        ("LOG_MASS", word(scalars::LOG_MASS)),
        ("LOSSES", word(losses::LEN)),
        ("LOSS", word(losses::LOSS)),
        ("GUESS", word(losses::GUESS)),
        ("STREAM_GUMBEL", stream::GUMBEL),
        ("STREAM_MASK", stream::MASK),
        ("STREAM_SHUFFLE", stream::SHUFFLE),
        ("STREAM_PART", stream::PART),
        ("STREAM_BLUR", stream::BLUR),
        ("NEVER", state::NEVER),
        ("NO_LABEL", state::NO_LABEL),
    ]
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

/// Which of the shared numbers a shader has otherwise than Rust.
fn number_complaints(source: &str, expected: &[(&str, u32)]) -> Vec<String> {
    let module = match parse(source) {
        Ok((module, _)) => module,
        Err(error) => return vec![error],
    };
    let found = constants(&module);
    expected
        .iter()
        .filter_map(|&(name, value)| match found.get(name) {
            Some(&Literal::U32(in_shader)) if in_shader != value => {
                Some(format!("{name} is {in_shader} in the shader, {value} in Rust"))
            }
            Some(Literal::U32(_)) | None => None,
            Some(other) => Some(format!("{name} is {other:?} in the shader, not a u32")),
        })
        .collect()
}

fn shaders() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders")
}

/// The constants declared in a library file.
fn declared(file: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(shaders().join("lib").join(file)).expect("a library file");
    text.lines()
        .filter_map(|line| line.strip_prefix("const ")?.split_once(':'))
        .map(|(name, _)| name.trim().to_string())
        .collect()
}

#[test]
fn the_shared_numbers_are_those_of_rust() {
    let expected = numbers();
    for kernel in KERNELS {
        let wrong = number_complaints(&kernel.source(Device::Gpu), &expected);
        assert!(wrong.is_empty(), "{}: {wrong:?}", kernel.name);
    }
    // Every number of the three files is compared, and every number compared is in one of them: one that
    // is added or renamed on one side only is seen.
    let names: BTreeSet<String> = expected.iter().map(|(name, _)| name.to_string()).collect();
    let all: BTreeSet<String> =
        ["state.wgsl", "tape.wgsl", "random.wgsl"].into_iter().flat_map(declared).collect();
    assert_eq!(names, all);
    // And naga sees each of them in some kernel.
    let seen: BTreeSet<String> = KERNELS
        .iter()
        .flat_map(|kernel| constants(&parse(&kernel.source(Device::Gpu)).expect("valid").0).into_keys())
        .collect();
    assert!(names.is_subset(&seen), "in no module: {:?}", names.difference(&seen));
}

/// The control.
#[test]
fn a_wrong_number_is_seen() {
    let source = KERNELS.iter().find(|kernel| kernel.name == "select").expect("a kernel").source(Device::Gpu);
    let mut expected = numbers();
    assert!(number_complaints(&source, &expected).is_empty());
    let halt = expected.iter_mut().find(|(name, _)| *name == "HALT").expect("HALT");
    halt.1 += 1;
    assert_eq!(number_complaints(&source, &expected), ["HALT is 1 in the shader, 2 in Rust"]);
    let swapped = source.replace("const GO: u32 = 2u;", "const GO: u32 = 4u;");
    assert_eq!(number_complaints(&swapped, &numbers()), ["GO is 4 in the shader, 2 in Rust"]);
    let real = source.replace("const VALUE: u32 = 5u;", "const VALUE: f32 = 5.0;");
    assert!(number_complaints(&real, &numbers())[0].contains("VALUE is F32"));
}

/// The reals that twins and shaders must agree on, and the width the reductions count on.
#[test]
fn sentinels_and_reduction_width_agree() {
    let mut compared = 0;
    for kernel in KERNELS {
        let (module, _) = parse(&kernel.source(Device::Gpu)).expect("valid");
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

/// Whose stem is not a kernel of the table.
fn strangers<'a>(files: &'a [PathBuf], kernels: &[Kernel]) -> Vec<&'a Path> {
    let known = |path: &Path| kernels.iter().any(|kernel| path.file_stem().is_some_and(|s| s == kernel.name));
    files.iter().map(PathBuf::as_path).filter(|path| !known(path)).collect()
}

fn wgsl_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("shaders").flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wgsl"));
    files.sort();
    files
}

#[test]
fn every_file_is_a_kernel_or_part_of_one() {
    let files = wgsl_files(&shaders());
    assert!(strangers(&files, KERNELS).is_empty(), "not in the table: {:?}", strangers(&files, KERNELS));
    assert_eq!(files.len(), KERNELS.len(), "a kernel is twice in the table");
    for file in wgsl_files(&shaders().join("lib")) {
        let text = std::fs::read_to_string(&file).expect("reads");
        let has = |kernel: &Kernel| DEVICES.iter().any(|&device| kernel.source(device).contains(&text));
        let used = KERNELS.iter().any(has);
        assert!(used, "{} is part of no kernel", file.display());
    }
    // The control: without its last kernel the table misses a file.
    let last = KERNELS.last().expect("kernels").name;
    let missed = strangers(&files, &KERNELS[..KERNELS.len() - 1]);
    assert!(missed.len() == 1 && missed[0].file_stem().is_some_and(|stem| stem == last));
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
    for (kernel, device) in KERNELS.iter().flat_map(|kernel| DEVICES.map(|device| (kernel, device))) {
        let bindings = kernel.bindings.len() as u32 + 1;
        let translated = translate(&kernel.source(device), bindings)
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
    for kernel in KERNELS {
        let error = translate(&kernel.source(Device::Gpu), kernel.bindings.len() as u32).err();
        assert!(error.is_some(), "{}: the last binding has no place", kernel.name);
    }
}
