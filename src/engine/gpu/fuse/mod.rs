//! Several calls of a plan as one dispatch. What waits on a device is not arithmetic but one dispatch for the one before, so
//! calls that a plan says belong together (`plan::Bond`) become one shader, made of the very functions of the kernels
//! they call (`wgsl.rs`, `shader.rs`), on buffers that lie in arenas (`arena.rs`). What is to be done stands in a
//! table of calls, so one shader serves all chains of a plan, and a part of a chain as well as the whole: a host's
//! frame may end after any call, with the same numbers.
//!
//! The twin of a fused dispatch is the sequence of its calls' twins: the CPU engine knows nothing of this. Nor does a
//! software driver, to which a dispatch is a function call: it gets one call at a time (docs/rejected.md).

mod arena;
mod shader;
mod wgsl;

use super::context::{Gpu, Pipeline};
use super::program::{Dispatch, buffer_bytes};
use crate::engine::kernels::{Grid, Target, View, folded};
use crate::engine::plan::{Bond, BufferDecl, BufferId, Call, Fused, Plan};
use crate::error::Result;
use arena::{Arenas, Home};
use shader::{Form, SEEN, Shader, shader};
use std::collections::HashMap;
use wgsl::{BASES, FIELDS, LENGTHS, Named, STRIDE, Variant};

/// Distance of what dynamic offsets point to: WebGPU's default alignment.
const ALIGNMENT: usize = 256;
/// Words of a call in the table.
const CALL_WORDS: usize = STRIDE * 4;
/// Instances that a workgroup takes through a chain: as many as a product has in registers at a time.
const FEW: usize = 8;
/// Bytes of an arena, at most: shaders count them in 32 bits.
const LARGEST: u64 = 1 << 31;

/// A buffer of a plan on a device: a part of an arena, or one of its own.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub buffer: wgpu::Buffer,
    pub offset: u64,
    pub size: u64,
}

impl Part {
    /// A buffer of its own.
    pub fn alone(gpu: &Gpu, decl: &BufferDecl) -> Self {
        let size = buffer_bytes(decl);
        Self { buffer: storage(gpu, &decl.name, size), offset: 0, size }
    }

    pub fn slice(&self) -> wgpu::BufferSlice<'_> {
        self.buffer.slice(self.offset..self.offset + self.size)
    }
}

/// A fused dispatch, and the calls it stands for.
pub(super) struct Whole {
    pub calls: std::ops::Range<usize>,
    pub dispatch: Dispatch,
}

/// The calls that are not dispatched as their kernel alone, by number, and those that are fused.
#[derive(Default)]
pub(super) struct Made {
    pub single: HashMap<usize, Dispatch>,
    pub whole: Vec<Whole>,
}

/// Where a plan's buffers lie, and its shaders.
pub(super) struct Fusion {
    arenas: Arenas,
    programs: Vec<Program>,
}

/// A shader, and the calls it does.
struct Program {
    form: Form,
    variants: Vec<(Variant, Grid)>,
    /// The calls, group by group: each a chain, or side by side, or a single one.
    groups: Vec<Fused>,
    shader: Shader,
}

