//! Tier 7: inside another application: the host's device at default limits, the host's own passes in
//! between, slices that end in the middle of a step, no blocking call of ours, no uncaptured error.

use crate::common;
use querent::data::synthetic;
use querent::nmppg::{Config, Stage, Stepper};
use querent::{Engine, wgpu};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Host {
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: Arc<AtomicUsize>,
}

impl Host {
    /// A device as an application that knows nothing of us would open it.
    fn open() -> Option<Self> {
        common::gpu()?;
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))
            .expect("common::gpu found one");
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("host"),
            required_limits: wgpu::Limits::default(),
            ..Default::default()
        }))
        .expect("default limits");
        let errors = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&errors);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            eprintln!("uncaptured: {error}");
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        Some(Self { device, queue, errors })
    }

    fn trainer(&self) -> Stepper {
        let data = synthetic::syn1(3, [300, 60, 60]).unwrap_or_else(|error| panic!("{error}"));
        let config = Config {
            policy_hidden: [16, 12],
            predictor_hidden: [16, 12],
            batch: 40,
            seed: 2,
            ..Config::new(0.02)
        };
        let engine = Engine::on(self.device.clone(), self.queue.clone());
        let mut trainer = Stepper::new(&engine, &data, config).unwrap_or_else(|error| panic!("{error}"));
        trainer.set_stage(Stage { tau_soft: 0.5, lambda: 0.01, ..Stage::default() }).expect("valid");
        trainer
    }

    fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("host frame") })
    }
}

#[test]
fn slices_in_the_hosts_frames_give_the_plain_trainers_bits() {
    let Some(host) = Host::open() else { return };
    let steps = 12;
    let mut plain = host.trainer();
    plain.steps(steps);
    let expected = plain.checkpoint_blocking().expect("reads");

    let embedded = host.trainer();
    let program = embedded.program().gpu().expect("on the host's device");
    let step = program.plan().section("step");
    // The host's own work: a texture it clears in every frame.
    let texture = host.device.create_texture(&wgpu::TextureDescriptor {
        label: Some("host target"),
        size: wgpu::Extent3d { width: 64, height: 64, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::RENDER_ATTACHMENT,
        view_formats: &[],
    });
    let view = texture.create_view(&Default::default());
    let slice = 37; // not a divisor of the step's dispatches: frames end inside steps
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
        encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("host draws"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &view,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color::GREEN),
                    store: wgpu::StoreOp::Store,
                },
            })],
            ..Default::default()
        });
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
    assert_eq!(host.errors.load(Ordering::Relaxed), 0, "uncaptured errors");
}

/// Our creation errors come back to us, and the host's own errors still reach the host.
#[test]
fn errors_go_to_whom_they_concern() {
    let Some(host) = Host::open() else { return };
    // 200 MB of table in one binding: more than the default limits allow.
    let problem = querent::Problem::ungrouped(&[1.0; 784], 2).expect("valid");
    let rows = 65_000;
    let split = querent::data::Split { x: vec![0.0; rows * 784], y: vec![0; rows] };
    let data =
        querent::data::Dataset::new(problem, split, Default::default(), Default::default()).expect("valid");
    let engine = Engine::on(host.device.clone(), host.queue.clone());
    match Stepper::new(&engine, &data, Config { horizon: Some(1), batch: 2, ..Config::new(0.1) }) {
        Err(querent::Error::Limit { buffer, .. }) => assert_eq!(buffer, "data.x"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a table of 200 MB fitted into 128 MB"),
    }
    assert_eq!(host.errors.load(Ordering::Relaxed), 0, "our error reached the host");
    let _invalid = host.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("host's mistake"),
        size: 4,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    assert_eq!(host.errors.load(Ordering::Relaxed), 1, "the host's own error was swallowed");
}
