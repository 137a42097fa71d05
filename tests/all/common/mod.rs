//! What the integration tests share: engines to test on, and comparators that can fail.
#![allow(dead_code)] // a test that stands beside `all` uses its part

use querent::Engine;
use querent::engine::kernels::Target;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The GPU engine, or `None` where there is no adapter and none is required. With
/// `QUERENT_GPU=require` a missing adapter is a failure.
pub fn gpu() -> Option<Engine> {
    match Engine::gpu_blocking() {
        Ok(engine) => Some(engine),
        Err(error) if std::env::var("QUERENT_GPU").is_ok_and(|value| value == "require") => {
            panic!("QUERENT_GPU=require, but: {error}")
        }
        Err(error) => {
            eprintln!("SKIPPED on the GPU: {error}");
            None
        }
    }
}

/// The engines whose results must agree.
pub fn engines() -> Vec<(&'static str, Engine)> {
    let mut engines = vec![("cpu", Engine::cpu())];
    engines.extend(gpu().map(|engine| ("gpu", engine)));
    engines
}

/// The GPU engine as it is on hardware: kernels that are made for it, and several calls as one dispatch.
pub fn fused() -> Option<Engine> {
    let engine = gpu()?;
    let (device, queue) = engine.device().expect("a GPU engine");
    Some(Engine::on_as(device.clone(), queue.clone(), Target::Gpu))
}

/// The largest difference, relative to the largest magnitude expected. A tensor expected to be all
/// zero must be all zero; anything that is not finite is infinitely wrong.
pub fn distance(got: &[f64], expected: &[f64]) -> f64 {
    if got.len() != expected.len() || got.iter().chain(expected).any(|value| !value.is_finite()) {
        return f64::INFINITY;
    }
    let largest = expected.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let difference = got.iter().zip(expected).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    if difference == 0.0 { 0.0 } else { difference / largest }
}

/// Runs an ignored test of this binary in a process of its own, with more in its environment, and gives what it said.
/// Panics unless it passed.
pub fn in_a_process_of_its_own(test: &str, environment: &[(&str, &str)]) -> String {
    let child = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--ignored", "--nocapture"])
        .envs(environment.iter().copied())
        .output()
        .expect("this test runs again");
    let said = [child.stdout, child.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    said
}

/// All of a model's numbers, which are exactly those of its file.
pub fn weights(model: &querent::Model) -> Vec<f64> {
    model.tensors().into_iter().flat_map(|tensor| tensor.values).map(f64::from).collect()
}

/// The calls of a plan's section.
pub fn section(plan: &querent::engine::plan::Plan, name: &str) -> std::ops::Range<usize> {
    plan.find_section(name).unwrap_or_else(|| panic!("no section `{name}`")).calls()
}

/// Where the assets are.
pub fn assets() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets")
}

/// The program of an example. `cargo test` builds them all, but `cargo test --test NAME` none, and a
/// program left by an earlier build would test what is no longer there: so cargo is asked, which has
/// nothing to do in most cases.
pub fn example(name: &str) -> std::path::PathBuf {
    let test = std::env::current_exe().expect("the test's path");
    // TARGET/PROFILE/deps/TEST
    let profile = test.ancestors().nth(2).expect("the profile's folder");
    if let Some(cargo) = std::env::var_os("CARGO") {
        let mut command = std::process::Command::new(cargo);
        command
            .args(["build", "--quiet", "--package", "querent", "--example", name])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        command.arg("--target-dir").arg(profile.parent().expect("the target folder"));
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        assert!(command.status().expect("cargo runs").success(), "the example {name} does not build");
    }
    profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION)
}

/// A folder of a test's own, removed at the end.
pub struct TempDir(pub std::path::PathBuf);

impl TempDir {
    pub fn new(name: &str) -> Self {
        // Two tests may choose the same name.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("querent-{name}-{process}-{number}"));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.0)
            .expect("lists")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_comparator_can_fail() {
    assert_eq!(distance(&[1.0, -2.0], &[1.0, -2.0]), 0.0);
    assert!((distance(&[1.0, -2.1], &[1.0, -2.0]) - 0.05).abs() < 1e-12);
    assert_eq!(distance(&[0.0], &[0.0]), 0.0);
    assert_eq!(distance(&[1e-12], &[0.0]), f64::INFINITY);
    assert_eq!(distance(&[f64::NAN], &[1.0]), f64::INFINITY);
    assert_eq!(distance(&[1.0], &[f64::NAN]), f64::INFINITY);
    assert_eq!(distance(&[1.0], &[1.0, 2.0]), f64::INFINITY);
}
