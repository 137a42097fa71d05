//! Tier 7: inside another application: the host's device at default limits, the host's own passes in
//! between, slices that end in the middle of a step, no blocking call of ours, no uncaptured error.

use crate::host::Host;
use querent::data::synthetic;
use querent::nmppg::{Config, Stage, Stepper};
use querent::wgpu;

fn trainer(host: &Host) -> Stepper {
    let data = synthetic::syn1(3, [300, 60, 60]).unwrap_or_else(|error| panic!("{error}"));
    let config = Config::new(0.02).with(|c| {
        c.networks.policy = [16, 12];
        c.networks.predictor = [16, 12];
        c.batch = 40;
        c.seed = 2;
    });
    let mut trainer = Stepper::new(&host.engine(), &data, config).unwrap_or_else(|error| panic!("{error}"));
    trainer.set_stage(Stage { tau_soft: 0.5, lambda: 0.01, ..Stage::default() }).expect("valid");
    trainer
}

#[test]
fn slices_in_the_hosts_frames_give_the_plain_trainers_bits() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    let steps = 12;
    let mut plain = trainer(&host);
    plain.steps(steps);
    let expected = plain.checkpoint_blocking().expect("reads");

    let embedded = trainer(&host);
    let program = embedded.program().gpu().expect("on the host's device");
    let step = crate::common::section(program.plan(), "step");
    let slice = 31; // not a divisor of the step's dispatches: frames end inside steps
    assert!(!step.len().is_multiple_of(slice));
    let (mut at, mut done) = (step.start, 0);
    while done < steps {
        let mut encoder = host.encoder();
        let mut left = slice;
        while left > 0 && done < steps {
            let end = (at + left).min(step.end);
            program.encode(&mut encoder, at..end);
            left -= end - at;
            at = end;
            if at == step.end {
                at = step.start;
                done += 1;
            }
        }
        host.draw(&mut encoder);
        host.queue.submit([encoder.finish()]);
    }
    // The host polls when it likes; a readback is there when its work is done, and not before.
    let metrics = program.plan().find("metrics").expect("declared");
    let mut encoder = host.encoder();
    let readback = program.encode_readback(&mut encoder, &[metrics]);
    assert!(readback.try_take().expect("no error").is_none(), "there before it was submitted");
    host.queue.submit([encoder.finish()]);
    let mut polls = 0;
    while readback.try_take().expect("no error").is_none() {
        host.device.poll(wgpu::PollType::Poll).expect("polls");
        polls += 1;
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(polls < 60_000, "the readback never arrived");
    }
    assert_eq!(embedded.checkpoint_blocking().expect("reads"), expected);
    assert_eq!(host.errors(), 0, "uncaptured errors");
}

/// Our creation errors come back to us, and the host's own errors still reach the host.
#[test]
fn errors_go_to_whom_they_concern() {
    let Some(host) = Host::open(wgpu::Features::empty()) else { return };
    // 200 MB of table in one binding: more than the default limits allow.
    let problem = querent::Problem::ungrouped(&[1.0; 784], 2).expect("valid");
    let rows = 65_000;
    let split = querent::data::Split { x: vec![0.0; rows * 784], y: vec![0; rows] };
    let data =
        querent::data::Dataset::new(problem, split, Default::default(), Default::default()).expect("valid");
    match Stepper::new(&host.engine(), &data, Config { horizon: Some(1), batch: 2, ..Config::new(0.1) }) {
        Err(querent::Error::Limit { buffer, .. }) => assert_eq!(buffer, "data.x"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a table of 200 MB fitted into 128 MB"),
    }
    assert_eq!(host.errors(), 0, "our error reached the host");
    let _invalid = host.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("host's mistake"),
        size: 4,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    assert_eq!(host.errors(), 1, "the host's own error was swallowed");
}
