//! Tier 2: wgpu's noop device, which validates everything and computes nothing. Every plan is built and
//! encoded over odd shapes at default limits; limits and budgets are kept or named.

use crate::replay::Case;
use querent::data::{Dataset, Split};
use querent::engine::kernels::Target;
use querent::engine::plan::Scope;
use querent::nmppg::{Config, Rollout, Stepper};
use querent::{Engine, Error, Feature, Problem, wgpu};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// An application's device, with what reached its error handler: nothing of ours may.
struct Host {
    engine: Engine,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: Arc<Mutex<Vec<String>>>,
}

impl Host {
    fn new(limits: wgpu::Limits) -> Self {
        let (device, queue) = wgpu::Device::noop(&wgpu::DeviceDescriptor {
            label: Some("host"),
            required_limits: limits,
            ..Default::default()
        });
        let errors = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&errors);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            sink.lock().expect("no panic in the handler").push(error.to_string());
        }));
        Self { engine: Engine::on(device.clone(), queue.clone()), device, queue, errors }
    }

    /// The limits every WebGPU device has.
    fn default_limits() -> Self {
        Self::new(wgpu::Limits::default())
    }

    /// As if it were a GPU: several calls are one dispatch.
    fn taken_for_gpu(self) -> Self {
        let engine = Engine::on_as(self.device.clone(), self.queue.clone(), Target::Gpu);
        Self { engine, ..self }
    }

    /// Small storage bindings, everything else as usual.
    fn with_bindings_of(bytes: u64) -> Self {
        Self::new(wgpu::Limits { max_storage_buffer_binding_size: bytes, ..Default::default() })
    }

    fn errors(&self) -> Vec<String> {
        self.errors.lock().expect("no panic in the handler").clone()
    }

    /// Encodes ranges of a trainer's plan into one encoder of the host, a pass of the host's own before
    /// each, and submits it.
    fn encode(&self, trainer: &Stepper, ranges: &[Range<usize>]) {
        let program = trainer.program().gpu().expect("on the device");
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for range in ranges {
            drop(encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()));
            program.encode(&mut encoder, range.clone());
        }
        self.queue.submit([encoder.finish()]);
    }
}

/// The controls: what the device has against something does reach the host, whether at once or only when
/// an encoder is finished.
#[test]
fn the_error_handler_can_be_reached() {
    let host = Host::default_limits();
    assert!(host.errors().is_empty());
    let limit = host.device.limits().max_buffer_size;
    let _ = host.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("too large"),
        size: limit + 4,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    assert!(host.errors()[0].contains("too large"), "{:?}", host.errors());

    let mut encoder = host.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.dispatch_workgroups(1, 1, 1); // without a pipeline
    drop(pass);
    encoder.finish();
    assert_eq!(host.errors().len(), 2, "{:?}", host.errors());
}

/// A table for a problem; what is in it does not matter to a device that computes nothing.
fn table(problem: Problem, rows: [usize; 3]) -> Dataset {
    let (columns, classes) = (problem.columns(), problem.classes().len() as u32);
    let [train, validation, test] = rows.map(|rows| Split {
        x: (0..rows * columns).map(|i| (i % 7) as f32 - 3.0).collect(),
        y: (0..rows as u32).map(|row| row % classes).collect(),
    });
    Dataset::new(problem, train, validation, test).expect("a valid table")
}

/// The same of bytes.
fn bytes(problem: Problem, rows: [usize; 3]) -> Dataset {
    let (columns, classes) = (problem.columns(), problem.classes().len() as u32);
    let splits = rows.map(|rows| {
        let x = (0..rows * columns).map(|i| (i % 251) as u8).collect();
        (x, (0..rows as u32).map(|row| row % classes).collect())
    });
    Dataset::of_bytes(problem, splits).expect("a valid table")
}

/// One column a feature.
fn plain(features: usize, classes: usize) -> Problem {
    Problem::ungrouped(&vec![1.0; features], classes).expect("a valid problem")
}

/// Features of one, two, three, … columns, not in order.
fn grouped(features: usize, classes: usize) -> Problem {
    let mut groups: Vec<u32> =
        (0..features as u32).flat_map(|feature| std::iter::repeat_n(feature, feature as usize + 1)).collect();
    groups.reverse();
    groups.rotate_left(features / 2);
    let features = (0..features).map(|i| Feature { name: format!("f{i}"), cost: i as f64 }).collect();
    Problem::new(features, groups, (0..classes).map(|class| class.to_string()).collect())
        .expect("a valid problem")
}

