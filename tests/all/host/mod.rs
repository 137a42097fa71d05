//! An application that knows nothing of us but lends us its device.
#![allow(dead_code)] // a test that stands beside `all` uses its part

use querent::data::{Dataset, synthetic};
use querent::engine::kernels::Target;
use querent::nmppg::Config;
use querent::train::Recorded;
use querent::{Engine, wgpu};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

pub struct Host {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    errors: Arc<AtomicUsize>,
    view: wgpu::TextureView,
    // Kept, as what an engine has compiled is its own: a software adapter takes seconds for all of it.
    engine: OnceLock<Engine>,
    fused: OnceLock<Engine>,
}

/// How long a host goes on with a run that is to end. Frames here are not held back by a display: one that had nothing
/// to record, as a method is at work beside the device or the device is behind, rests a moment and is counted apart.
/// Otherwise a slow machine would see thousands of empty frames and call the run endless.
#[derive(Default)]
pub struct Patience {
    frames: usize,
    rests: usize,
}

impl Patience {
    pub fn after(&mut self, recorded: &Recorded) {
        if recorded.dispatches == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            self.rests += 1;
        } else {
            self.frames += 1;
        }
        assert!(self.frames < 20_000 && self.rests < 600_000, "the run never ended");
    }
}

impl Host {
    /// A device at default limits, with features if the adapter has them; `None` where there is no adapter.
    pub fn open(features: wgpu::Features) -> Option<Self> {
        crate::common::gpu()?;
        Some(Self::with(wgpu::InstanceDescriptor::new_without_display_handle(), features))
    }

    pub fn with(instance: wgpu::InstanceDescriptor, features: wgpu::Features) -> Self {
        let instance = wgpu::Instance::new(instance);
        let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))
            .expect("an adapter was found before");
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("host"),
            required_limits: wgpu::Limits::default(),
            required_features: features & adapter.features(),
            ..Default::default()
        }))
        .expect("default limits");
        let errors = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&errors);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            eprintln!("uncaptured: {error}");
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        let texture = device.create_texture(&wgpu::TextureDescriptor {
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
        Self { device, queue, errors, view, engine: OnceLock::new(), fused: OnceLock::new() }
    }

    pub fn engine(&self) -> Engine {
        self.engine.get_or_init(|| Engine::on(self.device.clone(), self.queue.clone())).clone()
    }

    /// The engine as it is on a GPU: several calls are one dispatch.
    pub fn fused(&self) -> Engine {
        let made = || Engine::on_as(self.device.clone(), self.queue.clone(), Target::Gpu);
        self.fused.get_or_init(made).clone()
    }

    pub fn has_timestamps(&self) -> bool {
        self.device.features().contains(wgpu::Features::TIMESTAMP_QUERY)
    }

    pub fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("host frame") })
    }

    /// The host's own pass.
    pub fn draw(&self, encoder: &mut wgpu::CommandEncoder) {
        encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("host draws"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &self.view,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color::GREEN),
                    store: wgpu::StoreOp::Store,
                },
            })],
            ..Default::default()
        });
    }

    /// A whole frame.
    pub fn frame<R>(&self, record: impl FnOnce(&mut wgpu::CommandEncoder) -> R) -> R {
        let mut encoder = self.encoder();
        let result = record(&mut encoder);
        self.draw(&mut encoder);
        self.queue.submit([encoder.finish()]);
        self.poll();
        result
    }

    /// Looks what is done, without waiting.
    pub fn poll(&self) {
        // A device that is lost has nothing to say.
        let _ = self.device.poll(wgpu::PollType::Poll);
    }

    /// Waits for everything.
    pub fn wait(&self) {
        let _ = self.device.poll(wgpu::PollType::wait_indefinitely());
    }

    /// Errors that reached the host.
    pub fn errors(&self) -> usize {
        self.errors.load(Ordering::Relaxed)
    }

    pub fn buffer(&self, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("host buffer"),
            size: 16,
            usage,
            mapped_at_creation: false,
        })
    }

    /// The bytes of a buffer, by the host's own means.
    pub fn read(&self, buffer: &wgpu::Buffer) -> Vec<u8> {
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("host readback"),
            size: buffer.size(),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = self.encoder();
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |result| result.expect("maps"));
        self.wait();
        staging.get_mapped_range(..).expect("mapped").to_vec()
    }
}

/// A table of some hundred rows.
pub fn data() -> Dataset {
    synthetic::syn1(3, [240, 100, 40]).unwrap_or_else(|error| panic!("{error}")).standardized()
}

/// A run of seconds, with a warm-up, two stages and shorter horizons.
pub fn small() -> Config {
    Config::new(0.02).with(|c| {
        c.networks.policy = [12, 12];
        c.networks.predictor = [12, 12];
        c.batch = 40;
        c.schedule.temperatures = vec![0.8, 0.2];
        c.schedule.warm_up_epochs = 1;
        c.schedule.stage_epochs = 2;
        c.schedule.epoch_steps = 18;
        c.schedule.ema = 0.1;
        c.seed = 4;
    })
}