impl Fusion {
    /// Finds places and writes shaders; `None` if nothing is fused on this kind of device, or if it would need more
    /// bindings than it has: everything is then dispatched call by call.
    ///
    /// # Errors
    /// A kernel cannot be fused: a mistake in a plan or a shader.
    pub fn new(plan: &Plan, limits: &wgpu::Limits, target: Target) -> Result<Option<Self>> {
        if plan.fused().is_empty() || target == Target::Software {
            return Ok(None);
        }
        if !can_fuse(plan, limits) {
            log::info!("calls are not fused: the device's limits are below WebGPU's");
            return Ok(None);
        }
        let limit = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(LARGEST);
        let arenas = Arenas::new(plan, limit);
        let mut programs: Vec<Program> = Vec::new();
        let mut fusion = Self { arenas, programs: Vec::new() };
        for form in [Form::Chain, Form::Together] {
            let of_form = |fused: &&Fused| matches!(fused.bond, Bond::Chain { .. }) == (form == Form::Chain);
            let groups: Vec<&Fused> = plan.fused().iter().filter(of_form).collect();
            if !groups.is_empty() {
                programs.push(fusion.program(plan, form, &groups)?);
            }
        }
        for (index, call) in plan.calls().iter().enumerate() {
            let fused = plan.fused().iter().any(|fused| fused.calls.contains(&index));
            let alone = call.buffers.iter().all(|&id| matches!(fusion.home(id), Home::Alone(_)));
            if fused || alone {
                continue;
            }
            let group = Fused { calls: index..index + 1, bond: Bond::Together };
            let variant = fusion.variant(call);
            let known = programs.iter_mut().find(|p| p.form == Form::Solo && p.variants[0].0 == variant);
            match known {
                Some(program) => program.groups.push(group),
                None => programs.push(fusion.program(plan, Form::Solo, &[&group])?),
            }
        }
        let most = limits.max_storage_buffers_per_shader_stage as usize;
        if programs.iter().any(|program| program.shader.homes.len() > most) {
            log::info!("calls are not fused: they would need more than {most} bindings");
            return Ok(None);
        }
        fusion.programs = programs;
        Ok(Some(fusion))
    }

    fn home(&self, BufferId(id): BufferId) -> Home {
        self.arenas.places[id as usize].home
    }

    fn variant(&self, call: &Call) -> Variant {
        Variant { kernel: Named(call.kernel), homes: call.buffers.iter().map(|&id| self.home(id)).collect() }
    }

    fn program(&self, plan: &Plan, form: Form, groups: &[&Fused]) -> Result<Program> {
        let mut variants: Vec<(Variant, Grid)> = Vec::new();
        for call in groups.iter().flat_map(|fused| &plan.calls()[fused.calls.clone()]) {
            let variant = self.variant(call);
            if !variants.iter().any(|(known, _)| *known == variant) {
                variants.push((variant, call.grid));
            }
        }
        // In an order of their own, so that plans of one method have one text, and its pipeline is made once.
        variants.sort_by(|(a, _), (b, _)| (a.kernel.0.name, &a.homes).cmp(&(b.kernel.0.name, &b.homes)));
        let shader = shader(form, &variants)?;
        log::debug!("{form:?} of {} kernels:\n{}", variants.len(), shader.source);
        Ok(Program { form, variants, groups: groups.iter().map(|&fused| fused.clone()).collect(), shader })
    }

    /// The plan's buffers on the device.
    ///
    /// # Errors
    /// Too little memory.
    pub fn buffers(&self, gpu: &Gpu, plan: &Plan) -> Result<Vec<Part>> {
        gpu.scoped("buffers", || {
            let arenas: HashMap<Home, wgpu::Buffer> = self
                .arenas
                .sizes
                .iter()
                .map(|&(home, bytes)| (home, storage(gpu, &home.to_string(), bytes)))
                .collect();
            let decls = plan.buffers().iter().zip(&self.arenas.places);
            decls
                .map(|(decl, place)| {
                    let size = buffer_bytes(decl);
                    match arenas.get(&place.home) {
                        Some(arena) => Part { buffer: arena.clone(), offset: place.offset, size },
                        None => Part::alone(gpu, decl),
                    }
                })
                .collect()
        })
    }

