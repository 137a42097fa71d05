//! A training run in slices: what computes it and why, how far it is, and what it leaves.

use crate::report::Origin;
use js_sys::{Promise, Uint32Array};
use querent::data::Dataset;
use querent::data::table::Prepared;
use querent::engine::gpu;
use querent::methods::nmppg;
use querent::methods::set::set;
use querent::policy::history::Epoch;
use querent::run::CURVE;
use querent::train::{Checkpoint, Training};
use querent::wgpu;
use querent::{Budget, Engine, Error, ErrorKind, Model, Result};
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;

/// A run.
pub struct Run {
    engine: Engine,
    why: String,
    prepared: Prepared,
    training: Box<dyn Training>,
}

impl Run {
    /// Begins a run, or goes on from a checkpoint.
    pub async fn start(
        prepared: Prepared,
        engine: &str,
        settings: &str,
        checkpoint: Option<Vec<u8>>,
    ) -> Result<Self> {
        let settings = configured(&prepared.data, settings)?;
        let (engine, why) = open(engine).await?;
        let mut training = (nmppg::ENTRY.start)(&engine, &prepared.data, settings)?;
        if let Some(bytes) = checkpoint {
            training.resume_from(Checkpoint::from_bytes(&bytes)?)?;
        }
        Ok(Self { engine, why, prepared, training })
    }

    pub fn data(&self) -> &Dataset {
        &self.prepared.data
    }

    /// What there is to know when it begins.
    pub fn begun(&self) -> Value {
        let problem = self.data().problem();
        let names: Vec<&str> = problem.features().iter().map(|feature| feature.name.as_str()).collect();
        let history: Vec<Value> = self.training.history().iter().map(told).collect();
        json!({
            "engine": self.name(), "why": self.why, "batch": self.training.batch(), "features": names,
            "epochs": self.training.epochs_at_most(), "behind": self.training.epochs_behind(),
            "steps": self.training.epoch_steps(), "history": history,
        })
    }

    /// What there is to know for the report of its model, which was trained on what is named.
    pub fn origin(&self, name: &str) -> Origin {
        let (engine, epochs, prepared) = (self.name(), self.epochs_at_most(), self.prepared.clone());
        Origin { name: name.into(), engine, epochs, prepared }
    }

    pub fn epochs_at_most(&self) -> usize {
        self.training.epochs_at_most()
    }

    /// What computes.
    pub fn name(&self) -> String {
        match self.engine.device() {
            Some((device, _)) => {
                let name = device.adapter_info().name;
                if name.is_empty() { "WebGPU".into() } else { format!("WebGPU ({name})") }
            }
            None if cfg!(target_feature = "simd128") => "CPU, WebAssembly with SIMD".into(),
            None => "CPU, WebAssembly".into(),
        }
    }

    /// Goes on for about so many milliseconds. A lost device costs what was done since the last checkpoint, no more: the CPU
    /// goes on.
    pub fn step(&mut self, millis: f64) -> Result<Value> {
        let mut lost = None;
        let done = self.training.advance(Budget::Millis(millis)).and_then(|_| self.training.try_progress());
        let seen = match done {
            Err(error) if error.kind() == ErrorKind::DeviceLost => {
                self.engine = Engine::cpu();
                self.training.resume_on(&self.engine)?;
                self.why = format!("{}: the CPU goes on from the last epoch that was kept", error.message());
                lost = Some(self.begun());
                self.training.try_progress()?
            }
            done => done?,
        };
        Ok(json!({
            "epoch": seen.epoch.as_ref().map(|epoch| {
                let mut told = told(epoch);
                told["line"] = epoch.headline(self.training.best()).into();
                told
            }),
            "finished": seen.finished,
            "step": seen.step, "steps": seen.steps,
            "behind": self.training.epochs_behind(), "epochs": self.training.epochs_at_most(),
            "done": self.training.history().len(), "again": lost,
            "checkpoints": seen.checkpoints,
        }))
    }

