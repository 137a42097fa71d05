//! The host: a device at default limits, a trainer on it, and a scene.

use crate::scene::{Readout, Scene};
use querent::data::synthetic;
use querent::nmppg::{Buffers, Config, Trainer};
use querent::{Budget, Engine, wgpu};
use std::collections::VecDeque;
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

/// What a unit of cost is worth in nats of loss.
const ALPHA: f64 = 0.02;

/// How much of a frame goes to training, as on the command line and on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub Option<Budget>);

impl std::str::FromStr for Share {
    type Err = String;

    /// `off`, `4ms`, `64` (dispatches) or `20M` (floating-point operations).
    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            |_| format!("`{text}` is not a budget: try `off`, `4ms`, `64` dispatches or `20M` operations");
        Ok(Self(if text == "off" {
            None
        } else if let Some(millis) = text.strip_suffix("ms") {
            Some(Budget::Millis(millis.trim().parse().map_err(|_| bad(()))?))
        } else if let Some(millions) = text.strip_suffix('M') {
            Some(Budget::Flops(millions.trim().parse::<u64>().map_err(|_| bad(()))? * 1_000_000))
        } else {
            Some(Budget::Dispatches(text.parse().map_err(|_| bad(()))?))
        }))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            None => write!(f, "no training"),
            Some(Budget::Millis(millis)) => write!(f, "{millis:.1} ms"),
            Some(Budget::Dispatches(n)) => write!(f, "{n} dispatches"),
            Some(Budget::Calls(n)) => write!(f, "{n} calls"),
            Some(Budget::Flops(n)) => write!(f, "{} M operations", n / 1_000_000),
        }
    }
}

impl Share {
    /// A larger or smaller budget of the same kind.
    pub fn scaled(self, factor: f64) -> Self {
        Self(self.0.map(|budget| match budget {
            Budget::Millis(millis) => Budget::Millis((millis * factor).clamp(0.5, 200.0)),
            Budget::Dispatches(n) => Budget::Dispatches(((n as f64 * factor) as usize).clamp(4, 10_000)),
            Budget::Calls(n) => Budget::Calls(((n as f64 * factor) as usize).clamp(4, 10_000)),
            Budget::Flops(n) => Budget::Flops(((n as f64 * factor) as u64).clamp(1_000_000, 10_000_000_000)),
        }))
    }
}

pub struct Host {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub readout: Readout,
    pub share: Share,
    pub paused: bool,
    trainer: Trainer,
    scene: Scene,
    adapter: String,
    last: Option<Instant>,
    finished: bool,
}

impl Host {
    /// The host's device, as it would be without us: default limits. Of the features, those that there
    /// are: timestamps make `Budget::Millis` exact.
    pub fn new(
        adapter: &wgpu::Adapter,
        format: wgpu::TextureFormat,
        share: Share,
        features: wgpu::Features,
    ) -> Result<Self, Error> {
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("host"),
            required_limits: wgpu::Limits::default(),
            required_features: features & adapter.features(),
            ..Default::default()
        }))?;
        let trainer = begin(&device, &queue)?;
        let scene = Scene::new(&device, &queue, format, drawn(&trainer)?, ALPHA)?;
        let readout = Readout { lines: Default::default(), times: VecDeque::new() };
        let adapter = adapter.get_info().name;
        Ok(Self {
            device,
            queue,
            readout,
            share,
            paused: false,
            trainer,
            scene,
            adapter,
            last: None,
            finished: false,
        })
    }

    /// A frame: a slice of training, then the picture, in one encoder. Gives its commands.
    pub fn frame(&mut self, target: &wgpu::TextureView) -> Result<wgpu::CommandBuffer, Error> {
        if let Some(last) = self.last.replace(Instant::now()) {
            self.readout.push(last.elapsed().as_secs_f32() * 1e3);
        }
        let mut encoder =
            self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("host frame") });
        let mut dispatches = 0;
        if let Some(budget) = self.share.0.filter(|_| !self.paused) {
            dispatches = self.trainer.encode(&mut encoder, budget)?.dispatches;
        }
        let seen = self.trainer.try_progress()?;
        self.finished = seen.finished;
        let epochs = [self.trainer.history().len(), self.trainer.epochs_at_most()];
        let state = match (self.finished, self.paused) {
            (true, _) => "done".to_string(),
            (_, true) => "paused".to_string(),
            _ => format!("step {} of {}", seen.step, seen.steps),
        };
        let best = self.trainer.best().map_or("–".into(), |best| format!("{best:.3}"));
        self.readout.lines = [
            format!(
                "Syn1, trained in this window's frames · epoch {} of {}, {state} · best objective {best}",
                epochs[0], epochs[1]
            ),
            format!(
                "budget {} (up, down; space pauses) · {dispatches} dispatches in this frame · frame {:.1} ms (median) · {}",
                self.share,
                self.readout.median(),
                self.adapter
            ),
        ];
        self.scene.draw(&self.queue, &mut encoder, target, &self.readout);
        Ok(encoder.finish())
    }

    /// Begins another training on the same device, in place of the one that was.
    pub fn begin_again(&mut self) -> Result<(), Error> {
        self.trainer = begin(&self.device, &self.queue)?;
        self.scene.show(&self.device, drawn(&self.trainer)?, ALPHA);
        self.finished = false;
        Ok(())
    }

    /// Whether the training is over.
    pub fn is_finished(&self) -> bool {
        self.finished
    }
}

/// A training on the host's device.
fn begin(device: &wgpu::Device, queue: &wgpu::Queue) -> Result<Trainer, Error> {
    let data = synthetic::syn1(0, [10_000, 1_000, 0])?.standardized();
    // Small networks and high rates: something to see within a minute on a software adapter.
    let config = Config::new(ALPHA).with(|c| {
        c.networks.policy = [32, 32];
        c.networks.predictor = [32, 32];
        c.batch = 64;
        c.schedule.policy_rate = 3e-3;
        c.schedule.predictor_rate = 1e-2;
        c.schedule.warm_up_epochs = 2;
        c.schedule.stage_epochs = 3;
        c.schedule.epoch_steps = 156;
        c.schedule.ema = 0.05;
    });
    Ok(Trainer::new(&Engine::on(device.clone(), queue.clone()), &data, config)?)
}

/// What a scene draws of a training.
fn drawn(trainer: &Trainer) -> Result<Buffers<'_>, Error> {
    Ok(trainer.buffers().ok_or("the trainer is on a device")?)
}
