//! Tier 7: what can happen to a host's device: it is lost in the middle of a run, or has no memory left.
//! A binary of its own: with `--include-ignored`, other tests in it would have no memory left either.

#[path = "all/common/mod.rs"]
mod common;
#[path = "all/host/mod.rs"]
mod host;

use common::weights;
use host::{Host, Patience, data, small};
use querent::nmppg::{Config, Trainer};
use querent::train::Training;
use querent::{Budget, Engine, Error, ErrorKind, wgpu};
use std::error::Error as _;

fn expected(host: &Host) -> Vec<f64> {
    let mut trainer = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    weights(&trainer.finish_blocking().expect("reads"))
}

/// Frames until the trainer has something to say that `stop` has waited for.
fn train<T: Training + ?Sized>(host: &Host, trainer: &mut T, stop: impl Fn(&T) -> bool) -> Result<(), Error> {
    let mut patience = Patience::default();
    loop {
        let recorded = host.frame(|encoder| trainer.encode(encoder, Budget::Dispatches(150)))?;
        if trainer.try_progress()?.finished || stop(trainer) {
            return Ok(());
        }
        patience.after(&recorded);
    }
}

/// The device is destroyed between two frames, with a checkpoint on the host and some steps after it, and
/// once more before there is any.
#[test]
fn a_lost_device_is_an_error_and_another_one_continues_with_equal_bits() {
    let Some(first) = Host::open(wgpu::Features::empty()) else { return };
    let expected = expected(&first);
    let mut trainer = Trainer::new(&first.engine(), &data(), small()).expect("valid");
    train(&first, &mut trainer, |_| true).expect("nothing is wrong yet");
    first.device.destroy();
    let error = train(&first, &mut trainer, |_| false).expect_err("the device is gone");
    assert!(matches!(error, Error::DeviceLost(_)), "{error}");
    assert_eq!(error.kind(), ErrorKind::DeviceLost);
    assert!(trainer.last_checkpoint().is_none());

    // From the beginning, as nothing had come to the host.
    let second = Host::open(wgpu::Features::empty()).expect("there was one");
    trainer.resume_on(&second.engine()).expect("resumes");
    train(&second, &mut trainer, |trainer| trainer.last_checkpoint().is_some()).expect("nothing is wrong");
    let behind = trainer.history().len();
    assert!(behind >= 1 && behind < trainer.epochs_at_most());
    for _ in 0..7 {
        second.frame(|encoder| trainer.encode(encoder, Budget::Dispatches(31))).expect("records");
    }
    second.device.destroy();
    let error = train(&second, &mut trainer, |_| false).expect_err("the device is gone");
    assert!(matches!(error, Error::DeviceLost(_)), "{error}");
    // It stays so, and waiting for it does not take for ever.
    assert!(matches!(trainer.try_progress(), Err(Error::DeviceLost(_))));
    assert!(matches!(trainer.epoch_blocking(), Err(Error::DeviceLost(_))));

    let third = Host::open(wgpu::Features::empty()).expect("there was one");
    trainer.resume_on(&third.engine()).expect("resumes");
    assert!((1..=behind).contains(&trainer.history().len()), "it did not continue from the checkpoint");
    train(&third, &mut trainer, |_| false).expect("nothing is wrong");
    assert_eq!(weights(&trainer.try_model().expect("no error").expect("over")), expected);
    assert_eq!([first.errors(), second.errors(), third.errors()], [0; 3], "errors reached the hosts");

    // A checkpoint on the host can be written without waiting, and read by another run.
    let folder = common::TempDir::new("lost");
    let file = folder.0.join("last.safetensors");
    trainer.last_checkpoint().expect("the run's end").save(&file).expect("saves");
    let mut read = Trainer::new(&third.engine(), &data(), small()).expect("valid");
    read.resume(&file).expect("resumes");
    assert_eq!(read.history().len(), trainer.history().len());
    assert_eq!(weights(&read.finish_blocking().expect("reads")), expected);
}

/// A host that gets no other device goes on without one.
#[test]
fn after_a_lost_device_the_cpu_goes_on_from_the_checkpoint() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let mut trainer = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    train(&host, &mut trainer, |trainer| trainer.last_checkpoint().is_some()).expect("nothing is wrong");
    host.device.destroy();
    train(&host, &mut trainer, |_| false).expect_err("the device is gone");
    let folder = common::TempDir::new("lost_to_cpu");
    let file = folder.0.join("last.safetensors");
    trainer.last_checkpoint().expect("there was one").save(&file).expect("saves");

    let finish = |trainer: &mut Trainer| {
        let behind = trainer.history().len();
        assert!((1..trainer.epochs_at_most()).contains(&behind), "it did not continue from the checkpoint");
        while trainer.epoch_blocking().expect("trains").is_some() {}
        weights(&trainer.finish_blocking().expect("reads"))
    };
    trainer.resume_on(&Engine::cpu()).expect("resumes");
    let went_on = finish(&mut trainer);
    let mut read = Trainer::new(&Engine::cpu(), &data(), small()).expect("valid");
    read.resume(&file).expect("resumes");
    assert_eq!(finish(&mut read), went_on);
    assert_eq!(trainer.history().len(), trainer.epochs_at_most());

    // The control: all of it on the CPU rounds differently in the beginning.
    let mut cpu = Trainer::new(&Engine::cpu(), &data(), small()).expect("valid");
    while cpu.epoch_blocking().expect("trains").is_some() {}
    assert_ne!(weights(&cpu.finish_blocking().expect("reads")), went_on);
}

