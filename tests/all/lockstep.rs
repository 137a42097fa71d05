//! Tier 4: the GPU against the f32 twins, call by call. Both engines run the same plan; before each
//! call the GPU gets the CPU's buffers, so every kernel is compared on the very inputs it meets in
//! training, and an error is found where it is made.

use crate::common::{self, distance};
use crate::rig;
use querent::Engine;
use querent::engine::Program;
use querent::engine::cpu::CpuProgram;
use querent::engine::kernels::{self as k, Access, Params, Target};
use querent::engine::plan::{BufferId, Elem};
use querent::nmppg::kernels as own;
use querent::nmppg::{Config, Rollout, Stage, Stepper};
use querent::train::Training;
use std::collections::{BTreeMap, BTreeSet};

/// Largest difference allowed, relative to the largest magnitude in the buffer.
const TOLERANCE: f64 = 2e-5;
/// The same where logits reach the thousands: a unit in their last place is 1e-4 and more, and goes
/// through exp.
const EXTREME_TOLERANCE: f64 = 5e-4;

struct Pair {
    gpu: OnGpu,
    cpu: CpuProgram<f32>,
}

/// What is on the GPU: NM-PPG's steps, set as a test likes, or any method's training.
enum OnGpu {
    Steps(Box<Stepper>),
    Any(Box<dyn Training>),
}

impl OnGpu {
    fn program(&mut self) -> &mut Program {
        match self {
            OnGpu::Steps(stepper) => stepper.program_mut(),
            OnGpu::Any(training) => training.program().expect("it has a plan"),
        }
    }
}

#[derive(Clone, Debug)]
struct Shape {
    name: &'static str,
    features: usize,
    rows: usize,
    hidden: usize,
    steps: usize,
    tau_soft: f64,
    rollout: Rollout,
    dropout: f64,
    /// Multiplies the policy's weights: makes logits extreme.
    scale: f64,
    /// Everything that the published method has not, with this share of REINFORCE.
    options: Option<f64>,
    /// The data are bytes.
    bytes: bool,
}

const PLAIN: Shape = Shape {
    name: "plain",
    features: 6,
    rows: 33,
    hidden: 20,
    steps: 3,
    tau_soft: 0.5,
    rollout: Rollout::StraightThrough,
    dropout: 0.3,
    scale: 1.0,
    options: None,
    bytes: false,
};

impl Shape {
    fn stage(&self) -> Stage {
        let published = Stage {
            tau_soft: self.tau_soft,
            lambda: 0.05,
            lure: 0.4,
            guard: 0.02,
            ema: 0.1,
            ..Stage::default()
        };
        let Some(reinforce) = self.options else { return published };
        Stage {
            exact_stop: true,
            hazard: 0.05,
            reinforce,
            rollouts: 2,
            focus: 0.5,
            submasks: 0.7,
            input_noise: 0.3,
            unavailable: 0.4,
            ..published
        }
    }
}

impl Pair {
    fn new(engine: &Engine, shape: &Shape) -> Self {
        let make = if shape.bytes { rig::toy_of_bytes } else { rig::toy };
        let data = make(shape.features, shape.rows);
        let config = Config::default().with(|c| {
            c.alpha = 0.1.into();
            c.horizon = Some(shape.steps);
            c.networks.policy = [shape.hidden, shape.hidden + 1];
            c.networks.predictor = [shape.hidden + 2, shape.hidden];
            c.batch = shape.rows;
            c.rollout = shape.rollout;
            c.networks.dropout = shape.dropout;
            c.predictor.submasks = shape.stage().submasks;
            c.seed = 5;
        });
        let mut gpu = Stepper::new(engine, &data, config).unwrap_or_else(|error| panic!("{error}"));
        gpu.set_stage(shape.stage()).expect("valid");
        Self::of(OnGpu::Steps(Box::new(gpu)), shape.scale)
    }

