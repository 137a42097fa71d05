//! Training by slices without frames: on either engine it ends in the bits of the plain trainer, and what is kept of it
//! on the way continues it.

use crate::common::weights;
use crate::host::{Host, data, small};
use querent::nmppg::Trainer;
use querent::train::Checkpoint;
use querent::{Budget, Engine, wgpu};

fn plain(engine: &Engine) -> Vec<f64> {
    let mut trainer = Trainer::new(engine, &data(), small()).expect("valid");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    weights(&trainer.finish_blocking().expect("reads"))
}

/// Slices until the run is over, or so many epochs have been seen; how many slices there were.
fn advance(trainer: &mut Trainer, budget: Budget, epochs: usize, mut between: impl FnMut()) -> usize {
    let mut seen = 0;
    for slice in 1..20_000 {
        trainer.advance(budget).expect("goes on");
        between();
        let progress = trainer.try_progress().expect("goes on");
        seen += usize::from(progress.epoch.is_some());
        if progress.finished || seen == epochs {
            return slice;
        }
    }
    panic!("the run never ended");
}

/// Whatever the slices are, in dispatches, operations or milliseconds.
#[test]
fn slices_on_the_cpu_give_the_plain_trainers_bits() {
    let engine = Engine::cpu();
    let expected = plain(&engine);
    for (budget, at_least) in
        [(Budget::Dispatches(1), 90), (Budget::Flops(10_000_000), 5), (Budget::Millis(1e-9), 90)]
    {
        let mut trainer = Trainer::new(&engine, &data(), small()).expect("valid");
        let slices = advance(&mut trainer, budget, usize::MAX, || ());
        assert!(slices >= at_least, "{budget:?}: {slices} slices");
        let model = trainer.try_model().expect("no error").expect("the run is over");
        assert_eq!(weights(&model), expected, "{budget:?}");
    }
    // Nothing is nothing.
    let mut trainer = Trainer::new(&engine, &data(), small()).expect("valid");
    for budget in [Budget::Dispatches(0), Budget::Flops(0), Budget::Millis(0.0)] {
        assert_eq!(trainer.advance(budget).expect("waits").dispatches, 0);
    }
    assert_eq!(trainer.try_progress().expect("waits").step, 0);
}

/// After each epoch there is a checkpoint, and its bytes are enough to go on with another trainer.
#[test]
fn a_checkpoints_bytes_continue_a_run() {
    let engine = Engine::cpu();
    let expected = plain(&engine);
    let mut first = Trainer::new(&engine, &data(), small()).expect("valid");
    advance(&mut first, Budget::Dispatches(1), 2, || ());
    let paths = first.paths().expect("on the host");
    let rows = data().sizes()[1] as u32;
    let features = data().problem().features().len();
    for step in paths.chunks_exact(features + 1) {
        assert_eq!(step.iter().sum::<u32>(), rows, "each row has asked or stopped");
    }
    // Steps of the next epoch are lost with the first trainer.
    for _ in 0..5 {
        first.advance(Budget::Dispatches(1)).expect("goes on");
    }
    let bytes = first.last_checkpoint().expect("kept after an epoch").to_bytes().expect("writes");
    let mut second = Trainer::new(&engine, &data(), small()).expect("valid");
    second.resume_from(Checkpoint::from_bytes(&bytes).expect("reads")).expect("fits");
    assert_eq!(second.history().len(), 2);
    advance(&mut second, Budget::Millis(5.0), usize::MAX, || ());
    assert_eq!(weights(&second.try_model().expect("no error").expect("over")), expected);
    // What is no checkpoint, or one of another run, says so.
    let cut = Checkpoint::from_bytes(&bytes[..100]).expect_err("cut off").to_string();
    assert!(cut.contains("not a checkpoint of querent, or cut off"), "{cut}");
    let mut other = Trainer::new(&engine, &data(), small().with(|c| c.seed = 5)).expect("valid");
    let error = other.resume_from(Checkpoint::from_bytes(&bytes).expect("reads")).expect_err("another seed");
    assert!(error.to_string().contains("another configuration: seed"), "{error}");
}

/// On a device the slices are submitted; a future tells when they are done.
#[test]
fn slices_on_a_device_give_the_plain_trainers_bits() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let engine = host.engine();
    let expected = plain(&engine);
    let mut trainer = Trainer::new(&engine, &data(), small()).expect("valid");
    assert_eq!(trainer.paths(), None, "it is on the device");
    let mut pending = 0;
    let slices = advance(&mut trainer, Budget::Dispatches(200), usize::MAX, || {
        let mut done = std::pin::pin!(engine.submitted());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        while done.as_mut().poll(&mut context).is_pending() {
            pending += 1;
            host.poll();
        }
    });
    println!("{slices} slices, not done at {pending} looks");
    assert!(pending > 0, "it was never waited for");
    let model = trainer.try_model().expect("no error").expect("the run is over");
    assert_eq!(weights(&model), expected);
    assert_eq!(host.errors(), 0, "uncaptured errors");
}