    /// Is there when the device has done what it was given.
    pub fn submitted(&self) -> impl Future<Output = ()> + use<> {
        self.engine.submitted()
    }

    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.training.last_checkpoint()
    }

    /// What was asked on the validation rows of the last epoch.
    pub fn paths(&self) -> Promise {
        if let Some(counts) = self.training.paths() {
            return Promise::resolve(&JsValue::from(Uint32Array::from(&counts[..])));
        }
        match (self.engine.device(), self.training.buffers()) {
            (Some((device, queue)), Some(buffers)) => fetched(device, queue, buffers.paths),
            _ => Promise::resolve(&JsValue::UNDEFINED),
        }
    }

    /// The model of a run that is over.
    pub fn finish(&mut self) -> Result<Model> {
        let model = self.training.try_model()?;
        let model = model.ok_or_else(|| Error::Config("the run is not over yet".into()))?;
        model.with_encoding(self.prepared.encoding.clone())?.with_curve(&self.prepared.data, CURVE)
    }
}

/// The settings for a table: NM-PPG's own, then what was said, a line each.
fn configured(data: &Dataset, said: &str) -> Result<Value> {
    let entry = &nmppg::ENTRY;
    let defaults = (entry.defaults)(data);
    let mut settings = defaults.clone();
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // α is one number, a range of two, or "auto", whatever it was.
        match line.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some(("alpha", value)) => {
                settings["alpha"] = serde_json::from_str(value)
                    .map_err(|error| Error::Config(format!("cannot set {line}: {error}")))?;
            }
            _ => set(&mut settings, line, entry.renamed)?,
        }
    }
    let settings = (entry.settle)(&defaults, settings)?;
    (entry.check)(data, &settings)?;
    Ok(settings)
}

/// What computes, and why.
async fn open(wish: &str) -> Result<(Engine, String)> {
    if wish == "cpu" {
        return Ok((Engine::cpu(), "as you chose".into()));
    }
    let found = gpu::adapters().await;
    let why = match found.first() {
        None => "this browser gives the page no WebGPU adapter",
        Some(adapter) if wish != "gpu" && !adapter.is_hardware() => {
            "the browser's WebGPU adapter is a software one, which is slower"
        }
        Some(_) => {
            let why = if wish == "gpu" { "as you chose" } else { "the browser has a WebGPU adapter" };
            return Ok((Engine::gpu().await?, why.into()));
        }
    };
    if wish == "gpu" {
        return Err(Error::NoAdapter(why.into()));
    }
    Ok((Engine::cpu(), why.into()))
}

/// An epoch for the page.
fn told(epoch: &Epoch) -> Value {
    let passes: Vec<Value> = epoch
        .passes
        .iter()
        .map(|pass| json!({ "alpha": pass.alpha, "cost": pass.evaluation.cost, "accuracy": pass.evaluation.accuracy }))
        .collect();
    json!({
        "index": epoch.index, "title": epoch.title(), "best": epoch.best, "judged": epoch.judged,
        "loss": epoch.validation.loss, "accuracy": epoch.validation.accuracy, "cost": epoch.validation.cost,
        "passes": passes, "seconds": epoch.seconds,
    })
}

/// The words of a buffer, once the device has brought them.
fn fetched(device: &wgpu::Device, queue: &wgpu::Queue, from: &wgpu::Buffer) -> Promise {
    let staging = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("querent studio paths"),
        size: from.size(),
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(from, 0, &staging, 0, from.size());
    queue.submit([encoder.finish()]);
    Promise::new(&mut |resolve, _| {
        let mapped = staging.clone();
        staging.map_async(wgpu::MapMode::Read, .., move |result| {
            let view = result.ok().and_then(|()| mapped.get_mapped_range(..).ok());
            let words = view.map(|view| {
                let words =
                    view.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
                Uint32Array::from(&words.collect::<Vec<u32>>()[..])
            });
            // A promise that cannot be resolved is of a page that is gone.
            let _ = resolve.call1(&JsValue::UNDEFINED, &words.map_or(JsValue::UNDEFINED, Into::into));
        });
    })
}