    /// What is on the GPU and the same on the CPU.
    fn of(mut gpu: OnGpu, scale: f64) -> Self {
        let program = gpu.program();
        let mut cpu = CpuProgram::new(program.plan().clone()).expect("memory");
        for (index, decl) in program.plan().buffers().iter().enumerate() {
            let id = program.plan().find(&decl.name).unwrap_or_else(|| panic!("{index}"));
            match decl.elem {
                Elem::F32 => {
                    let values = program.read_blocking(id).expect("reads");
                    let scale = if decl.name == "policy.values" { scale } else { 1.0 };
                    let target = cpu.reals_mut(id).iter_mut();
                    target.zip(values).for_each(|(to, value)| *to = (value * scale) as f32);
                }
                Elem::U32 => {
                    cpu.words_mut(id).copy_from_slice(&program.read_words_blocking(id).expect("reads"));
                }
            }
        }
        Self { gpu, cpu }
    }

    fn upload(&mut self, id: BufferId) {
        match self.cpu.plan().buffer(id).elem {
            Elem::F32 => self.gpu.program().write(id, 0, self.cpu.reals(id)),
            Elem::U32 => self.gpu.program().write_words(id, 0, self.cpu.words(id)),
        }
    }

    /// How far apart the engines are in a buffer.
    fn apart(&mut self, id: BufferId) -> f64 {
        match self.cpu.plan().buffer(id).elem {
            Elem::F32 => {
                let expected: Vec<f64> = self.cpu.reals(id).iter().map(|&value| value.into()).collect();
                distance(&self.gpu.program().read_blocking(id).expect("reads"), &expected)
            }
            Elem::U32 => {
                let got = self.gpu.program().read_words_blocking(id).expect("reads");
                if got == self.cpu.words(id) { 0.0 } else { f64::INFINITY }
            }
        }
    }

    /// Runs one call on both and returns how far apart what it wrote is. `other` lets the GPU run
    /// another call instead: a mistake that must be seen.
    fn step(&mut self, call: usize, other: Option<usize>) -> f64 {
        let bound = self.cpu.plan().calls()[call].clone();
        bound.buffers.iter().for_each(|&id| self.upload(id));
        self.cpu.run(call..call + 1, 1);
        let gpu_call = other.unwrap_or(call);
        self.gpu.program().run(gpu_call..gpu_call + 1, 1);
        let written = bound.buffers.iter().zip(bound.kernel.bindings);
        let written = written.filter(|(_, binding)| binding.access == Access::Write).map(|(&id, _)| id);
        written.fold(0.0, |most: f64, id| most.max(self.apart(id)))
    }
}

impl Pair {
    /// Runs the calls of a fused dispatch on both, and returns the written buffer that is furthest apart.
    fn fused(&mut self, calls: std::ops::Range<usize>) -> (f64, String) {
        let all = self.cpu.plan().calls()[calls.clone()].to_vec();
        all.iter().flat_map(|call| &call.buffers).for_each(|&id| self.upload(id));
        self.cpu.run(calls.clone(), 1);
        self.gpu.program().run(calls, 1);
        let bound = all.iter().flat_map(|call| call.buffers.iter().zip(call.kernel.bindings));
        let written: BTreeSet<String> = bound
            .filter(|(_, binding)| binding.access == Access::Write)
            .map(|(&id, _)| self.cpu.plan().buffer(id).name.clone())
            .collect();
        let apart = written.into_iter().map(|name| {
            let id = self.cpu.plan().find(&name).expect("it is one of the plan");
            (self.apart(id), name)
        });
        apart.fold((0.0, String::new()), |most, next| if next.0 > most.0 { next } else { most })
    }
}

/// Several calls as one dispatch, as a GPU gets them, give what the calls' twins give one after the other: with one
/// workgroup and with several, and rollouts of an instance that read one another's values.
#[test]
fn every_fused_dispatch_agrees() {
    let Some(engine) = &common::fused() else { return };
    let many = Shape { name: "131 instances, 30 steps", features: 33, rows: 131, steps: 30, ..PLAIN };
    for shape in
        [PLAIN, Shape { options: Some(1.0), ..PLAIN }, many.clone(), Shape { options: Some(1.0), ..many }]
    {
        let mut pair = Pair::new(engine, &shape);
        let groups: Vec<_> = pair.cpu.plan().fused().to_vec();
        assert!(groups.len() > 10, "{groups:?}");
        let last = if shape.options == Some(1.0) { "step.reinforce" } else { "step" };
        let sections =
            ["step", "warm_up", last, "validate"].map(|name| common::section(pair.cpu.plan(), name));
        for calls in sections.into_iter().flat_map(|section| {
            let inside = groups.iter().map(|fused| fused.calls.clone());
            inside.filter(move |calls| section.contains(&calls.start)).collect::<Vec<_>>()
        }) {
            let (error, buffer) = pair.fused(calls.clone());
            let name = pair.cpu.plan().calls()[calls.start].kernel.name;
            assert!(
                error < 1e-3,
                "{}: {} calls from {name} on: {buffer} {error:.1e}",
                shape.name,
                calls.len()
            );
        }
    }
}

