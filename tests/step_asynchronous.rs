//! A training step on the GPU engine waits for nothing and reads nothing back.
//!
//! That it does not wait is shown by time: steps are handed over in a small part of the time the device needs
//! for them. That it reads nothing back is shown by what is on the device meanwhile: a readback needs memory
//! that the host can map, no buffer of the plan is of that kind, and no other one appears. What a submission
//! uses stays on the device until it is done, so nothing can have come and gone unseen.
//!
//! A binary of its own, because other tests would take the device's time.

#[path = "all/common/mod.rs"]
mod common;

use querent::data::synthetic;
use querent::nmppg::{Config, Stepper};
use querent::wgpu;
use std::time::Instant;

/// Steps that keep any device busy for a while. Wide layers: much work a dispatch.
fn busy(engine: &querent::Engine) -> Stepper {
    let data = synthetic::syn1(1, [2048, 64, 64]).expect("valid");
    let config = Config::paper(0.02).with(|c| {
        c.networks.policy = [128; 2];
        c.networks.predictor = [128; 2];
        c.batch = 64;
    });
    let mut stepper = Stepper::new(engine, &data, config).expect("fits");
    // Writes are staged by the queue: they are over when this returns.
    stepper.steps(1);
    stepper.means_blocking().expect("finite");
    stepper
}

/// The names of all memory that is allocated on a device.
fn allocated(device: &wgpu::Device) -> Option<Vec<String>> {
    let report = device.generate_allocator_report()?;
    let mut names: Vec<String> = report.allocations.into_iter().map(|allocation| allocation.name).collect();
    names.sort();
    Some(names)
}

/// One test after the other: they measure time on the same device.
#[test]
fn steps_wait_for_nothing_and_read_nothing_back() {
    let Some(engine) = common::gpu() else { return };
    steps_are_handed_over_without_waiting(&engine);
    steps_read_nothing_back(&engine);
}

fn steps_are_handed_over_without_waiting(engine: &querent::Engine) {
    let mut stepper = busy(engine);
    // A step that waits can never be handed over early; one that does not can be held up by other programs.
    let mut attempts = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        stepper.steps(2);
        let handed_over = start.elapsed();
        stepper.means_blocking().expect("finite");
        let done = start.elapsed();
        if handed_over * 3 < done {
            return;
        }
        attempts.push((handed_over, done));
    }
    panic!("handed over after, done after: {attempts:?}");
}

fn steps_read_nothing_back(engine: &querent::Engine) {
    let mut stepper = busy(engine);
    let (device, queue) = engine.device().expect("a GPU engine");
    let (device, queue) = (device.clone(), queue.clone());
    let program = stepper.program().gpu().expect("on the device");
    for buffer in program.plan().buffers() {
        let id = program.plan().find(&buffer.name).expect("declared");
        let usage = program.buffer(id).buffer().usage();
        assert!(!usage.intersects(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE), "{usage:?}");
    }
    let Some(before) = allocated(&device) else {
        return eprintln!("SKIPPED: this backend does not tell what it has allocated");
    };
    stepper.steps(2);
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
