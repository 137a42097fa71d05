//! Tier 7: the whole training run inside another application's frames. The host has a device at default
//! limits, draws, submits and polls as it likes; the bits must be those of the plain trainer.

use crate::common::{self, weights};
use crate::host::{Host, Patience, data, small};
use querent::nmppg::{Progress, Trainer};
use querent::{Budget, Engine, Error, wgpu};

/// Frames until the run is over, with what each frame's encoder gets from `record`.
fn train(host: &Host, trainer: &mut Trainer, budget: impl Fn(usize) -> Budget) -> usize {
    let mut patience = Patience::default();
    for frame in 0.. {
        let mut encoder = host.encoder();
        let recorded = trainer.encode(&mut encoder, budget(frame)).unwrap_or_else(|error| panic!("{error}"));
        assert!(recorded.readback <= 4096, "{recorded:?}");
        host.draw(&mut encoder);
        host.queue.submit([encoder.finish()]);
        // Where time matters the host is held back by its display.
        if matches!(budget(frame), Budget::Millis(_)) {
            host.wait()
        } else {
            host.poll()
        }
        if progress(trainer).finished {
            return frame + 1;
        }
        patience.after(&recorded);
    }
    unreachable!("there is no last frame");
}

fn progress(trainer: &mut Trainer) -> Progress {
    trainer.try_progress().unwrap_or_else(|error| panic!("{error}"))
}

fn plain(host: &Host) -> (Trainer, Vec<f64>) {
    plain_on(&host.engine())
}

fn plain_on(engine: &Engine) -> (Trainer, Vec<f64>) {
    let mut trainer = Trainer::new(engine, &data(), small()).expect("valid");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    let model = trainer.finish_blocking().expect("reads");
    (trainer, weights(&model))
}

fn objectives(trainer: &Trainer) -> Vec<(f64, f64)> {
    trainer.history().iter().map(|epoch| (epoch.train["objective"], epoch.validation.objective)).collect()
}

/// Where several calls are one dispatch, a slice may still end after any of them: such a group is then done call by call,
/// with the same bits.
#[test]
fn slices_that_end_inside_of_fused_dispatches_give_the_same_bits() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let (plain, expected) = plain_on(&host.fused());
    let mut trainer = Trainer::new(&host.fused(), &data(), small()).expect("valid");
    let plan = trainer.stepper().program().plan();
    let step = crate::common::section(plan, "step");
    let (whole, calls) = (plan.dispatches(step.clone()), step.len());
    assert!(whole <= 16 && calls > 3 * whole, "{calls} calls, {whole} dispatches");
    let work: u64 = plan.calls()[step].iter().map(|call| call.flops).sum();
    // A third of a step, several steps, a few dispatches, one.
    let frames = train(&host, &mut trainer, |frame| match frame % 4 {
        0 => Budget::Flops(work / 3),
        1 => Budget::Flops(5 * work),
        2 => Budget::Dispatches(7),
        _ => Budget::Dispatches(1),
    });
    assert!(frames > 20, "{frames} frames are not enough to show anything");
    assert_eq!(objectives(&trainer), objectives(&plain));
    assert_eq!(weights(&trainer.try_model().expect("no error").expect("over")), expected);
    assert_eq!(host.errors(), 0, "uncaptured errors");
}

/// A run that is stored in the middle of a step of fused dispatches goes on to the step's end first, and no further; and one
/// that is ended before there was an epoch gives its model.
#[test]
fn a_run_is_stored_at_the_end_of_a_step_of_fused_dispatches() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let (_, expected) = plain_on(&host.fused());
    let mut fresh = Trainer::new(&host.fused(), &data(), small()).expect("valid");
    fresh.finish_blocking().expect("the weights it began with");
    let folder = common::TempDir::new("frames-fused");
    let path = folder.0.join("checkpoint.safetensors");
    for frames in [1, 4, 9, 30] {
        let mut trainer = Trainer::new(&host.fused(), &data(), small()).expect("valid");
        for _ in 0..frames {
            let mut encoder = host.encoder();
            trainer.encode(&mut encoder, Budget::Dispatches(5)).expect("records");
            host.queue.submit([encoder.finish()]);
            host.poll();
            progress(&mut trainer);
        }
        trainer.save_blocking(&path).expect("written");
        let mut resumed = Trainer::new(&host.fused(), &data(), small()).expect("valid");
        resumed.resume(&path).expect("resumes");
        while resumed.epoch_blocking().expect("trains").is_some() {}
        assert_eq!(weights(&resumed.finish_blocking().expect("reads")), expected, "after {frames} frames");
    }
    assert_eq!(host.errors(), 0, "uncaptured errors");
}