struct Shape {
    name: &'static str,
    data: Dataset,
    config: Config,
}

fn shape(name: &'static str, data: Dataset, config: Config) -> Shape {
    Shape { name, data, config }
}

fn widths(policy: [usize; 2], predictor: [usize; 2]) -> Config {
    Config::default().with(|c| {
        c.networks.policy = policy;
        c.networks.predictor = predictor;
    })
}

/// Shapes at the edges: sizes of one, sizes that are no multiple of anything, empty splits.
fn odd_shapes() -> Vec<Shape> {
    let narrow = || widths([8, 8], [8, 8]);
    vec![
        shape("d = 1", table(plain(1, 2), [20, 5, 5]), narrow()),
        shape("one row, no other split", table(plain(1, 2), [1, 0, 0]), widths([1, 1], [1, 1])),
        shape("k = d", table(plain(7, 3), [40, 3, 1]), Config { horizon: Some(7), ..narrow() }),
        shape("k = 1", table(plain(7, 3), [40, 3, 1]), Config { horizon: Some(1), ..narrow() }),
        shape("B = 1", table(plain(5, 2), [9, 4, 4]), Config { batch: 1, ..narrow() }),
        shape("B = 131", table(plain(5, 2), [300, 0, 7]), Config { batch: 131, ..narrow() }),
        shape("widths 65", table(plain(6, 2), [64, 8, 8]), widths([65, 65], [65, 65])),
        shape("four different widths", table(plain(6, 5), [64, 8, 8]), widths([7, 65], [9, 3])),
        shape("d = 130", table(plain(130, 3), [140, 20, 20]), Config { batch: 131, ..narrow() }),
        shape("groups", table(grouped(9, 4), [50, 6, 6]), Config { horizon: Some(4), ..narrow() }),
        shape("known columns", table(grouped(4, 3).with_known_columns(3), [50, 6, 6]), narrow()),
        shape("bytes", bytes(grouped(3, 2), [33, 5, 5]), narrow()),
        shape("more than a chunk to evaluate", table(plain(3, 2), [1500, 1025, 1]), narrow()),
    ]
}

/// Every shape with and without dropout and sub-masks of paths, under hard and under relaxed masks.
fn variants(shape: &Shape) -> Vec<(String, Config)> {
    let mut variants = Vec::new();
    for rollout in [Rollout::StraightThrough, Rollout::Soft] {
        for (dropout, submasks) in [(0.0, 0.7), (0.3, 0.7), (0.3, 0.0)] {
            let name = format!("{}, {rollout:?}, dropout {dropout}, submasks {submasks}", shape.name);
            variants.push((
                name,
                shape.config.clone().with(|c| {
                    c.rollout = rollout;
                    c.networks.dropout = dropout;
                    c.predictor.submasks = submasks;
                }),
            ));
        }
    }
    variants
}