    /// The dispatches.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn dispatches(&mut self, gpu: &Gpu, plan: &Plan, parts: &[Part]) -> Result<Made> {
        let (mut table, mut ranges) = (Vec::new(), Vec::new());
        let programs = std::mem::take(&mut self.programs);
        // Everything that stands in the two tables first, as bind groups need them whole.
        let mut planned = Vec::new();
        for (number, program) in programs.iter().enumerate() {
            for fused in &program.groups {
                let start = aligned(&mut table);
                let mut at = 0;
                for call in &plan.calls()[fused.calls.clone()] {
                    let groups = call.kernel.groups(Target::Gpu, call.grid);
                    self.enter(&mut table, plan, program, fused.bond, (call, groups), &mut at);
                }
                let count = fused.calls.len();
                let parts = (0..count).map(|i| i..i + 1).chain((count > 1).then_some(0..count));
                for part in parts {
                    let (range, grid) =
                        self.part(plan, program.form, fused, &table[start / 4..], part.clone());
                    let offset = aligned(&mut ranges);
                    ranges.extend(range);
                    let calls = fused.calls.start + part.start..fused.calls.start + part.end;
                    planned.push((number, calls, [start as u32, offset as u32], grid));
                }
            }
        }
        // A dispatch sees so much from its place on.
        aligned(&mut table);
        table.resize(table.len() + SEEN * 4, 0);
        aligned(&mut ranges);
        let (table, ranges) = (uniform(gpu, "calls", &table)?, uniform(gpu, "ranges", &ranges)?);
        let made: Vec<(Pipeline, wgpu::BindGroup)> = programs
            .iter()
            .map(|program| self.bind(gpu, program, [&table, &ranges], parts))
            .collect::<Result<_>>()?;
        let mut all = Made { single: HashMap::new(), whole: Vec::new() };
        for (number, calls, offsets, grid) in planned {
            let (pipeline, bindings) = made[number].clone();
            let dispatch = Dispatch { pipeline, bindings, offsets: offsets.to_vec(), grid };
            if calls.len() == 1 {
                all.single.insert(calls.start, dispatch);
            } else {
                all.whole.push(Whole { calls, dispatch });
            }
        }
        all.whole.sort_by_key(|whole| whole.calls.start);
        Ok(all)
    }

    /// A call's words in the table. `at` counts the workgroups of calls that are side by side.
    fn enter(
        &self,
        table: &mut Vec<u32>,
        plan: &Plan,
        program: &Program,
        bond: Bond,
        (call, [x, y, z]): (&Call, [u32; 3]),
        at: &mut u32,
    ) {
        let variant = self.variant(call);
        let number = program.variants.iter().position(|(known, _)| *known == variant).unwrap_or(0) as u32;
        let mut words = [0; CALL_WORDS];
        let head = match bond {
            Bond::Chain { rows, .. } => {
                let (all, width) = call.grid.rows().unwrap_or_default();
                let width = if matches!(call.grid, Grid::Area { .. }) { width } else { 1 };
                [number, all / rows.max(1) as u32, width, 0]
            }
            Bond::Together => [number, *at, x, x * y * z],
        };
        *at += x * y * z;
        words[..4].copy_from_slice(&head);
        words[FIELDS * 4..][..call.words.len()].copy_from_slice(&call.words);
        for (index, (&id, binding)) in call.buffers.iter().zip(call.kernel.bindings).enumerate() {
            let place = self.arenas.places[id.0 as usize];
            let unit = if matches!(place.home, Home::Vectors(_)) { 16 } else { 4 };
            words[BASES * 4 + index] = (place.offset / unit) as u32;
            let len = plan.buffer(id).len as u32;
            let is_vector = binding.view == View::Vec4;
            words[LENGTHS * 4 + index] = if is_vector { len.div_ceil(4) } else { len };
        }
        table.extend(words);
    }

    /// What a dispatch does of a group's calls, and its workgroups. `table` has the group's calls.
    fn part(
        &self,
        plan: &Plan,
        form: Form,
        fused: &Fused,
        table: &[u32],
        part: std::ops::Range<usize>,
    ) -> ([u32; 4], [u32; 3]) {
        let [first, end] = [part.start as u32, part.end as u32];
        match fused.bond {
            Bond::Chain { rows, kin } => {
                let team = team(kin);
                ([first, end, rows as u32, team as u32], [rows.div_ceil(team) as u32, 1, 1])
            }
            Bond::Together if form == Form::Solo => {
                let call = &plan.calls()[fused.calls.start];
                ([first, end, 0, 0], call.kernel.groups(Target::Gpu, call.grid))
            }
            Bond::Together => {
                let of = |call: usize, word: usize| table[call * CALL_WORDS + word];
                let (from, last) = (of(part.start, 1), part.end - 1);
                let groups = of(last, 1) + of(last, 3) - from;
                ([first, end, from, 0], folded(groups, 1))
            }
        }
    }

    fn bind(
        &self,
        gpu: &Gpu,
        program: &Program,
        [table, ranges]: [&wgpu::Buffer; 2],
        parts: &[Part],
    ) -> Result<(Pipeline, wgpu::BindGroup)> {
        let label = match program.form {
            Form::Chain => "chain",
            Form::Together => "together",
            Form::Solo => program.variants[0].0.kernel.0.name,
        };
        let only_read: Vec<bool> = program.shader.homes.iter().map(|(_, only_read)| *only_read).collect();
        let pipeline = gpu.made_pipeline(label, &program.shader.source, &only_read)?;
        let buffer_of = |home: &Home| {
            let place = self.arenas.places.iter().position(|place| place.home == *home);
            place.map(|index| &parts[index].buffer)
        };
        let bindings = gpu.scoped(label, || {
            let part = |buffer, bytes: u64| {
                let size = std::num::NonZeroU64::new(bytes);
                wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset: 0, size })
            };
            let mut entries = vec![
                wgpu::BindGroupEntry { binding: 0, resource: part(table, SEEN as u64 * 16) },
                wgpu::BindGroupEntry { binding: 1, resource: part(ranges, 16) },
            ];
            let homes = program.shader.homes.iter().filter_map(|(home, _)| buffer_of(home));
            entries.extend(homes.zip(2..).map(|(buffer, binding)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            }));
            gpu.device().create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(label),
                layout: &pipeline.layout,
                entries: &entries,
            })
        })?;
        Ok((pipeline, bindings))
    }
}