/// At least 300 frames of a host that draws in each of them, with slices that end inside steps.
#[test]
fn three_hundred_frames_give_the_plain_trainers_bits() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let (plain, expected) = plain(&host);
    let mut trainer = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    let step = crate::common::section(trainer.stepper().program().plan(), "step").len();
    assert!(!step.is_multiple_of(29), "the frames would end with the steps");
    let (mut frames, mut dispatches, mut epochs) = (0, 0, 0);
    let mut patience = Patience::default();
    loop {
        let mut encoder = host.encoder();
        let recorded = trainer.encode(&mut encoder, Budget::Dispatches(29)).expect("records");
        assert!(recorded.dispatches <= 29 && recorded.readback <= 4096, "{recorded:?}");
        dispatches += recorded.dispatches;
        host.draw(&mut encoder);
        host.queue.submit([encoder.finish()]);
        host.poll();
        frames += 1;
        let seen = progress(&mut trainer);
        epochs += usize::from(seen.epoch.is_some());
        if seen.finished {
            break;
        }
        patience.after(&recorded);
    }
    println!("{frames} frames, {dispatches} dispatches");
    assert!(frames >= 300, "{frames} frames are not enough to show anything");
    assert_eq!(epochs, trainer.history().len(), "an epoch was not reported, or twice");
    assert_eq!(objectives(&trainer), objectives(&plain));
    let model = trainer.try_model().expect("no error").expect("the run is over");
    assert_eq!(weights(&model), expected);
    // What is on the device is the same, too.
    assert_eq!(weights(&trainer.finish_blocking().expect("reads")), expected);
    assert_eq!(host.errors(), 0, "uncaptured errors");
}

/// Whoever polls a device makes what has arrived known. So as long as the host does not, nothing of ours
/// may arrive, however long ago the work was done; and all of it when the host has polled.
#[test]
fn only_the_hosts_own_polls_bring_anything() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let mut trainer = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    for frame in 0..5 {
        let mut encoder = host.encoder();
        trainer.encode(&mut encoder, Budget::Dispatches(60)).expect("records");
        host.queue.submit([encoder.finish()]);
        std::thread::sleep(std::time::Duration::from_millis(150));
        for _ in 0..5 {
            assert_eq!(progress(&mut trainer).pending, 1, "frame {frame}: somebody has polled");
            assert!(trainer.try_model().expect("no error").is_none());
            let recorded = trainer.encode(&mut host.encoder(), Budget::Dispatches(0)).expect("records");
            assert_eq!(recorded.dispatches, 0);
        }
        host.wait();
        assert_eq!(progress(&mut trainer).pending, 0, "frame {frame}: the work was done");
    }
}

/// Every budget ends in the same bits, and so does changing over between frames and waiting.
#[test]
fn budgets_and_changing_over_give_the_same_bits() {
    let timed = Host::open(Engine::useful_features());
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let (_, expected) = plain(&host);
    let mut flops = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    train(
        &host,
        &mut flops,
        |frame| if frame % 7 == 3 { Budget::Flops(0) } else { Budget::Flops(2_000_000) },
    );
    assert_eq!(weights(&flops.try_model().expect("no error").expect("over")), expected);

    // Without timestamps, and with them.
    for host in [Some(&host), timed.as_ref()].into_iter().flatten() {
        let mut millis = Trainer::new(&host.engine(), &data(), small()).expect("valid");
        let frames = train(host, &mut millis, |_| Budget::Millis(3.0));
        println!("{frames} frames, timestamps: {}", host.has_timestamps());
        assert_eq!(weights(&millis.try_model().expect("no error").expect("over")), expected);
        assert_eq!(host.errors(), 0);
    }

    // Some frames, in the middle of a step a file, some more frames, and the rest waiting.
    let folder = common::TempDir::new("frames");
    let file = folder.0.join("middle.safetensors");
    let mut mixed = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    let some = |trainer: &mut Trainer, frames: usize| {
        for _ in 0..frames {
            host.frame(|encoder| trainer.encode(encoder, Budget::Dispatches(41)).expect("records"));
        }
    };
    some(&mut mixed, 31);
    mixed.save_blocking(&file).expect("saves");
    some(&mut mixed, 17);
    while mixed.epoch_blocking().expect("trains").is_some() {}
    assert_eq!(weights(&mixed.finish_blocking().expect("reads")), expected);

    let mut resumed = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    some(&mut resumed, 5);
    resumed.resume(&file).expect("resumes");
    train(&host, &mut resumed, |_| Budget::Dispatches(200));
    assert_eq!(weights(&resumed.try_model().expect("no error").expect("over")), expected);
    assert_eq!(host.errors(), 0);
}

