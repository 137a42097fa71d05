//! `querent info --measure`: what an adapter costs and how long the kernels of a training step take on it, as tables and as
//! a file to send.

use crate::commands::train::EngineName;
use crate::commands::{Failure, Talk, say, write_table};
use indicatif::{ProgressBar, ProgressStyle};
use querent::files::write_atomically;
use querent::measure::{KernelTime, Options, Report, Shape, StepTime, report_blocking};
use querent::{Engine, Error};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Kernels of a step that are shown; the file has all.
const SHOWN: usize = 6;

/// What `--measure` measures.
#[derive(clap::Args)]
pub struct Args {
    /// Measure the adapter, kernel by kernel, and nothing else: some minutes. The numbers of somebody's GPU are welcome
    /// (docs/gpu.md says where).
    #[arg(long, conflicts_with_all = ["no_measure", "shaders"])]
    pub measure: bool,
    /// Write all that is measured to this file, as JSON.
    #[arg(long, short, value_name = "FILE.json", requires = "measure")]
    output: Option<PathBuf>,
    /// Which adapter: auto takes hardware, gpu also a software driver.
    #[arg(long, value_enum, default_value = "auto", requires = "measure")]
    engine: EngineName,
    /// Shapes of a training step: syn1, diabetes, cube, mnist [default: all]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', requires = "measure")]
    shapes: Vec<Shape>,
    /// Instances of a training step.
    #[arg(long, value_name = "N,M,…", value_delimiter = ',', default_values_t = [128, 1024], requires = "measure")]
    batches: Vec<usize>,
    /// Seconds of each measurement, about; there are four of each shape and batch.
    #[arg(long, value_name = "S", default_value_t = 0.5, requires = "measure")]
    seconds: f64,
}

/// Measures, shows and writes.
///
/// # Errors
/// No adapter, one that was lost, numbers that cannot be, or a file that cannot be written.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let options = options(args)?;
    // A place that cannot be written is better known before some minutes of measuring.
    if let Some(path) = &args.output {
        check_place(path)?;
    }
    let engine = open(args.engine)?;
    let bar = bar(talk);
    let report = report_blocking(&engine, &options, |what, behind| {
        bar.set_position((behind * 100.0) as u64);
        bar.set_message(what.to_string());
        if bar.is_hidden() {
            say(talk, format_args!("measuring {what}"));
        }
    });
    bar.finish_and_clear();
    let report = report?;
    show(&report, out)?;
    if let Some(path) = &args.output {
        let text = serde_json::to_string_pretty(&report)
            .map_err(|error| Error::Internal(format!("the measurements are no JSON: {error}")))?;
        write_atomically(path, (text + "\n").as_bytes())?;
        writeln!(out, "Written to {}", path.display())?;
    }
    Ok(())
}

fn options(args: &Args) -> Result<Options, Failure> {
    let refused = |what: String| Err(Failure::Refused(what));
    if !(args.seconds > 0.0 && args.seconds <= 3600.0) {
        return refused(format!("--seconds is {}, but it must be above 0 and at most 3600", args.seconds));
    }
    if args.batches.contains(&0) {
        return refused("--batches has a 0, but a step has at least one instance".into());
    }
    let usual = Options::default();
    let shapes = if args.shapes.is_empty() { usual.shapes } else { args.shapes.clone() };
    Ok(Options { shapes, batches: args.batches.clone(), seconds: args.seconds })
}

fn check_place(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(Error::file(path, "it is a folder, but a file is to be written").into());
    }
    if !folder.is_dir() {
        return Err(Error::file(path, format!("there is no folder {}", folder.display())).into());
    }
    Ok(())
}

fn open(engine: EngineName) -> Result<Engine, Failure> {
    match engine {
        EngineName::Cpu => Err(Failure::Refused(
            "--measure is about adapters; `querent info` measures the CPU engine".into(),
        )),
        EngineName::Gpu => Ok(Engine::timed_gpu_blocking(false)?),
        EngineName::Auto => Engine::timed_gpu_blocking(true).map_err(|error| match error {
            Error::NoAdapter(what) => {
                Failure::Refused(format!("{what}. --engine gpu measures a software driver, if there is one"))
            }
            other => other.into(),
        }),
    }
}

fn bar(talk: Talk) -> ProgressBar {
    if talk == Talk::Quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(100);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent}%, {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(report: &Report, out: &mut impl Write) -> Result<(), Failure> {
    let device = &report.device;
    writeln!(out, "{} ({}, {}, {})", device.name, device.backend, device.kind, device.driver_info.trim())?;
    if !report.release_build {
        writeln!(out, "  (this is a debug build: a release build is much faster)")?;
    }
    let costs = &report.costs;
    writeln!(out, "  {:.1} µs a dispatch that waits for the one before", costs.dispatch_microseconds)?;
    writeln!(out, "  {:.0} µs from recording one to knowing that it is done", costs.round_trip_microseconds)?;
    writeln!(out, "  {:.1} GB/s read and written by a copy", costs.copy_gigabytes_per_second)?;
    writeln!(out, "\nA published training step ({} beside it)", report.cpu)?;
    let head = ["", "batch", "dispatches", "ms", "instances/s", "on the CPU", "recording", "submission"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(report.steps.iter().map(summary));
    write_table(out, 1, &rows)?;
    for step in &report.steps {
        writeln!(out, "\n{}, batch {}: its kernels", step.shape.name, step.batch)?;
        let head = ["", "calls", "ms", "MFLOP", "MB", "GFLOP/s", "GB/s"];
        let mut rows = vec![head.map(String::from).to_vec()];
        rows.extend(step.kernels.iter().take(SHOWN).chain([&step.all_kernels]).map(kernel));
        write_table(out, 1, &rows)?;
    }
    for refusal in &report.not_measured {
        writeln!(out, "\n{}, batch {}: not measured: {}", refusal.shape, refusal.batch, refusal.error)?;
    }
    Ok(())
}

/// The line of a step; what recording and submitting costs is in microseconds a dispatch.
fn summary(step: &StepTime) -> Vec<String> {
    vec![
        step.shape.name.to_string(),
        step.batch.to_string(),
        step.dispatches.to_string(),
        format!("{:.2}", step.milliseconds),
        format!("{:.0}", step.instances_per_second),
        format!("{:.0}", step.cpu_instances_per_second),
        format!("{:.2} µs", step.recording.recording_microseconds),
        format!("{:.2} µs", step.recording.submission_microseconds),
    ]
}

fn kernel(kernel: &KernelTime) -> Vec<String> {
    vec![
        kernel.kernel.to_string(),
        kernel.calls.to_string(),
        format!("{:.3}", kernel.milliseconds),
        format!("{:.1}", 1e3 * kernel.gflop),
        format!("{:.2}", kernel.megabytes),
        format!("{:.1}", kernel.gflops),
        format!("{:.1}", kernel.gigabytes_per_second),
    ]
}