#[test]
fn every_call_agrees_on_every_shape() {
    let Some(engine) = common::gpu() else { return };
    every_call_agrees(&engine);
}

/// The same with the kernels that are made for the other kind of device.
#[test]
fn every_call_agrees_with_other_kernels() {
    let Some(engine) = common::gpu() else { return };
    every_call_agrees(&other_kind(&engine));
}

/// The same device, taken for one of the other kind.
fn other_kind(engine: &Engine) -> Engine {
    let (device, queue) = engine.device().expect("a GPU engine");
    let other = match device.adapter_info().device_type {
        querent::wgpu::DeviceType::Cpu => Target::Gpu,
        _ => Target::Software,
    };
    Engine::on_as(device.clone(), queue.clone(), other)
}

fn every_call_agrees(engine: &Engine) {
    let soft = Rollout::Soft;
    let shapes = [
        PLAIN,
        Shape { name: "one feature", features: 1, steps: 1, rows: 5, hidden: 4, ..PLAIN },
        Shape { name: "one instance", rows: 1, features: 4, steps: 4, hidden: 7, ..PLAIN },
        Shape {
            name: "everything acquired, cold",
            features: 5,
            steps: 5,
            tau_soft: 0.02,
            hidden: 9,
            ..PLAIN
        },
        Shape { name: "B 131, h 65", rows: 131, hidden: 65, features: 4, steps: 3, ..PLAIN },
        Shape { name: "d 130", features: 130, rows: 9, steps: 4, hidden: 12, ..PLAIN },
        Shape { name: "soft", rollout: soft, ..PLAIN },
        Shape { name: "soft, cold, no dropout", rollout: soft, tau_soft: 0.02, dropout: 0.0, ..PLAIN },
        Shape { name: "bytes", bytes: true, rows: 7, hidden: 8, ..PLAIN },
        Shape { name: "extreme logits", scale: 40.0, tau_soft: 0.02, ..PLAIN },
    ];
    let mut worst: BTreeMap<&str, (f64, String)> = BTreeMap::new();
    // Every shape as published and with every option, one also between the two gradients.
    let options = |options| shapes.iter().map(move |shape| Shape { options, ..shape.clone() });
    let between = Shape { options: Some(0.5), ..PLAIN };
    for shape in options(None).chain(options(Some(1.0))).chain([between]) {
        let name = format!("{}, options {:?}", shape.name, shape.options);
        let mut pair = Pair::new(engine, &shape);
        // Steps without the relaxed gradient only where there is nothing of it.
        let last =
            if shape.options == Some(1.0) && shape.rollout != soft { "step.reinforce" } else { "step" };
        for section in ["step", "warm_up", last, "validate"] {
            for call in common::section(pair.cpu.plan(), section) {
                let kernel = pair.cpu.plan().calls()[call].kernel.name;
                let error = pair.step(call, None);
                let limit = if shape.scale > 1.0 { EXTREME_TOLERANCE } else { TOLERANCE };
                // Masks are drawn, not computed.
                let limit = if ["nmppg/submask", "input_noise"].contains(&kernel) {
                    f64::MIN_POSITIVE
                } else {
                    limit
                };
                assert!(error < limit, "{name}: {section}, call {call}, {kernel}: {error:.1e}");
                let entry = worst.entry(kernel).or_insert((0.0, String::new()));
                if error >= entry.0 {
                    *entry = (error, name.clone());
                }
            }
        }
    }
    println!("{:20} largest error (of the largest magnitude)", "kernel");
    for (kernel, (error, shape)) in &worst {
        println!("{kernel:20} {error:.1e}  {shape}");
    }
    // General ones that only other methods use are run with those, below.
    let used = of_nmppg(engine);
    let expected = k::GENERAL.iter().chain(own::KERNELS).filter(|kernel| used.contains(kernel.name)).count();
    assert_eq!(worst.len(), expected, "a kernel was never run");
    assert!(own::KERNELS.iter().all(|kernel| used.contains(kernel.name)), "no plan has it");
}

