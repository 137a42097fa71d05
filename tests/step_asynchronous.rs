//! A training step on the GPU engine waits for nothing and reads nothing back.
//!
//! That it does not wait is shown by time: steps are handed over in a small part of the time the device needs
//! for them. That it reads nothing back is shown by what is on the device meanwhile: a readback needs memory
//! that the host can map, no buffer of the plan is of that kind, and no other one appears. What a submission
//! uses stays on the device until it is done, so nothing can have come and gone unseen.

mod common;

use querent::data::synthetic;
use querent::nmppg::{Config, Stepper};
use querent::wgpu;
use std::time::Instant;

/// Steps that keep any device busy for a while. Wide layers: much work a dispatch.
fn busy(engine: &querent::Engine) -> Stepper {
    let data = synthetic::syn1(1, [2048, 64, 64]).expect("valid");
    let config =
        Config { policy_hidden: [256; 2], predictor_hidden: [256; 2], batch: 256, ..Config::paper(0.02) };
    let mut stepper = Stepper::new(engine, &data, config).expect("fits");
    // Writes are staged by the queue: they are over when this returns.
    stepper.steps(1);
    stepper.metrics_blocking().expect("finite");
    stepper
}

/// The names of all memory that is allocated on a device.
fn allocated(device: &wgpu::Device) -> Option<Vec<String>> {
    let report = device.generate_allocator_report()?;
    let mut names: Vec<String> = report.allocations.into_iter().map(|allocation| allocation.name).collect();
    names.sort();
    Some(names)
}

#[test]
fn steps_are_handed_over_without_waiting() {
    let Some(engine) = common::gpu() else { return };
    let mut stepper = busy(&engine);
    let steps = 4;
    let start = Instant::now();
    stepper.steps(steps);
    let handed_over = start.elapsed();
    stepper.metrics_blocking().expect("finite");
    let done = start.elapsed();
    assert!(handed_over * 3 < done, "handed over after {handed_over:?}, done after {done:?}");
    // The control: whoever waits needs the whole time.
    let start = Instant::now();
    stepper.steps(steps);
    stepper.metrics_blocking().expect("finite");
    assert!(start.elapsed() * 3 > done, "a step that waits is as fast as one that does not");
}

#[test]
fn steps_read_nothing_back() {
    let Some(engine) = common::gpu() else { return };
    let mut stepper = busy(&engine);
    let (device, queue) = engine.device().expect("a GPU engine");
    let (device, queue) = (device.clone(), queue.clone());
    let program = stepper.program().gpu().expect("on the device");
    for buffer in program.plan().buffers() {
        let id = program.plan().find(&buffer.name).expect("declared");
        let usage = program.buffer(id).usage();
        assert!(!usage.intersects(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE), "{usage:?}");
    }
    let Some(before) = allocated(&device) else {
        return eprintln!("SKIPPED: this backend does not tell what it has allocated");
    };
    stepper.steps(4);
    assert_eq!(allocated(&device).expect("told before"), before, "memory that a step has allocated");

    // The control: a readback of a single buffer is seen.
    let program = stepper.program().gpu().expect("on the device");
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let metrics = program.plan().find("metrics").expect("declared");
    let readback = program.encode_readback(&mut encoder, &[metrics]);
    queue.submit([encoder.finish()]);
    assert_ne!(allocated(&device).expect("told before"), before, "a readback was not seen");
    drop(readback);
}
