//! `querent info`: what this machine offers to train on.

mod measure;

use super::{Failure, Talk, write_table};
use querent::data::synthetic;
use querent::engine::gpu::{Adapter, Gpu, adapters};
use querent::engine::kernels::Target;
use querent::files::write_atomically;
use querent::measure::rate_blocking;
use querent::methods;
use querent::nmppg::{Config, Stepper};
use querent::{Engine, Error, wgpu};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Show what this machine offers to train on: adapters, the engine taken, limits, and speed.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Write every shader, as it is given to the driver, into this folder (made if it is missing),
    /// and do nothing else.
    #[arg(long, value_name = "DIR")]
    shaders: Option<PathBuf>,
    /// Do not measure how fast the engines train: a few seconds less.
    #[arg(long)]
    no_measure: bool,
    #[command(flatten)]
    measure: measure::Args,
}

const HELP: &str = "\
Examples:
  querent info                      adapters, engines, limits, measured speeds
  querent info --no-measure         the same without the measurement
  querent info --measure -o gpu.json    an adapter, kernel by kernel, to send
  querent info --shaders shaders    one WGSL file a kernel, to read";

/// Runs the command.
///
/// # Errors
/// A folder or file that cannot be written, or an output that cannot be written to. What is wrong
/// with an adapter is part of the answer.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    if args.measure.measure {
        return measure::run(&args.measure, talk, out);
    }
    if let Some(folder) = &args.shaders {
        let written = write_shaders(folder)?;
        writeln!(out, "{written} shaders written to {}", folder.display())?;
        return Ok(());
    }
    let found = pollster::block_on(adapters());
    show_adapters(&found, out)?;
    show_engine(&found, out)?;
    show_limits(&found, out)?;
    if !args.no_measure {
        show_rates(&found, out)?;
    }
    Ok(())
}

/// Writes the kernels' sources, a file each, and says how many.
fn write_shaders(folder: &Path) -> Result<usize, Error> {
    std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    let mut count = 0;
    for kernel in methods::kernels() {
        let path = folder.join(format!("{}.wgsl", kernel.name));
        // A method's own are in a folder of its name.
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|error| Error::io(parent, error))?;
        write_atomically(&path, kernel.source(Target::Gpu).as_bytes())?;
        count += 1;
    }
    Ok(count)
}

fn show_adapters(found: &[Adapter], out: &mut impl Write) -> Result<(), Failure> {
    if found.is_empty() {
        writeln!(out, "Adapters: none")?;
    } else {
        writeln!(out, "Adapters, better ones first")?;
        let mut rows = vec![["", "name", "backend", "type", "driver"].map(String::from).to_vec()];
        for (index, Adapter { info, .. }) in found.iter().enumerate() {
            let driver = [&info.driver, &info.driver_info].map(|text| text.trim());
            let driver = driver.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
            let cells = [&info.name, info.backend.to_str(), type_name(info.device_type), &driver];
            rows.push(std::iter::once(index.to_string()).chain(cells.map(String::from)).collect());
        }
        write_table(out, 5, &rows)?;
    }
    writeln!(out)?;
    Ok(())
}

fn type_name(device_type: wgpu::DeviceType) -> &'static str {
    match device_type {
        wgpu::DeviceType::DiscreteGpu => "discrete GPU",
        wgpu::DeviceType::IntegratedGpu => "integrated GPU",
        wgpu::DeviceType::VirtualGpu => "virtual GPU",
        wgpu::DeviceType::Cpu => "software",
        wgpu::DeviceType::Other => "other",
    }
}

/// What `Engine::auto` takes, and why.
fn show_engine(found: &[Adapter], out: &mut impl Write) -> Result<(), Failure> {
    let engine = Engine::auto_blocking()?;
    writeln!(out, "Engine\n  auto takes: {engine}")?;
    // Where it took none, the reason is heard by asking again.
    let reason = |hardware_only| match pollster::block_on(Gpu::open(hardware_only)) {
        Ok(_) => "no adapter could be opened at first, but now one can: try again".to_string(),
        Err(error) => error.to_string(),
    };
    if engine.device().is_some() {
        writeln!(out, "  because: it is the best hardware adapter")?;
        writeln!(out, "  `train` measures first whether it is faster than the CPU for its problem")?;
    } else if found.is_empty() {
        writeln!(out, "  because: {}", reason(false))?;
        writeln!(out, "  The CPU engine serves until there is an adapter.")?;
    } else if found.iter().any(Adapter::is_hardware) {
        writeln!(out, "  because: {}", reason(true))?;
    } else {
        writeln!(
            out,
            "  because: the adapters are software drivers, taken only when asked for (`Engine::gpu`)"
        )?;
    }
    writeln!(out)?;
    Ok(())
}

