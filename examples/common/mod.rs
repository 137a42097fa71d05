//! What the training examples share: flags, progress, results, pictures.
#![allow(dead_code)] // each example uses its part

mod progress;
mod range;
pub mod sweep;

use clap::{Parser, ValueEnum};
use querent::data::Dataset;
use querent::data::Part;
use querent::nmppg::{Alpha, Config, Trainer, reference_blocking};
use querent::policy::evaluate::{Summary, Traces};
use querent::policy::history::{Epoch, Phase};
use querent::{Engine, Error, Result, files, report};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Flags of every training example.
#[derive(Clone, Debug, Parser)]
pub struct Flags {
    /// Train for one α alone, what a unit of cost is worth in nats of loss, instead of a range.
    #[arg(long, conflicts_with_all = ["range", "at"])]
    pub alpha: Option<f64>,
    /// Train one model for all α between these two [default: the range that makes a difference].
    #[arg(long, value_name = "LO,HI", value_parser = ends)]
    pub range: Option<[f64; 2]>,
    /// Show what the model does at each of these α [default: six of the range].
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub at: Option<Vec<f64>>,
    /// Seed of the data, the weights and all noise.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Which engine: auto takes a hardware GPU if there is one.
    #[arg(long, value_enum, default_value = "auto")]
    pub engine: Which_,
    /// Epochs of each stage, at most.
    #[arg(long)]
    pub epochs: Option<usize>,
    /// A tenth of the data and a few epochs: to see that it runs, not what it can do.
    #[arg(long)]
    pub quick: bool,
    /// Rows to test on, freshly drawn.
    #[arg(long, default_value_t = 10_000)]
    pub test_size: usize,
    /// Where the model, the history and the pictures go [default: runs/NAME].
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Also write the results as JSON.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Continue the run, or the sweep, whose checkpoints are in the output folder.
    #[arg(long)]
    pub resume: bool,
    /// Train at each of these α and seeds instead, and draw the cost–performance curve.
    #[arg(long, value_delimiter = ',', num_args = 0.., default_missing_value = "0.005,0.01,0.02,0.05")]
    pub sweep: Option<Vec<f64>>,
    /// Seeds, where one run after the other is made [default of a sweep: 0,1,2].
    #[arg(long, value_delimiter = ',')]
    pub seeds: Option<Vec<u64>>,
    /// Change a setting of the run, as `--set schedule.stage_epochs=3`, or `--set stage_epochs=3`, as only one has that
    /// name: any field of `nmppg::Config`, its value as JSON.
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Which_ {
    Auto,
    Cpu,
    Gpu,
}

/// Tells a context by an instance's raw row.
pub type Context = (String, Box<dyn Fn(&[f32]) -> bool>);

/// More numbers for the table and the JSON, from the raw test rows and what was done with them.
pub type Extra = Box<dyn Fn(&Dataset, &Traces) -> Vec<(&'static str, f64)>>;

/// A synthetic task.
pub struct Task {
    /// The folder's name.
    pub name: &'static str,
    /// The pictures' title.
    pub title: String,
    /// Makes the raw data: seed and split sizes.
    pub make: Box<dyn Fn(u64, [usize; 3]) -> Result<Dataset>>,
    /// Split sizes without the test rows.
    pub sizes: [usize; 2],
    /// Contexts whose paths are shown side by side.
    pub contexts: Vec<Context>,
    /// The features one of which should be asked for first.
    pub first: std::ops::Range<usize>,
    /// More numbers.
    pub extra: Extra,
}

/// What one run gave.
pub struct Outcome {
    pub summary: Summary,
    pub seconds: f64,
    pub history: Vec<Epoch>,
    pub first_action_share: f64,
    pub extra: Vec<(&'static str, f64)>,
}

impl Flags {
    pub fn engine(&self) -> Result<Engine> {
        match self.engine {
            Which_::Auto => Engine::auto_blocking(),
            Which_::Cpu => Ok(Engine::cpu()),
            Which_::Gpu => Engine::gpu_blocking(),
        }
    }

    /// The α of runs that have only one.
    pub fn one(&self) -> f64 {
        self.alpha.unwrap_or(0.02)
    }

    pub fn config(&self, alpha: impl Into<Alpha>, seed: u64) -> Result<Config> {
        let mut config = Config { seed, ..Config::new(alpha) };
        if self.quick {
            let s = &mut config.schedule;
            (s.warm_up_epochs, s.stage_epochs, s.epoch_steps) = (1, 1, 40);
            // So few steps that the usual moving average would still be at the initial weights.
            s.ema = 0.05;
        }
        if let Some(epochs) = self.epochs {
            config.schedule.stage_epochs = epochs;
        }
        let before = config.clone();
        self.set.iter().try_for_each(|change| config.set(change))?;
        Ok(config.for_batch(&before))
    }

    pub fn folder(&self, task: &Task) -> PathBuf {
        self.out.clone().unwrap_or_else(|| Path::new("runs").join(task.name))
    }
}

impl Task {
    /// The raw and the standardized data.
    pub fn data(&self, flags: &Flags, seed: u64) -> Result<[Dataset; 2]> {
        let tenth = |n: usize| if flags.quick { n / 10 } else { n };
        let raw = (self.make)(seed, [tenth(self.sizes[0]), tenth(self.sizes[1]), flags.test_size])?;
        let standardized = raw.clone().standardized();
        Ok([raw, standardized])
    }

    /// Trains once and evaluates on the test rows. With a folder, leaves the model, the history, the
    /// pictures and a checkpoint there.
    pub fn run(
        &self,
        engine: &Engine,
        flags: &Flags,
        config: Config,
        folder: Option<&Path>,
    ) -> Result<Outcome> {
        let alpha = config.alpha.one().unwrap_or_default();
        let [raw, data] = self.data(flags, config.seed)?;
        let mut trainer = Trainer::new(engine, &data, config)?;
        let checkpoint = folder.map(|folder| folder.join("checkpoint.safetensors"));
        if let Some(path) = checkpoint.as_ref().filter(|_| flags.resume) {
            // A sweep that was interrupted has runs that had not begun.
            if flags.sweep.is_none() || path.exists() {
                trainer.resume(path)?;
            }
            files::clear_remains(path);
        }
        progress::train(engine, &mut trainer, checkpoint.as_deref())?;
        let model = trainer.finish_blocking()?;
        let seconds = trainer.history().last().map_or(0.0, |epoch| epoch.seconds);
        let traces = trainer.stepper_mut().traces_blocking(Part::Test)?;
        let summary = traces.summary(data.problem(), &data.splits()[2].y, alpha);
        if let Some(folder) = folder {
            model.save(folder.join("model.safetensors"))?;
            files::write_atomically(&folder.join("history.csv"), history_csv(trainer.history()).as_bytes())?;
            let title = format!("{}, α = {alpha}", self.title);
            report::save(&report::dynamics(&title, trainer.history()), folder.join("dynamics"))?;
            let panels = self.panels(&raw, &traces);
            report::save(&report::paths(&title, &panels), folder.join("paths"))?;
        }
        Ok(Outcome {
            first_action_share: summary.first_actions[self.first.clone()].iter().sum(),
            extra: (self.extra)(&raw, &traces),
            history: trainer.history().to_vec(),
            seconds,
            summary,
        })
    }

    fn panels(&self, raw: &Dataset, traces: &Traces) -> Vec<report::PathPanel> {
        let columns = raw.problem().columns();
        let row = |instance: usize| &raw.splits()[2].x[instance * columns..][..columns];
        let names: Vec<String> =
            raw.problem().features().iter().map(|feature| feature.name.clone()).collect();
        let rows: Vec<String> = names.into_iter().chain(["STOP".to_string()]).collect();
        let mut panels = Vec::new();
        for (name, holds) in &self.contexts {
            let (shares, instances) = traces.shares(|instance| holds(row(instance)));
            panels.push(report::PathPanel { name: name.clone(), rows: rows.clone(), shares, instances });
        }
        panels
    }
}

fn history_csv(history: &[Epoch]) -> String {
    let mut text = String::from(
        "epoch,phase,tau_soft,lambda,train_objective,train_loss_and_cost,train_entropy,prediction_loss,\
         validation_objective,validation_loss,validation_accuracy,validation_cost,validation_acquisitions,best,seconds\n",
    );
    for e in history {
        let phase = match e.phase {
            Phase::WarmUp => "warm-up".to_string(),
            Phase::Stage(stage) => format!("stage {}", stage + 1),
        };
        let (t, v) = (&e.train, &e.validation);
        text.push_str(&format!(
            "{},{phase},{},{},{},{},{},{},{},{},{},{},{},{},{:.3}\n",
            e.index,
            e.settings.get("tau_soft").unwrap_or(&0.0),
            e.settings.get("lambda").unwrap_or(&0.0),
            t["objective"],
            t["loss_and_cost"],
            t["entropy"],
            t["prediction_loss"],
            v.objective,
            v.loss,
            v.accuracy,
            v.cost,
            v.acquisitions,
            e.best,
            e.seconds
        ));
    }
    text
}

fn table(task: &Task, flags: &Flags, outcome: &Outcome, reference: &querent::nmppg::Evaluation) {
    let s = &outcome.summary;
    println!("\n{} on {} test rows, α = {}", task.title, s.instances, flags.one());
    let mut rows = vec![
        ("objective (loss + α·cost)".to_string(), format!("{:.4}", s.objective)),
        ("loss (nats)".into(), format!("{:.4}", s.loss)),
        ("accuracy".into(), format!("{:.4}", s.accuracy)),
        ("macro-F1".into(), format!("{:.4}", s.macro_f1)),
        ("cost".into(), format!("{:.3}", s.cost)),
        ("acquisitions".into(), format!("{:.3}", s.acquisitions)),
        ("first action as it should be".into(), format!("{:.4}", outcome.first_action_share)),
        ("all features: loss".into(), format!("{:.4}", reference.loss)),
        ("all features: accuracy".into(), format!("{:.4}", reference.accuracy)),
        ("training (s)".into(), format!("{:.1}", outcome.seconds)),
        ("epochs".into(), outcome.history.len().to_string()),
    ];
    rows.extend(outcome.extra.iter().map(|(name, value)| (name.replace('_', " "), format!("{value:.4}"))));
    for (name, value) in rows {
        println!("  {name:32} {value:>10}");
    }
}

fn json(
    task: &Task,
    flags: &Flags,
    engine: &Engine,
    outcome: &Outcome,
    reference: &querent::nmppg::Evaluation,
) -> String {
    let mut value = serde_json::json!({
        "task": task.name,
        "alpha": flags.one(),
        "seed": flags.seed,
        "first_action_share": outcome.first_action_share,
        "seconds": outcome.seconds,
        "epochs": outcome.history.len(),
        "engine": engine.to_string(),
        "reference": { "loss": reference.loss, "accuracy": reference.accuracy },
    });
    if let Ok(serde_json::Value::Object(summary)) = serde_json::to_value(&outcome.summary) {
        summary.into_iter().for_each(|(key, field)| value[key] = field);
    }
    outcome.extra.iter().for_each(|(key, number)| value[*key] = (*number).into());
    format!("{value:#}\n")
}

fn run(task: &Task, flags: &Flags) -> Result<()> {
    let folder = flags.folder(task);
    std::fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
    let engine = flags.engine()?;
    if let Some(alphas) = &flags.sweep {
        return sweep::run(&engine, task, flags, alphas, &folder);
    }
    println!("{} on {engine}", task.title);
    if flags.alpha.is_none() {
        return range::run(&engine, task, flags, &folder);
    }
    let outcome = task.run(&engine, flags, flags.config(flags.one(), flags.seed)?, Some(&folder))?;
    let [_, data] = task.data(flags, flags.seed)?;
    let reference = reference_blocking(&engine, &data, &flags.config(flags.one(), flags.seed)?)?;
    table(task, flags, &outcome, &reference);
    if let Some(path) = &flags.json {
        files::write_atomically(path, json(task, flags, &engine, &outcome, &reference).as_bytes())?;
    }
    let shown = folder.display();
    println!("\nIn {shown}: model.safetensors, history.csv, dynamics.svg/.png, paths.svg/.png");
    println!("Ask it yourself: cargo run --release --example ask -- {shown}/model.safetensors");
    Ok(())
}

/// Runs a training example.
pub fn main(task: &Task, flags: &Flags) -> ExitCode {
    exit(run(task, flags))
}

/// Tells what went wrong, if anything did.
pub fn exit(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// `LO,HI`.
fn ends(text: &str) -> std::result::Result<[f64; 2], String> {
    let bad = || format!("`{text}` is not two numbers with a comma between them, as in 0.005,0.05");
    let (from, to) = text.split_once(',').ok_or_else(bad)?;
    let number = |text: &str| text.trim().parse().map_err(|_| bad());
    Ok([number(from)?, number(to)?])
}

/// The Syn tasks: x11 decides between two formulas.
pub fn syn(name: &'static str, title: &str, make: fn(u64, [usize; 3]) -> Result<Dataset>) -> Task {
    Task {
        name,
        title: title.to_string(),
        make: Box::new(make),
        sizes: [60_000, 10_000],
        contexts: vec![
            ("x11 < 0".into(), Box::new(|x: &[f32]| x[10] < 0.0)),
            ("x11 ≥ 0".into(), Box::new(|x: &[f32]| x[10] >= 0.0)),
        ],
        first: 10..11,
        extra: Box::new(|_, _| Vec::new()),
    }
}