/// A host that chose a method by its name has all that one of a known method has.
#[test]
fn every_method_by_name_goes_on_on_another_device() {
    let Some(first) = Host::open(wgpu::Features::empty()) else { return };
    let data = data();
    for entry in querent::methods::METHODS {
        let mut settings = (entry.defaults)(&data);
        for assignment in ["epoch_steps=3", "stage_epochs=1", "warm_up_epochs=1"] {
            querent::methods::set::set(&mut settings, assignment, entry.renamed)
                .expect("every method has it");
        }
        (entry.widen)(&mut settings, 8);
        let start = |host: &Host| (entry.start)(&host.engine(), &data, settings.clone()).expect("valid");
        let mut plain = start(&first);
        while plain.epoch_blocking().expect("trains").is_some() {}
        let expected = plain.finish_blocking().expect("reads");

        let lost = Host::open(wgpu::Features::empty()).expect("there was one");
        let mut training = start(&lost);
        assert!(training.buffers().is_some_and(|buffers| buffers.paths.size() > 0), "{}", entry.name);
        train(&lost, &mut *training, |training| training.last_checkpoint().is_some())
            .expect("nothing is wrong");
        lost.device.destroy();
        let error = train(&lost, &mut *training, |_| false).expect_err("the device is gone");
        assert_eq!(error.kind(), ErrorKind::DeviceLost, "{}: {error}", entry.name);
        training.resume_on(&first.engine()).expect("resumes");
        assert!(!training.history().is_empty(), "{}: it did not continue from the checkpoint", entry.name);
        train(&first, &mut *training, |_| false).expect("nothing is wrong");
        let model = training.try_model().expect("no error").expect("over");
        assert!(weights(&model) == weights(&expected), "{}", entry.name);
    }
    assert_eq!(first.errors(), 0, "errors reached the host");
}

/// The device is lost while a plain trainer waits for it.
#[test]
fn a_plain_trainer_says_so_too() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let mut trainer = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    trainer.epoch_blocking().expect("trains");
    host.device.destroy();
    let error = trainer.epoch_blocking().expect_err("the device is gone");
    assert!(matches!(error, Error::DeviceLost(_)), "{error}");
    assert!(matches!(trainer.finish_blocking(), Err(Error::DeviceLost(_))));
    let error =
        Trainer::new(&host.engine(), &data(), small()).err().expect("nothing fits a device that is gone");
    assert!(matches!(error, Error::DeviceLost(_)), "{error}");
    assert_eq!(host.errors(), 0, "errors reached the host");
}

/// The trainer is refused, the host's handler is not called, and the host goes on. In a process of its own,
/// because that has no memory any more.
#[test]
fn out_of_memory_at_creation_is_an_error() {
    if common::gpu().is_none() {
        return;
    }
    let limits_memory = std::process::Command::new("prlimit").arg("--version").output();
    if !limits_memory.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: there is no `prlimit` to take memory away with");
        return;
    }
    let said = common::in_a_process_of_its_own("without_memory", &[]);
    println!("{said}");
    assert!(said.contains("refused (OutOfMemory): gpu: "), "{said}");
}

#[test]
#[ignore = "runs in a process of its own, started by out_of_memory_at_creation_is_an_error"]
fn without_memory() {
    let host = Host::open(wgpu::Features::empty()).expect("there was an adapter");
    let rows = 150_000;
    let table = |rows: usize| querent::data::Split { x: vec![0.5; rows * 200], y: vec![0; rows] };
    let problem = querent::Problem::ungrouped(&[1.0; 200], 2).expect("valid");
    let data = querent::data::Dataset::new(problem, table(rows), table(10), table(10)).expect("valid");
    // What the process has, and a little.
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("its size");
    let kilobytes: u64 = size.trim().trim_end_matches(" kB").parse().expect("a number");
    let limit = format!("--as={}", (kilobytes + 40_000) * 1024);
    let pid = std::process::id().to_string();
    let set = std::process::Command::new("prlimit").args(["--pid", &pid, &limit]).status();
    assert!(set.expect("prlimit runs").success());
    let config = Config { horizon: Some(2), batch: 8, ..small() };
    match Trainer::new(&host.engine(), &data, config) {
        Err(error) => {
            let source = error.source().and_then(|source| source.downcast_ref::<wgpu::Error>());
            assert!(matches!(source, Some(wgpu::Error::OutOfMemory { .. })), "{error:?}");
            println!("refused ({:?}): {error}", error.kind());
        }
        Ok(_) => panic!("120 MB were found in 40"),
    }
    assert_eq!(host.errors(), 0, "our error reached the host");
    host.frame(|_| ());
    assert_eq!(host.errors(), 0, "the host cannot go on");
}
