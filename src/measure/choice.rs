//! Which engine trains a problem fastest: a few steps on each tell.

use super::rate::rate_blocking;
use super::remembered::Remembered;
use crate::data::Dataset;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::train::Training;

/// Seconds of training on each engine, about.
const SECONDS: f64 = 0.3;
/// Rows of the table that are enough to measure on: what a step takes does not depend on how many there are.
const ROWS: [usize; 3] = [16_384, 256, 0];

/// Begins a training run on an engine and some rows.
pub type Start<'a> = dyn Fn(&Engine, &Dataset) -> Result<Box<dyn Training>> + 'a;

/// How fast an engine trains.
#[derive(Clone, Debug)]
pub struct Speed {
    /// The engine.
    pub engine: Engine,
    /// Training instances a second.
    pub instances_per_second: f64,
    /// Whether it was measured before, and not now.
    pub remembered: bool,
}

/// An engine that was chosen, and why.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The fastest.
    pub engine: Engine,
    /// What was measured, the fastest first; nothing where there was only one engine.
    pub speeds: Vec<Speed>,
    /// Engines that cannot train this, and why.
    pub refused: Vec<(Engine, String)>,
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.engine)?;
        for (index, speed) in self.speeds.iter().enumerate() {
            let [begin, end] = if index == 0 { [": ", " instances a second"] } else { ["; ", ""] };
            let who = if index == 0 { String::new() } else { format!("{}: ", speed.engine) };
            let when = if speed.remembered { ", measured before" } else { "" };
            write!(f, "{begin}{who}{:.0}{end}{when}", speed.instances_per_second)?;
        }
        self.refused.iter().try_for_each(|(engine, why)| write!(f, "; {engine} cannot: {why}"))
    }
}

/// Speeds that were measured before, and what they are of besides the engine: a problem's shape and settings.
pub type Memory<'a> = (&'a mut Remembered, &'a str);

/// What an engine is to those who remember how fast it was: another driver or another number of threads is another one.
fn name(engine: &Engine) -> String {
    let driver = engine.device().map(|(device, _)| device.adapter_info());
    let driver = driver.map(|info| format!(" {} {}", info.driver, info.driver_info));
    format!("querent {} on {engine}{}", env!("CARGO_PKG_VERSION"), driver.unwrap_or_default())
}

/// How fast an engine trains, if it was not measured before.
///
/// # Errors
/// The engine cannot train this, or its device was lost.
pub fn speed_blocking(
    engine: &Engine,
    data: &Dataset,
    start: &Start,
    memory: Option<&mut Memory>,
) -> Result<Speed> {
    let key = memory.as_ref().map(|(_, what)| format!("{}; {what}", name(engine)));
    let known = memory.as_ref().zip(key.as_ref()).and_then(|((speeds, _), key)| speeds.get(key));
    if let Some(instances_per_second) = known {
        return Ok(Speed { engine: engine.clone(), instances_per_second, remembered: true });
    }
    let mut training = start(engine, data)?;
    let batch = training.batch() as f64;
    let instances_per_second = batch * rate_blocking(SECONDS, |steps| training.rehearse_blocking(steps))?;
    if let Some(((speeds, _), key)) = memory.zip(key) {
        // What is not kept is measured again the next time.
        if let Err(error) = speeds.keep(key, instances_per_second) {
            log::warn!("a measured speed is not kept: {error}");
        }
    }
    Ok(Speed { engine: engine.clone(), instances_per_second, remembered: false })
}

/// The rows that speeds are measured on.
///
/// # Errors
/// None that a table has which is one.
pub fn few_rows(data: &Dataset) -> Result<Dataset> {
    data.thinned(ROWS)
}

/// The fastest of some engines for a training run: a few steps of it on each. One alone is taken as it is.
///
/// # Errors
/// None of them can train this: why the last of them cannot.
pub fn fastest_blocking(
    engines: &[Engine],
    data: &Dataset,
    start: &Start,
    mut memory: Option<Memory>,
) -> Result<Choice> {
    if let [only] = engines {
        return Ok(Choice { engine: only.clone(), speeds: Vec::new(), refused: Vec::new() });
    }
    let few = few_rows(data)?;
    let (mut speeds, mut refused) = (Vec::new(), Vec::new());
    let mut last = Error::Config("there is no engine to choose from".into());
    for engine in engines {
        match speed_blocking(engine, &few, start, memory.as_mut()) {
            Ok(speed) => speeds.push(speed),
            Err(error) => {
                refused.push((engine.clone(), error.to_string()));
                last = error;
            }
        }
    }
    speeds.sort_by(|a, b| b.instances_per_second.total_cmp(&a.instances_per_second));
    match speeds.first() {
        Some(fastest) => Ok(Choice { engine: fastest.engine.clone(), speeds, refused }),
        None => Err(last),
    }
}

impl Engine {
    /// The engine that trains a problem fastest: the hardware adapter, if there is one, or the CPU, whichever does more
    /// steps of this training in a second. Takes a second or two where there is a choice. Software drivers are only taken
    /// when asked for ([`Engine::gpu_blocking`]).
    ///
    /// # Errors
    /// What beginning the training has.
    ///
    /// # Examples
    /// ```
    /// use querent::{Engine, data::synthetic, methods::nmppg::{Config, Trainer}};
    ///
    /// # fn main() -> querent::Result<()> {
    /// let data = synthetic::syn1(0, [2_000, 500, 500])?.standardized();
    /// let config = Config::new(0.02);
    /// let choice = Engine::auto_for_blocking(&data, &|engine, rows| {
    ///     Ok(Box::new(Trainer::new(engine, rows, config.clone())?))
    /// })?;
    /// println!("{choice}");
    /// let trainer = Trainer::new(&choice.engine, &data, config)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn auto_for_blocking(data: &Dataset, start: &Start) -> Result<Choice> {
        let guess = Self::auto_blocking()?;
        let engines = if guess.device().is_some() { vec![guess, Self::cpu()] } else { vec![guess] };
        let choice = fastest_blocking(&engines, data, start, None)?;
        log::info!("engine: {choice}");
        Ok(choice)
    }
}
