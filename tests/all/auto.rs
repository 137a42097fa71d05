//! Which engine `auto` takes: it measures, says what it measured, and remembers it.

use crate::common::{self, TempDir};
use querent::data::{Dataset, synthetic};
use querent::measure::{Remembered, fastest_blocking};
use querent::methods::METHODS;
use querent::nmppg::{Config, Trainer};
use querent::train::Training;
use querent::{Engine, Error, Result};
use std::cell::RefCell;

fn data() -> Dataset {
    synthetic::syn1(0, [400, 64, 64]).expect("valid").standardized()
}

/// Small networks, so that a step is over in a moment.
fn start(engine: &Engine, rows: &Dataset) -> Result<Box<dyn Training>> {
    let config = Config::new(0.02).with(|c| {
        (c.batch, c.horizon) = (16, Some(2));
        (c.networks.policy, c.networks.predictor) = ([8, 8], [8, 8]);
    });
    Ok(Box::new(Trainer::new(engine, rows, config)?))
}

/// The measurement itself, forced on whatever adapter there is.
#[test]
fn engines_are_measured_and_the_fastest_is_taken() {
    let Some(gpu) = common::gpu() else { return };
    let begun = RefCell::new(Vec::new());
    let noted = |engine: &Engine, rows: &Dataset| {
        begun.borrow_mut().push(engine.to_string());
        start(engine, rows)
    };
    let engines = [gpu.clone(), Engine::cpu()];
    let choice = fastest_blocking(&engines, &data(), &noted, None).expect("both can");
    assert_eq!(*begun.borrow(), [gpu.to_string(), Engine::cpu().to_string()]);
    let [fast, slow] = &choice.speeds[..] else { panic!("{choice}") };
    assert!(fast.instances_per_second >= slow.instances_per_second && slow.instances_per_second > 0.0);
    assert_eq!(choice.engine.to_string(), fast.engine.to_string());
    let said = choice.to_string();
    assert!(said.contains("instances a second") && said.contains(&slow.engine.to_string()), "{said}");
    assert!(!said.contains("before") && choice.refused.is_empty(), "{said}");
}

#[test]
fn what_was_measured_is_remembered_by_problem() {
    let dir = TempDir::new("speeds");
    let path = dir.0.join("speeds.json");
    let engines = [Engine::cpu_f64(), Engine::cpu()];
    let measured = |what: &str| {
        let mut speeds = Remembered::open(path.clone());
        fastest_blocking(&engines, &data(), &start, Some((&mut speeds, what))).expect("both can")
    };
    let remembered =
        |what: &str| measured(what).speeds.iter().map(|speed| speed.remembered).collect::<Vec<_>>();
    let first = measured("a problem");
    assert!(first.speeds.iter().all(|speed| !speed.remembered));
    let again = measured("a problem");
    let numbers = |choice: &querent::measure::Choice| {
        choice.speeds.iter().map(|speed| speed.instances_per_second).collect::<Vec<_>>()
    };
    assert_eq!((remembered("a problem"), numbers(&again)), (vec![true, true], numbers(&first)));
    assert!(again.to_string().contains("measured before"), "{again}");
    assert_eq!(remembered("another"), [false, false]);
    // The numbers decide, not the order: told that the first is faster, it is taken.
    let text = std::fs::read_to_string(&path).expect("reads");
    let mut file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for (what, speed) in file["instances_per_second"].as_object_mut().expect("speeds") {
        *speed = if what.contains("f64") { 2e9.into() } else { 1.0.into() };
    }
    std::fs::write(&path, file.to_string()).expect("writes");
    assert_eq!(measured("a problem").engine.to_string(), Engine::cpu_f64().to_string());
    std::fs::write(&path, "broken").expect("writes");
    assert_eq!(remembered("a problem"), [false, false]);
    assert_eq!(remembered("a problem"), [true, true]);
}

#[test]
fn an_engine_that_cannot_is_passed_over_and_named() {
    let engines = [Engine::cpu_f64(), Engine::cpu()];
    let cannot = |engine: &Engine, rows: &Dataset| match engine.to_string().contains("f64") {
        true => Err(Error::Config("too large for it".into())),
        false => start(engine, rows),
    };
    let choice = fastest_blocking(&engines, &data(), &cannot, None).expect("one can");
    assert_eq!((choice.engine.to_string(), choice.speeds.len()), (Engine::cpu().to_string(), 1));
    assert!(choice.to_string().contains("cannot: ") && choice.to_string().contains("too large"), "{choice}");
    let none = |_: &Engine, _: &Dataset| Err(Error::Config("no such thing".into()));
    let error = fastest_blocking(&engines, &data(), &none, None).expect_err("none can");
    assert!(error.to_string().contains("no such thing"), "{error}");
    // One engine alone is not measured.
    let only = fastest_blocking(&engines[1..], &data(), &none, None).expect("not begun");
    assert!(only.speeds.is_empty());
    assert_eq!(only.to_string(), Engine::cpu().to_string());
}

/// Every method's steps can be timed.
#[test]
fn steps_of_every_method_can_be_rehearsed() {
    let data = data();
    for entry in METHODS {
        let mut settings = (entry.defaults)(&data);
        (entry.widen)(&mut settings, 8);
        let mut training = (entry.start)(&Engine::cpu(), &data, settings).expect(entry.name);
        training.rehearse_blocking(1).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
    }
}

// Elsewhere the cache folder is not where a variable says.
#[cfg(all(feature = "cli", target_os = "linux"))]
mod command {
    use super::*;
    use crate::command::{clinic, querent_with};

    // With what would be tried first decided on.
    const TRAIN: [&str; 12] = [
        "train",
        "problem.toml",
        "--alpha",
        "0.05",
        "--epochs",
        "1",
        "--epoch-steps",
        "8",
        "--hidden",
        "8",
        "--set",
        "input_noise=0",
    ];

    /// `--engine auto` says in one line what it measured, keeps it in the user's cache folder, and takes a software driver
    /// only into account where that was asked for.
    #[test]
    fn auto_measures_once() {
        if common::gpu().is_none() {
            return;
        }
        let dir = clinic("auto");
        let cache = dir.0.join("cache");
        let run = |out: &str, software: bool| {
            let mut variables = vec![("XDG_CACHE_HOME", cache.as_path())];
            if software {
                variables.push(("QUERENT_AUTO", std::path::Path::new("software")));
            }
            let done = querent_with(&dir.0, &variables, &[&TRAIN[..], &["--out", out]].concat(), "");
            assert_eq!(done.code, Some(0), "{}", done.err);
            done.err.lines().filter(|line| line.starts_with("engine: ")).map(String::from).collect::<Vec<_>>()
        };
        let is_software = common::gpu().is_some_and(|gpu| {
            gpu.device().is_some_and(|(device, _)| {
                device.adapter_info().device_type == querent::wgpu::DeviceType::Cpu
            })
        });
        if is_software {
            assert!(run("plain", false).is_empty());
            assert!(!cache.exists(), "nothing was measured");
        }
        let [first] = &run("first", true)[..] else { panic!("one line") };
        assert!(first.contains("cpu (") && first.contains("gpu (") && !first.contains("before"), "{first}");
        let [second] = &run("second", true)[..] else { panic!("one line") };
        assert!(second.contains("measured before") && second.contains("speeds.json"), "{second}");
    }
}