/// Builds a plan and has the device validate all of it: object creation, then every dispatch.
fn build(host: &Host, name: &str, data: &Dataset, config: &Config) -> Stepper {
    let trainer = Stepper::new(&host.engine, data, config.clone()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let sections: Vec<Range<usize>> =
        trainer.program().plan().sections().iter().map(|(_, section)| section.calls()).collect();
    assert!(!sections.is_empty());
    host.encode(&trainer, &sections);
    assert!(host.errors().is_empty(), "{name}: {:?}", host.errors());
    trainer
}

/// What a GPU waits for is dispatches: a training step is about a dozen, whatever its horizon is, at the limits that
/// every device has.
#[test]
fn a_step_is_a_dozen_dispatches() {
    let host = Host::default_limits().taken_for_gpu();
    for (name, features, hidden, horizon) in
        [("syn1", 11, 128, 11), ("diabetes", 33, 128, 30), ("cube", 55, 256, 30), ("mnist", 784, 256, 30)]
    {
        let data = table(plain(features, 3), [300, 40, 0]);
        let sized = |config: Config| {
            config.with(|c| {
                c.horizon = Some(horizon);
                (c.networks.policy, c.networks.predictor) = ([hidden; 2], [hidden; 2]);
            })
        };
        let dispatches = |trainer: &Stepper, section: &str| {
            let plan = trainer.program().plan();
            plan.dispatches(plan.find_section(section).expect("it is there").calls())
        };
        let published = build(&host, name, &data, &sized(Config::paper(0.02)));
        let step = dispatches(&published, "step");
        let usual = build(&host, name, &data, &sized(Config::new(0.02)));
        let [scored, warm_up, chunk] =
            ["step.reinforce", "warm_up", "validate"].map(|section| dispatches(&usual, section));
        println!(
            "{name}: {step} published, {scored} with scored choices, {warm_up} warm-up, {chunk} a chunk"
        );
        assert!(step <= 16 && scored <= 14 && warm_up <= 14 && chunk <= 4, "{name}");
    }
}

/// A horizon so long that a rollout's calls are more than a dispatch may have is more dispatches, not an error.
#[test]
fn a_long_horizon_is_a_few_dispatches_more() {
    let host = Host::default_limits().taken_for_gpu();
    let data = table(plain(220, 2), [60, 8, 0]);
    let config = Config { horizon: Some(200), ..widths([8, 8], [8, 8]) };
    let trainer = build(&host, "k = 200", &data, &config);
    let plan = trainer.program().plan();
    let step = plan.find_section("step").expect("it is there").calls();
    assert!(step.len() > 1_000 && plan.dispatches(step.clone()) < 30, "{} calls", step.len());
}

/// The same of the methods that learn a question at a time.
#[test]
fn a_step_of_the_myopic_methods_is_a_dozen_dispatches_too() {
    let host = Host::default_limits().taken_for_gpu();
    let data = table(plain(55, 3), [300, 40, 0]);
    for entry in querent::methods::METHODS.iter().filter(|entry| ["gdfs", "difa"].contains(&entry.name)) {
        let mut training = (entry.start)(&host.engine, &data, (entry.defaults)(&data)).expect("starts");
        let plan = training.program().expect("it has a plan").plan();
        for section in ["step", "warm_up"] {
            let calls = plan.find_section(section).expect("it is there").calls();
            let dispatches = plan.dispatches(calls.clone());
            println!("{} {section}: {dispatches} for {} calls", entry.name, calls.len());
            assert!(dispatches <= 14, "{} {section}", entry.name);
        }
    }
}

#[test]
fn odd_shapes_are_valid_at_default_limits() {
    odd_shapes_are_valid_on(&Host::default_limits());
}

#[test]
fn odd_shapes_are_valid_where_calls_are_fused() {
    odd_shapes_are_valid_on(&Host::default_limits().taken_for_gpu());
}

fn odd_shapes_are_valid_on(host: &Host) {
    for shape in odd_shapes() {
        for (name, config) in variants(&shape) {
            let mut trainer = build(host, &name, &shape.data, &config);
            // The trainer's own submissions as well.
            trainer.warm_up(2);
            trainer.steps(3);
            assert!(host.errors().is_empty(), "{name}: {:?}", host.errors());
        }
    }
}

/// The largest problem that default limits are promised for, in one micro-batch.
#[test]
fn the_largest_promised_problem_is_valid_at_default_limits() {
    let host = Host::default_limits();
    let data = table(plain(784, 10), [200, 50, 50]);
    let largest = Config { horizon: Some(30), batch: 128, ..widths([256, 256], [256, 256]) };
    for (name, config) in variants(&shape("d = 784", data.clone(), largest)) {
        let memory = Stepper::memory(&host.engine, &data, &config).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!((memory.rows, memory.micro_batches), (128, 1), "{name}");
        assert!(memory.largest <= host.device.limits().max_storage_buffer_binding_size, "{name}: {memory:?}");
        build(&host, &name, &data, &config);
    }
}

/// A host may stop anywhere in the plan and go on in another encoder.
#[test]
fn any_range_of_a_plan_can_be_encoded() {
    let host = Host::default_limits();
    let data = table(grouped(5, 3), [40, 9, 9]);
    let config = Config { horizon: Some(3), batch: 17, ..widths([12, 9], [10, 6]) };
    let trainer = build(&host, "groups", &data, &config);
    let calls = trainer.program().plan().calls().len();
    for start in 0..=calls {
        // Nothing, one call, a stride that meets no boundary, and all the rest.
        let ends = [start, start + 1, start + 13, calls].map(|end| end.min(calls));
        host.encode(&trainer, &ends.map(|end| start..end));
        assert!(host.errors().is_empty(), "from call {start}: {:?}", host.errors());
    }
}

/// Two trainings on one device share its pipelines and nothing else.
#[test]
fn plans_of_different_shapes_live_on_one_device() {
    let host = Host::default_limits();
    let shapes = odd_shapes();
    let trainers: Vec<Stepper> = shapes.iter().map(|s| build(&host, s.name, &s.data, &s.config)).collect();
    for (shape, trainer) in shapes.iter().zip(&trainers) {
        let whole = 0..trainer.program().plan().calls().len();
        host.encode(trainer, &[whole]);
        assert!(host.errors().is_empty(), "{}: {:?}", shape.name, host.errors());
    }
}

#[test]
fn a_table_beyond_the_limit_is_named() {
    let host = Host::default_limits();
    let limit = host.device.limits().max_storage_buffer_binding_size;
    let rows = limit as usize / (784 * 4) + 1;
    let data = table(plain(784, 2), [rows - 20, 10, 10]);
    match Stepper::new(&host.engine, &data, widths([8, 8], [8, 8])).err() {
        Some(Error::Limit { buffer, name, needed, limit: allowed }) => {
            assert_eq!((buffer.as_str(), name), ("data.x", "max_storage_buffer_binding_size"));
            assert_eq!((needed, allowed), (rows as u64 * 784 * 4, limit));
        }
        other => panic!("expected a limit, got {other:?}"),
    }
    assert!(host.errors().is_empty(), "{:?}", host.errors());
}

/// As many images as MNIST has fit at default limits, because they stay bytes.
#[test]
fn seventy_thousand_images_are_valid_at_default_limits() {
    let host = Host::default_limits();
    let data = bytes(plain(784, 10), [50_000, 10_000, 10_000]);
    let trainer = Stepper::new(&host.engine, &data, widths([8, 8], [8, 8])).unwrap_or_else(|e| panic!("{e}"));
    let held = trainer.program().plan().find("data.x").expect("declared");
    assert_eq!(trainer.program().plan().buffer(held).len * 4, 70_000 * 784);
    assert!(host.errors().is_empty(), "{:?}", host.errors());
}

/// The largest lane buffer of a trainer's plan, in bytes: what micro-batches make smaller.
fn widest(trainer: &Stepper) -> u64 {
    let lanes = trainer.program().plan().buffers().iter().filter(|buffer| buffer.scope == Scope::Lane);
    lanes.map(|buffer| buffer.len as u64 * 4).max().unwrap_or(0)
}

fn micro_batches(trainer: &Stepper) -> usize {
    let sections = trainer.program().plan().sections();
    sections.iter().filter(|(name, _)| name.starts_with("step.micro.")).count()
}

#[test]
fn small_bindings_make_small_micro_batches() {
    let data = table(plain(10, 3), [100, 20, 20]);
    let config = Config { batch: 100, ..widths([32, 32], [32, 32]) };
    let whole = {
        let host = Host::default_limits();
        let memory = Stepper::memory(&host.engine, &data, &config).expect("fits");
        assert_eq!((memory.rows, memory.micro_batches), (100, 1));
        widest(&build(&host, "default limits", &data, &config))
    };
    let mut last = 100;
    for part in [2, 3, 7] {
        let host = Host::with_bindings_of(whole / part);
        let limit = host.device.limits().max_storage_buffer_binding_size;
        let memory = Stepper::memory(&host.engine, &data, &config).expect("fits");
        assert!(memory.rows < last, "1/{part}: {memory:?}");
        assert!(memory.largest <= limit, "1/{part}: {memory:?} for {limit}");
        assert_eq!(memory.micro_batches, 100usize.div_ceil(memory.rows), "1/{part}");
        let trainer = build(&host, "small bindings", &data, &config);
        assert!(widest(&trainer) <= limit);
        assert_eq!(micro_batches(&trainer), memory.micro_batches);
        assert_eq!(trainer.batch(), 100, "the batch itself stays what it was");
        last = memory.rows;
    }
}

/// What is evaluated at a time shrinks with the bindings as well: a long table needs no large ones.
#[test]
fn small_bindings_suffice_to_evaluate_a_long_table() {
    let host = Host::with_bindings_of(64 << 10);
    let data = table(plain(10, 3), [1500, 20, 20]);
    let config = Config { batch: 100, ..widths([65, 65], [65, 65]) };
    let trainer = build(&host, "a long table", &data, &config);
    assert!(widest(&trainer) <= 64 << 10);
}

#[test]
fn the_memory_budget_is_kept_or_refused() {
    // By the instance; or by two rows, where an instance's two rollouts stay together.
    for (reinforce_from, least_rows) in [(1.0, 1), (0.2, 2)] {
        memory_budget_is_kept_or_refused(reinforce_from, least_rows);
    }
}

fn memory_budget_is_kept_or_refused(reinforce_from: f64, least_rows: usize) {
    let host = Host::default_limits();
    let data = table(plain(10, 3), [64, 20, 20]);
    let config = |memory_budget| {
        widths([32, 32], [32, 32]).with(|c| {
            c.batch = 64;
            c.memory_budget = memory_budget;
            c.gradient.reinforce_from = reinforce_from;
        })
    };
    let memory = |budget| Stepper::memory(&host.engine, &data, &config(budget));
    let all = memory(u64::MAX).expect("fits");
    assert_eq!((all.rows, all.micro_batches), (64, 1));
    // One byte less than it takes, and the batch is split; the budget is kept.
    assert_eq!(memory(all.working).expect("fits"), all);
    let split = memory(all.working - 1).expect("fits");
    assert_eq!((split.rows, split.micro_batches), (32, 2));
    assert!(split.working < all.working);

    // Hopeless: the error says what would do, and that does.
    let needed = match memory(1000).err() {
        Some(Error::Memory { needed, budget: 1000 }) => needed,
        other => panic!("expected too little memory, got {other:?}"),
    };
    let least = memory(needed).expect("what the error asks for");
    assert_eq!((least.rows, least.micro_batches, least.working), (least_rows, 64 / least_rows, needed));
    assert!(matches!(memory(needed - 1), Err(Error::Memory { .. })));
    assert!(matches!(Stepper::new(&host.engine, &data, config(0)), Err(Error::Memory { .. })));
    build(&host, "the smallest micro-batches", &data, &config(needed));
    assert!(host.errors().is_empty(), "{:?}", host.errors());
}

/// What is announced before anything is allocated is what the plan allocates, on either engine.
#[test]
fn announced_memory_is_allocated_memory() {
    let host = Host::default_limits();
    for shape in odd_shapes() {
        for (name, config) in variants(&shape) {
            for engine in [&host.engine, &Engine::cpu()] {
                let memory = Stepper::memory(engine, &shape.data, &config).expect("fits");
                let trainer = Stepper::new(engine, &shape.data, config.clone()).expect("fits");
                let plan = trainer.program().plan();
                assert_eq!(memory.state + memory.working, plan.bytes(4), "{name} on {engine}");
                // Buffers are whole vectors of four.
                let bytes = |len: usize| (len as u64 * 4).next_multiple_of(16);
                let largest = plan.buffers().iter().map(|buffer| bytes(buffer.len)).max();
                assert_eq!(Some(memory.largest), largest, "{name} on {engine}");
                assert_eq!(memory.micro_batches, micro_batches(&trainer), "{name} on {engine}");
            }
        }
    }
}

/// No dispatch has more than 65,535 workgroups in a dimension, however large the batch.
#[test]
fn a_huge_batch_is_valid_at_default_limits() {
    let host = Host::default_limits();
    let data = table(plain(1, 2), [300_000, 0, 0]);
    build(&host, "B = 300,000", &data, &Config { batch: 300_000, ..widths([1, 1], [1, 1]) });
}

/// Buffers are padded to whole vectors; the padding counts as well.
#[test]
fn a_table_that_only_its_padding_takes_beyond_the_limit_is_named() {
    let host = Host::with_bindings_of(10_004);
    let data = table(plain(1, 2), [2501, 0, 0]);
    let error = Stepper::new(&host.engine, &data, Config { batch: 1, ..widths([1, 1], [1, 1]) }).err();
    assert!(matches!(error, None | Some(Error::Limit { .. })), "{error:?}");
}

/// Micro-batches do not make a network's gradient smaller, and no budget helps: the limit is the reason.
#[test]
fn a_network_beyond_the_limit_is_named() {
    let host = Host::with_bindings_of(128 << 10);
    let data = table(plain(10, 3), [100, 20, 20]);
    match Stepper::new(&host.engine, &data, widths([256, 256], [8, 8])).err() {
        Some(Error::Limit { buffer, name, needed, limit }) => {
            assert!(buffer.starts_with("policy."), "{buffer}");
            assert_eq!((name, limit), ("max_storage_buffer_binding_size", 128 << 10));
            assert!(needed > limit);
        }
        other => panic!("expected a limit, got {other:?}"),
    }
}

/// A replayed step is one micro-batch, as its noise is one tape. A device that is too small for it must
/// refuse it rather than replay a part.
#[test]
fn a_replayed_step_is_never_cut_up() {
    let host = Host::with_bindings_of(300 << 10);
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/wide.safetensors");
    let prepared = Case::load(case).expect("a golden").prepare(&host.engine);
    assert!(host.errors().is_empty(), "{:?}", host.errors());
    assert!(matches!(prepared, Err(Error::Limit { .. } | Error::Memory { .. })), "was cut up");
}
