//! `--engine`: which engine computes. Where there is a hardware adapter, `auto` measures a few steps of the run on it and on
//! the CPU, and whether larger batches would be faster there. Speeds are kept in the user's cache folder.

use super::aim::Aim;
use super::{Args, settings};
use crate::commands::{Failure, Talk, say};
use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};
use querent::Engine;
use querent::data::Dataset;
use querent::measure::{Choice, Remembered, fastest_blocking, few_rows, speed_blocking};
use querent::methods::Entry;
use serde_json::Value;
use std::path::PathBuf;

/// With `software` in it, `auto` considers software drivers as well: to try the choice where there is no other adapter.
const CONSIDERED: &str = "QUERENT_AUTO";
/// Speeds that were measured, in the user's cache folder.
const FILE: &str = "querent/speeds.json";
/// A larger batch is taken if it trains so many times as many instances a second.
const GAIN: f64 = 1.25;
/// And if the training rows are so many times as many: what a batch is drawn from must still be more than itself.
const BATCHES: usize = 20;

/// The engines' names.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// A hardware GPU if there is one (`train`: and it is faster), else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU, also a software one.
    Gpu,
}

fn considers_software() -> bool {
    std::env::var(CONSIDERED).is_ok_and(|value| value == "software")
}

impl EngineName {
    /// The engine; `auto` takes a hardware GPU if there is one, as nothing is known yet that could be measured.
    ///
    /// # Errors
    /// There is none of that kind.
    pub fn open(self) -> querent::Result<Engine> {
        match self {
            Self::Auto if considers_software() => Engine::gpu_blocking(),
            Self::Auto => Engine::auto_blocking(),
            Self::Cpu => Ok(Engine::cpu()),
            Self::Gpu => Engine::gpu_blocking(),
        }
    }
}

/// What is to be trained, for those who measure it.
pub struct Trained<'a> {
    pub args: &'a Args,
    pub talk: Talk,
    pub entry: &'static Entry,
    pub data: &'a Dataset,
    pub aim: &'a Aim,
}

impl Trained<'_> {
    /// The settings, with further assignments.
    fn settings(&self, changes: &[String]) -> querent::Result<Value> {
        let args = Args { set: [changes, &self.args.set].concat(), ..self.args.clone() };
        settings(&args, self.entry, self.data, self.aim, self.args.seeds[0])
    }

    /// The opened engine, or with `auto` the CPU's where that is faster; and an assignment of a larger batch if that is
    /// faster still on the opened one, which is taken then. Says so.
    ///
    /// # Errors
    /// What beginning the training has.
    pub fn fastest_with_batch(&self, opened: Engine) -> Result<(Engine, Option<String>), Failure> {
        let Some(choice) = self.measured(&opened)? else { return Ok((opened, None)) };
        Ok(match self.larger_batch(&opened, &choice)? {
            Some(batch) => (opened, Some(batch)),
            None => (choice.engine, None),
        })
    }

    /// A few steps on the opened engine and on the CPU, if there is anything to choose.
    fn measured(&self, opened: &Engine) -> Result<Option<Choice>, Failure> {
        if self.args.engine != EngineName::Auto || opened.device().is_none() {
            return Ok(None);
        }
        let settings = self.settings(&[])?;
        let what = self.described(&settings);
        let mut speeds = remembered();
        let start = |engine: &Engine, rows: &Dataset| (self.entry.start)(engine, rows, settings.clone());
        let memory = speeds.as_mut().map(|speeds| (speeds, what.as_str()));
        let choice = fastest_blocking(&[opened.clone(), Engine::cpu()], self.data, &start, memory)?;
        let kept = speeds.filter(|_| choice.speeds.iter().any(|speed| speed.remembered));
        let kept = kept.map(|speeds| format!(" (remove {} to measure again)", speeds.path().display()));
        say(self.talk, format_args!("engine: {choice}{}", kept.unwrap_or_default()));
        Ok(Some(choice))
    }

    /// An assignment of a larger batch, if a GPU gains enough by it: says so.
    fn larger_batch(&self, gpu: &Engine, choice: &Choice) -> Result<Option<String>, Failure> {
        // A run that goes on has its batch.
        let is_free = !said(self.args, "batch") && is_gpu(gpu) && !self.args.resume;
        let (Some(batch), true) = ((self.entry.large_batch)(self.data), is_free) else { return Ok(None) };
        let Some(best) = choice.speeds.first().map(|speed| speed.instances_per_second) else {
            return Ok(None);
        };
        if self.data.sizes()[0] < BATCHES * batch {
            return Ok(None);
        }
        let larger = format!("batch={batch}");
        let settings = self.settings(std::slice::from_ref(&larger))?;
        let what = self.described(&settings);
        let mut speeds = remembered();
        let start = |engine: &Engine, rows: &Dataset| (self.entry.start)(engine, rows, settings.clone());
        let mut memory = speeds.as_mut().map(|speeds| (speeds, what.as_str()));
        let large = match speed_blocking(gpu, &few_rows(self.data)?, &start, memory.as_mut()) {
            Ok(speed) => speed.instances_per_second,
            // What does not fit is no gain.
            Err(error) => {
                log::info!("{larger} is not taken: {error}");
                return Ok(None);
            }
        };
        let gains = large >= GAIN * best;
        let verdict = if gains { "taken, with the rates that fit" } else { "not taken" };
        say(self.talk, format_args!("  {larger} on {gpu}: {large:.0} instances a second: {verdict}"));
        Ok(gains.then_some(larger))
    }

    /// What a speed depends on besides the engine. Seeds and trade-offs are other numbers for the same work.
    fn described(&self, settings: &Value) -> String {
        let mut settings = settings.clone();
        if let Value::Object(fields) = &mut settings {
            fields.retain(|name, value| name != "seed" && (name != "alpha" || !value.is_number()));
        }
        let problem = self.data.problem();
        let (features, columns, classes) =
            (problem.features().len(), problem.columns(), problem.classes().len());
        format!(
            "{}; {features} features in {columns} columns, {classes} classes; {settings}",
            self.entry.name
        )
    }
}

/// Whether somebody has decided on a setting, by its last name.
pub(super) fn said(args: &Args, name: &str) -> bool {
    let names = args.set.iter().map(|assignment| assignment.split('=').next().unwrap_or_default().trim());
    names.into_iter().any(|said| said.rsplit('.').next() == Some(name))
}

/// Whether an engine is on a GPU: a software driver has cores enough for a small batch.
fn is_gpu(engine: &Engine) -> bool {
    let is_software =
        |device: &querent::wgpu::Device| device.adapter_info().device_type == querent::wgpu::DeviceType::Cpu;
    engine.device().is_some_and(|(device, _)| considers_software() || !is_software(device))
}

/// The speeds that were measured before; nothing is kept where there is no place for it.
fn remembered() -> Option<Remembered> {
    Some(Remembered::open(cache_file()?))
}

fn cache_file() -> Option<PathBuf> {
    Some(choose_native_strategy().ok()?.cache_dir().join(FILE))
}