/// The host submits many frames late, two in one frame, or drops them.
#[test]
fn a_host_may_submit_late_twice_or_never() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let (_, expected) = plain(&host);
    let mut trainer = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    let mut late = Vec::new();
    let mut frames = 0;
    while !progress(&mut trainer).finished {
        let mut encoder = host.encoder();
        trainer.encode(&mut encoder, Budget::Dispatches(29)).expect("records");
        frames += 1;
        assert!(frames < 50_000);
        match frames % 60 {
            // Never: dropped as an encoder, and as commands.
            7 if late.is_empty() => drop(encoder),
            8 if late.is_empty() => drop(encoder.finish()),
            // Twice in a frame, in one submission and in two.
            20..30 if late.is_empty() => {
                let mut second = host.encoder();
                trainer.encode(&mut second, Budget::Dispatches(13)).expect("records");
                if frames % 2 == 0 {
                    host.queue.submit([encoder.finish(), second.finish()]);
                } else {
                    host.queue.submit([encoder.finish()]);
                    host.queue.submit([second.finish()]);
                }
            }
            // Late: ten frames are held back.
            40..50 => late.push(encoder.finish()),
            // Several frames held back, and all dropped.
            52..55 => late.push(encoder.finish()),
            55 => {
                late.push(encoder.finish());
                late.clear();
            }
            _ => {
                let held: Vec<_> = late.drain(..).chain([encoder.finish()]).collect();
                host.queue.submit(held);
            }
        }
        host.poll();
    }
    assert_eq!(weights(&trainer.try_model().expect("no error").expect("over")), expected);
    assert_eq!(host.errors(), 0);
}

/// What cannot be made good is an error, not a wrong model.
#[test]
fn frames_left_out_or_exchanged_are_noticed() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let new = || Trainer::new(&host.engine(), &data(), small()).expect("valid");
    let record = |trainer: &mut Trainer| {
        let mut encoder = host.encoder();
        trainer.encode(&mut encoder, Budget::Dispatches(20)).expect("records");
        encoder.finish()
    };
    for exchanged in [false, true] {
        let mut trainer = new();
        let (first, second) = (record(&mut trainer), record(&mut trainer));
        host.queue.submit([second]);
        if exchanged {
            host.queue.submit([first]);
        } else {
            drop(first);
        }
        host.wait();
        let error = trainer.try_progress().expect_err("the frames were not in order");
        assert!(matches!(error, Error::Recorded(_)), "{error}");
        let mut encoder = host.encoder();
        let again = trainer.encode(&mut encoder, Budget::Dispatches(20)).expect_err("still");
        assert!(again.to_string().contains("resume_on"), "{again}");
        // As it says: there is a way on.
        trainer.resume_on(&host.engine()).expect("resumes");
        assert!(trainer.epoch_blocking().expect("trains").is_some());
    }
    // Waiting for what was never submitted would take for ever.
    let mut trainer = new();
    let held = record(&mut trainer);
    let error = trainer.epoch_blocking().expect_err("not submitted");
    assert!(error.to_string().contains("not submitted"), "{error}");
    host.queue.submit([held]);
    assert!(trainer.epoch_blocking().expect("trains").is_some());
    assert_eq!(host.errors(), 0);
}

/// The host's own mistake takes its whole frame away, and ours with it: the host is told, and the slice
/// is recorded again.
#[test]
fn a_hosts_mistake_reaches_the_host_and_costs_no_bits() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let (_, expected) = plain(&host);
    let mut trainer = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    let source = host.buffer(wgpu::BufferUsages::COPY_SRC);
    for frame in 0..30 {
        let mut encoder = host.encoder();
        trainer.encode(&mut encoder, Budget::Dispatches(25)).expect("records");
        if frame == 10 {
            // Not a buffer that can be copied to.
            encoder.copy_buffer_to_buffer(&source, 0, &source, 0, 4);
        }
        host.queue.submit([encoder.finish()]);
        host.wait();
        assert_eq!(host.errors() > 0, frame >= 10, "frame {frame}");
    }
    while trainer.epoch_blocking().expect("trains").is_some() {}
    assert_eq!(weights(&trainer.finish_blocking().expect("reads")), expected);
}