/// The kernels that NM-PPG's plans have, of all kinds there are.
fn of_nmppg(engine: &Engine) -> BTreeSet<&'static str> {
    let options = Shape { options: Some(1.0), ..PLAIN };
    let soft = Shape { rollout: Rollout::Soft, ..PLAIN };
    let bytes = Shape { bytes: true, ..PLAIN };
    let wide = Shape { features: 130, ..PLAIN };
    let plans = [PLAIN, options, soft, bytes, wide].map(|shape| Pair::new(engine, &shape).cpu.plan().clone());
    plans.iter().flat_map(|plan| plan.calls().iter().map(|call| call.kernel.name)).collect()
}

/// Every method there is, with the settings it has for a small table: a training step, one of the warm-up and a chunk of
/// the evaluation, which every plan has under these names.
#[test]
fn every_method_agrees_call_by_call() {
    let Some(engine) = common::gpu() else { return };
    every_method_agrees(&engine);
}

/// The same with the kernels that are made for the other kind of device.
#[test]
fn every_method_agrees_with_other_kernels() {
    let Some(engine) = common::gpu() else { return };
    every_method_agrees(&other_kind(&engine));
}

fn every_method_agrees(engine: &Engine) {
    let mut run = of_nmppg(engine);
    for entry in querent::methods::METHODS {
        let mut seen = BTreeSet::new();
        for data in [rig::toy(5, 9), rig::toy_of_bytes(4, 7)] {
            for settings in of_all_kinds((entry.defaults)(&data)) {
                let mut training =
                    (entry.start)(engine, &data, settings).unwrap_or_else(|error| panic!("{error}"));
                if training.program().is_none() {
                    continue;
                }
                let mut pair = Pair::of(OnGpu::Any(training), 1.0);
                let sections =
                    ["step", "warm_up", "validate"].map(|name| common::section(pair.cpu.plan(), name));
                for call in sections.into_iter().flatten() {
                    let kernel = pair.cpu.plan().calls()[call].kernel.name;
                    let error = pair.step(call, None);
                    assert!(error < TOLERANCE, "{}: call {call}, {kernel}: {error:.1e}", entry.name);
                    seen.insert(kernel);
                }
            }
        }
        // What NM-PPG's options need is run above.
        for kernel in entry.kernels.iter().filter(|kernel| !kernel.name.starts_with("nmppg/")) {
            assert!(seen.contains(kernel.name), "{}: {} was never run", entry.name, kernel.name);
        }
        run.extend(seen);
    }
    // Those of NM-PPG's plans are run above, on many shapes.
    for kernel in k::GENERAL {
        assert!(run.contains(kernel.name), "{} was never run", kernel.name);
    }
}

/// A method's settings, and others at which it has kernels that it has not otherwise.
fn of_all_kinds(usual: serde_json::Value) -> Vec<serde_json::Value> {
    let mut all = vec![usual.clone()];
    if usual.get("reward").is_some() {
        let mut other = usual;
        (other["reward"], other["samples"]) = ("confidence".into(), 2.into());
        all.push(other);
    }
    all
}

