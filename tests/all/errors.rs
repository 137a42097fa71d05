//! What a host can match on: each kind of error where it can be provoked, with its source if there is one. Lost devices
//! and devices without memory are in `tests/lost.rs`.

use crate::common::{TempDir, engines};
use crate::host::{Host, data, small};
use querent::data::{Dataset, Split};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::nmppg::{Config, Stepper, Trainer};
use querent::{Budget, Engine, Error, ErrorKind, Model, Problem, wgpu};
use std::error::Error as _;

fn says(error: &Error, kind: ErrorKind, fragment: &str) {
    assert_eq!(error.kind(), kind, "{error:?}");
    assert!(error.to_string().contains(fragment), "{error}");
}

#[test]
fn a_problem_that_contradicts_itself() {
    let error = Problem::ungrouped(&[], 2).expect_err("no feature");
    says(&error, ErrorKind::Problem, "problem: there is no feature");
    assert_eq!(error.message(), "there is no feature to acquire");
    assert!(error.source().is_none());
}

#[test]
fn data_that_does_not_fit() {
    let problem = Problem::ungrouped(&[1.0; 2], 2).expect("valid");
    let ragged = Split { x: vec![0.0; 5], y: vec![0, 1] };
    let error = Dataset::new(problem, ragged, Split::default(), Split::default()).expect_err("ragged");
    says(&error, ErrorKind::Data, "data: ");
    assert!(!error.message().starts_with("data: "), "{}", error.message());
}

#[test]
fn settings() {
    let refused = |config: Config| Trainer::new(&Engine::cpu(), &data(), config).err().expect("refused");
    says(&refused(Config { batch: 0, ..small() }), ErrorKind::Setting, "batch");
    // It is the setting that is too small, not the machine.
    says(&refused(Config { memory_budget: 1, ..small() }), ErrorKind::Setting, "the memory budget is 1");
    let mut encoder = noop(wgpu::Limits::default()).0.create_command_encoder(&Default::default());
    let mut trainer = Trainer::new(&Engine::cpu(), &data(), small()).expect("valid");
    let error = trainer.encode(&mut encoder, Budget::Dispatches(1)).expect_err("no device");
    says(&error, ErrorKind::Setting, "GPU engine");
}

fn noop(limits: wgpu::Limits) -> (wgpu::Device, wgpu::Queue) {
    wgpu::Device::noop(&wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() })
}

/// A limit that we look at ourselves, and one that only the device does.
#[test]
fn limits_that_are_too_small() {
    let refused = |limits: wgpu::Limits| {
        let (device, queue) = noop(limits);
        Trainer::new(&Engine::on(device, queue), &data(), small()).err().expect("refused")
    };
    let error = refused(wgpu::Limits { max_storage_buffer_binding_size: 1 << 10, ..Default::default() });
    says(&error, ErrorKind::Validation, "max_storage_buffer_binding_size");
    assert!(matches!(error, Error::Limit { .. }), "{error:?}");
    let error = refused(wgpu::Limits { max_compute_invocations_per_workgroup: 1, ..Default::default() });
    says(&error, ErrorKind::Validation, "gpu: ");
    let source = error.source().and_then(|source| source.downcast_ref::<wgpu::Error>());
    assert!(matches!(source, Some(wgpu::Error::Validation { .. })), "{error:?}");
    assert!(source.is_some_and(|source| error.to_string().contains(&source.to_string())), "{error}");
}