#[test]
fn two_trainers_share_a_device_and_one_is_dropped_in_the_middle() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let (_, expected) = plain(&host);
    let engine = host.engine();
    let mut first = Trainer::new(&engine, &data(), small()).expect("valid");
    let mut second = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    let mut third = Some(Trainer::new(&engine, &data(), small()).expect("valid"));
    let mut frames = 0;
    while !(progress(&mut first).finished && progress(&mut second).finished) {
        let mut encoder = host.encoder();
        first.encode(&mut encoder, Budget::Dispatches(64)).expect("records");
        if let Some(third) = &mut third {
            third.encode(&mut encoder, Budget::Dispatches(9)).expect("records");
        }
        if frames == 5 {
            // Between its recording and the submission.
            third = None;
        }
        second.encode(&mut encoder, Budget::Dispatches(23)).expect("records");
        host.queue.submit([encoder.finish()]);
        host.poll();
        frames += 1;
        assert!(frames < 20_000);
    }
    assert_eq!(weights(&first.try_model().expect("no error").expect("over")), expected);
    assert_eq!(weights(&second.try_model().expect("no error").expect("over")), expected);
    assert_eq!(host.errors(), 0);
}

/// The buffers hold what the history says, without having been read by us.
#[test]
fn curves_and_paths_are_on_the_device() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let mut trainer = Trainer::new(&host.engine(), &data(), small()).expect("valid");
    train(&host, &mut trainer, |_| Budget::Dispatches(300));
    let buffers = trainer.buffers().expect("on a device");
    assert!(
        buffers
            .network("policy")
            .expect("there")
            .weights()
            .buffer()
            .usage()
            .contains(wgpu::BufferUsages::STORAGE)
    );
    let floats = |buffer: &wgpu::Buffer| -> Vec<f32> {
        host.read(buffer).chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    };
    let (training, validation) = (floats(buffers.training), floats(buffers.validation));
    for epoch in trainer.history() {
        let last = &training[((epoch.index + 1) * buffers.points - 1) * 8..][..8];
        assert_eq!(f64::from(last[0]) / f64::from(last[4]), epoch.train["objective"]);
        let point = &validation[epoch.index * 8..][..8];
        assert_eq!(f64::from(point[0]) / f64::from(point[4]), epoch.validation.loss);
        assert_eq!(f64::from(point[3]) / f64::from(point[4]), epoch.validation.acquisitions);
    }
    let counts: Vec<u32> = floats(buffers.paths).into_iter().map(f32::to_bits).collect();
    let rows = data().sizes()[1] as u32;
    let (steps, actions) = (buffers.steps, buffers.features + 1);
    let at = |step: usize| &counts[step * actions..][..actions];
    assert!((0..steps).all(|step| at(step).iter().sum::<u32>() == rows), "{counts:?}");
    // As many questions as the evaluation counted.
    let asked: u32 = (0..steps).map(|step| at(step)[..actions - 1].iter().sum::<u32>()).sum();
    let last = trainer.history().last().expect("epochs").validation;
    assert_eq!(f64::from(asked) / f64::from(rows), last.acquisitions);
    let part = buffers.network("policy").expect("there").best();
    let weights = &floats(part.buffer())[part.offset() as usize / 4..];
    let layer = buffers.network("policy").expect("there").layers()[0];
    let best = trainer.try_model().expect("no error").expect("over").network("policy");
    assert_eq!(f64::from(weights[layer.bias]), best[0].bias[0]);
}

#[test]
fn the_cpu_engine_records_nothing() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let mut trainer = Trainer::new(&Engine::cpu(), &data(), small()).expect("valid");
    let mut encoder = host.encoder();
    let error = trainer.encode(&mut encoder, Budget::Dispatches(1)).expect_err("no device");
    assert!(error.to_string().contains("GPU engine"), "{error}");
    assert!(trainer.buffers().is_none() && trainer.try_model().expect("no error").is_none());
    assert!(!progress(&mut trainer).finished);
    while trainer.epoch_blocking().expect("trains").is_some() {}
    assert!(progress(&mut trainer).finished);
    let model = trainer.try_model().expect("no error").expect("over");
    assert_eq!(weights(&model), weights(&trainer.finish_blocking().expect("reads")));
}