/// The limits and features that decide what fits and which kernels can be used, beside those that
/// every WebGPU device has.
fn show_limits(found: &[Adapter], out: &mut impl Write) -> Result<(), Failure> {
    if found.is_empty() {
        return Ok(());
    }
    type Limit = fn(&wgpu::Limits) -> String;
    let limits: [(&str, Limit); 5] = [
        ("max_storage_buffer_binding_size", |l| bytes(l.max_storage_buffer_binding_size)),
        ("max_buffer_size", |l| bytes(l.max_buffer_size)),
        ("max_storage_buffers_per_shader_stage", |l| l.max_storage_buffers_per_shader_stage.to_string()),
        ("max_compute_workgroup_storage_size", |l| bytes(l.max_compute_workgroup_storage_size.into())),
        ("max_compute_invocations_per_workgroup", |l| l.max_compute_invocations_per_workgroup.to_string()),
    ];
    let features = [
        ("TIMESTAMP_QUERY", wgpu::Features::TIMESTAMP_QUERY),
        ("SUBGROUP", wgpu::Features::SUBGROUP),
        ("SHADER_F16", wgpu::Features::SHADER_F16),
        ("PIPELINE_CACHE", wgpu::Features::PIPELINE_CACHE),
    ];
    let row = |name: &str, usual: String, of: &dyn Fn(&Adapter) -> String| {
        [name.to_string(), usual].into_iter().chain(found.iter().map(of)).collect::<Vec<_>>()
    };
    let heading = (0..found.len()).map(|index| format!("adapter {index}"));
    let mut rows = vec![["".into(), "default".into()].into_iter().chain(heading).collect()];
    for (name, limit) in limits {
        rows.push(row(name, limit(&wgpu::Limits::default()), &|adapter| limit(&adapter.limits)));
    }
    for (name, feature) in features {
        let has = |adapter: &Adapter| if adapter.features.contains(feature) { "yes" } else { "no" }.into();
        rows.push(row(name, "no".into(), &has));
    }
    writeln!(out, "Limits and features (default: what every WebGPU device has; the kernels need no more)")?;
    write_table(out, 1, &rows)?;
    writeln!(out)?;
    Ok(())
}

/// A number of bytes in the largest unit it reaches, with decimals unless it is a whole number of
/// them. What is a hair short of a unit (2 GiB less a byte is a common limit) is shown in that unit.
fn bytes(value: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (1..units.len()).rev().find(|&unit| value >= (1 << (10 * unit)) - 256).unwrap_or(0);
    let size = 1u64 << (10 * unit);
    let decimals = if value.is_multiple_of(size) { 0 } else { 2 };
    format!("{:.decimals$} {}", value as f64 / size as f64, units[unit])
}

/// Training speed on a small problem, of the CPU engine and of the best adapter.
fn show_rates(found: &[Adapter], out: &mut impl Write) -> Result<(), Failure> {
    let config = Config::new(0.02);
    let data = synthetic::syn1(0, [2048, 64, 64])?;
    writeln!(
        out,
        "Training instances per second, measured on Syn1 (batch {}, {} acquisitions)",
        config.batch,
        config.steps(data.problem())
    )?;
    if cfg!(debug_assertions) {
        writeln!(out, "  (this is a debug build: a release build is much faster)")?;
    }
    out.flush()?;
    let measured = |engine: Result<Engine, Error>| {
        engine.and_then(|engine| {
            let rate = instances_blocking(&mut Stepper::new(&engine, &data, config.clone())?)?;
            Ok((engine.to_string(), rate))
        })
    };
    let mut rows = Vec::new();
    let mut complaints = Vec::new();
    let software = found.first().is_some_and(|adapter| !adapter.is_hardware());
    let cpu = measured(Ok(Engine::cpu()));
    let gpu = found.first().map(|_| measured(Engine::gpu_blocking()));
    for (result, note) in [(Some(cpu), ""), (gpu, if software { ", a software driver" } else { "" })] {
        match result {
            Some(Ok((engine, rate))) => rows.push(vec![format!("{engine}{note}"), format!("{rate:.0}")]),
            Some(Err(error)) => complaints.push(error),
            None => {}
        }
    }
    write_table(out, 1, &rows)?;
    for complaint in complaints {
        writeln!(out, "  not measured: {complaint}")?;
    }
    Ok(())
}

/// Instances a second, from about a second of training. Waits for the engine inside the timing.
fn instances_blocking(stepper: &mut Stepper) -> Result<f64, Error> {
    let batch = stepper.batch();
    let rate = rate_blocking(1.0, |steps| {
        stepper.steps(steps);
        stepper.means_blocking().map(drop)
    })?;
    Ok(rate * batch as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(256), "256 B");
        assert_eq!(bytes(16_384), "16 KiB");
        assert_eq!(bytes(128 << 20), "128 MiB");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
        assert_eq!(bytes(i32::MAX as u64), "2.00 GiB");
        assert_eq!(bytes((1 << 30) - 4), "1.00 GiB");
        assert_eq!(bytes(u64::MAX), "16.00 EiB");
    }
}