#[test]
fn files() {
    let folder = TempDir::new("errors-files");
    let path = folder.0.join("model.safetensors");
    let error = Model::load(&path).expect_err("not there");
    says(&error, ErrorKind::File, "model.safetensors");
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    assert_eq!(source.map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
    std::fs::write(&path, "not a model").expect("writes");
    says(&Model::load(&path).expect_err("no model"), ErrorKind::File, "not a model of querent");
    let error = crate::replay::Case::load(&path).expect_err("no case");
    says(&error, ErrorKind::File, "not a safetensors file");
    assert!(error.source().is_some_and(|source| source.is::<safetensors::SafeTensorError>()), "{error:?}");
}

#[cfg(feature = "table")]
#[test]
fn tables_and_their_problems() {
    use querent::data::table::{Schema, TableReader, prepare, profile};
    let folder = TempDir::new("errors-tables");
    let file = |name: &str, text: &str| {
        let path = folder.0.join(name);
        std::fs::write(&path, text).expect("writes");
        path
    };
    let error = TableReader::open(folder.0.join("none.csv")).err().expect("not there");
    says(&error, ErrorKind::File, "none.csv");
    let error = TableReader::open(file("empty.csv", "")).err().expect("empty");
    says(&error, ErrorKind::Data, "empty.csv: the file is empty");
    let table = TableReader::open(file("ragged.csv", "u,y\n1,a\n2\n")).expect("a header");
    says(&profile(table, "y").expect_err("ragged"), ErrorKind::Data, "ragged.csv: row 2 (line 3)");

    let head = "[table]\npath = \"t.csv\"\n[target]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n";
    let feature = "[[feature]]\nname = \"u\"\nkind = \"numeric\"\n";
    let error = Schema::parse(&format!("{head}{feature}")).expect_err("no cost");
    says(&error, ErrorKind::Problem, "problem: feature `u` has no cost");
    let error = Schema::load(file("costless.toml", &format!("{head}{feature}"))).expect_err("no cost");
    says(&error, ErrorKind::Problem, "costless.toml: feature `u` has no cost");
    let error = Schema::load(file("broken.toml", "[table")).expect_err("no TOML");
    says(&error, ErrorKind::Problem, "broken.toml: TOML parse error at line 1");
    assert!(error.source().is_some_and(|source| source.is::<toml::de::Error>()), "{error:?}");

    let schema = Schema::parse(&format!("{head}{feature}cost = 1.0\n")).expect("valid");
    let table = TableReader::open(file("word.csv", "u,y\n1,a\nx,b\n")).expect("a header");
    let error = prepare(table, &schema).expect_err("a word");
    says(&error, ErrorKind::Data, "word.csv: row 2 (line 3), column `u`: `x` is not a number");
}

#[test]
fn gradients_that_are_not_finite() {
    for (name, engine) in engines() {
        let mut stepper = Stepper::new(&engine, &data(), small()).expect("valid");
        let id = stepper.program().plan().find("predictor.values").expect("declared");
        stepper.program_mut().write(id, 0, &[f32::NAN]);
        stepper.steps(1);
        let error = stepper.means_blocking().expect_err(name);
        says(&error, ErrorKind::NonFinite, "training step 0");
    }
}

#[test]
fn work_that_was_recorded_and_not_submitted() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let mut trainer = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    let mut encoder = host.encoder();
    trainer.encode(&mut encoder, Budget::Dispatches(20)).expect("records");
    let error = trainer.epoch_blocking().expect_err("not submitted");
    says(&error, ErrorKind::Recorded, "not submitted");
}

/// Only code that builds plans can provoke it, so a host that sees it has found a mistake of ours.
#[test]
fn plans_that_are_wrong() {
    let mut builder = PlanBuilder::new(1);
    builder.buffer("x", Elem::F32, 1, Scope::Shared);
    builder.buffer("x", Elem::F32, 1, Scope::Shared);
    let error = builder.finish().expect_err("the same name twice");
    says(&error, ErrorKind::Internal, "a mistake in querent itself, please report it: ");
}

/// Adapters come from Vulkan alone on Linux, and its loader can be told to find none: in a process of its own, as it
/// reads the environment.
#[cfg(target_os = "linux")]
#[test]
fn machines_without_an_adapter() {
    let nowhere = "/nonexistent";
    let environment = [("VK_DRIVER_FILES", nowhere), ("VK_ICD_FILENAMES", nowhere)];
    crate::common::in_a_process_of_its_own("errors::without_an_adapter", &environment);
}

#[test]
#[ignore = "runs in a process of its own, started by machines_without_an_adapter"]
fn without_an_adapter() {
    if std::env::var("VK_DRIVER_FILES").as_deref() != Ok("/nonexistent") {
        return;
    }
    let error = Engine::gpu_blocking().expect_err("there is no driver");
    says(&error, ErrorKind::NoAdapter, "The CPU engine needs none");
    assert!(Engine::auto_blocking().is_ok_and(|engine| engine.device().is_none()));
}