/// The control: a kernel run with another call's parameters, and a single changed number, are seen.
#[test]
fn the_lockstep_can_fail() {
    let Some(engine) = common::gpu() else { return };
    let mut pair = Pair::new(&engine, &PLAIN);
    let section = common::section(pair.cpu.plan(), "step");
    let is_linear = |pair: &Pair, call: usize| pair.cpu.plan().calls()[call].kernel.is(k::Linear::KERNEL);
    let linears: Vec<usize> = section.clone().filter(|&call| is_linear(&pair, call)).collect();
    for call in section.start..linears[0] {
        assert!(pair.step(call, None) < TOLERANCE);
    }
    // The policy's second linear call writes another buffer: the first's output is missing.
    assert!(pair.step(linears[0], Some(linears[1])) > 0.5);
    assert!(pair.step(linears[0], None) < TOLERANCE);
    let hidden2 = pair.cpu.plan().find("policy.hidden2").expect("declared");
    let largest = pair.cpu.reals(hidden2).iter().fold(0f32, |most, v| most.max(v.abs()));
    pair.cpu.reals_mut(hidden2)[0] += 1e-4 * largest;
    assert!(pair.apart(hidden2) > TOLERANCE);
}

/// The generators must agree bit for bit, except for Gumbel's logarithms.
#[test]
fn random_numbers_are_the_same_bits() {
    let Some(engine) = common::gpu() else { return };
    let mut pair = Pair::new(&engine, &Shape { features: 130, options: Some(1.0), ..PLAIN });
    // Without a rollout nothing was asked: say that everything was, at once.
    let [tape, relax] = ["scalars", "masks"].map(|name| pair.cpu.plan().find(name).expect("declared"));
    pair.cpu.reals_mut(tape).fill(1.0);
    let drawn = [
        k::Gather::KERNEL,
        k::InputNoise::KERNEL,
        k::Dropout::KERNEL,
        k::UniformMask::KERNEL,
        own::Submask::KERNEL,
    ]
    .map(|kernel| kernel.name);
    let mut seen = Vec::new();
    for call in common::section(pair.cpu.plan(), "step").chain(common::section(pair.cpu.plan(), "warm_up")) {
        let kernel = pair.cpu.plan().calls()[call].kernel.name;
        let exact = drawn.contains(&kernel);
        if exact || kernel == k::Gumbel::KERNEL.name {
            let error = pair.step(call, None);
            assert!(error <= if exact { 0.0 } else { 1e-6 }, "{kernel:?}: {error:.1e}");
            seen.push(kernel);
        }
        if kernel == own::Submask::KERNEL.name {
            let kept = pair.cpu.reals(relax).iter().sum::<f32>() / (33.0 * 130.0);
            assert!((kept - 0.5).abs() < 0.05, "{kept} of the sub-masks were kept");
        }
    }
    assert!(drawn.iter().chain([&k::Gumbel::KERNEL.name]).all(|kernel| seen.contains(kernel)), "{seen:?}");
    // Where a policy can show half of the features, the warm-up's masks are halves.
    let mut few = Pair::new(&engine, &PLAIN);
    let is_halves = |call: &usize| few.cpu.plan().calls()[*call].kernel.is(k::RandomMask::KERNEL);
    let halves = common::section(few.cpu.plan(), "warm_up").find(is_halves).expect("drawn");
    assert_eq!(few.step(halves, None), 0.0);
    // The noise has Gumbel's mean (Euler's constant) and variance (π²/6).
    let gumbel = pair.cpu.plan().find("gumbel").expect("declared");
    let values: Vec<f64> =
        pair.cpu.reals(gumbel).iter().map(|&v| f64::from(v)).filter(|&v| v != 0.0).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64;
    assert!((mean - 0.5772).abs() < 0.05, "mean {mean}");
    assert!((variance - 1.645).abs() < 0.1, "variance {variance}");
    let dropout = pair.cpu.plan().find("dropout.1").expect("declared");
    let kept = pair.cpu.reals(dropout).iter().filter(|&&v| v > 0.0).count() as f64;
    let share = kept / pair.cpu.reals(dropout).len() as f64;
    assert!((share - 0.7).abs() < 0.05, "{share} were kept");
}

/// The plan runs on the GPU program as on any other: a smoke test that `Program` is one interface.
#[test]
fn a_program_can_be_asked_for_its_device() {
    let Some(engine) = common::gpu() else { return };
    let mut pair = Pair::new(&engine, &PLAIN);
    assert!(matches!(pair.gpu.program(), Program::Gpu(_)));
    assert!(pair.gpu.program().gpu().is_some());
}