/// The shaders of a plan's fused calls as a GPU of default limits gets them, and what each is: to read, and for other
/// compilers to try.
///
/// # Errors
/// A kernel cannot be fused: a mistake in a plan or a shader.
pub fn fused_sources(plan: &Plan) -> Result<Vec<(String, String)>> {
    let Some(fusion) = Fusion::new(plan, &wgpu::Limits::default(), Target::Gpu)? else {
        return Ok(Vec::new());
    };
    let sources = fusion.programs.into_iter().map(|program| {
        let kernels = program.variants.len();
        (format!("{:?} of {kernels} kernels", program.form), program.shader.source)
    });
    Ok(sources.collect())
}

/// Instances of a workgroup: about so many, and all rollouts of each.
fn team(kin: usize) -> usize {
    kin * (FEW / kin).max(1)
}

/// Whether a device has what every fused dispatch needs: the table's binding, two dynamic offsets, and the workgroups.
fn can_fuse(plan: &Plan, limits: &wgpu::Limits) -> bool {
    let groups = plan.fused().iter().map(|fused| match fused.bond {
        Bond::Chain { rows, kin } => rows.div_ceil(team(kin)),
        Bond::Together => 1,
    });
    limits.max_uniform_buffer_binding_size >= SEEN as u64 * 16
        && limits.max_dynamic_uniform_buffers_per_pipeline_layout >= 2
        && groups.max().unwrap_or(0) <= limits.max_compute_workgroups_per_dimension as usize
}

/// Fills up to where a dynamic offset may point, which it gives in bytes.
fn aligned(words: &mut Vec<u32>) -> usize {
    words.resize(words.len().next_multiple_of(ALIGNMENT / 4), 0);
    words.len() * 4
}

fn storage(gpu: &Gpu, name: &str, size: u64) -> wgpu::Buffer {
    gpu.device().create_buffer(&wgpu::BufferDescriptor {
        label: Some(&format!("querent {name}")),
        size: size.next_multiple_of(16),
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

fn uniform(gpu: &Gpu, name: &str, words: &[u32]) -> Result<wgpu::Buffer> {
    gpu.scoped(name, || gpu.filled_for(&format!("querent {name}"), words, wgpu::BufferUsages::UNIFORM))
}
