//! What recording and submitting a training step costs the host, without any device: on wgpu's noop device, which
//! checks everything and computes nothing. What a step waits for on a real one comes on top (`querent info --measure`).
//!
//!     cargo bench --bench recording

mod support;

use clap::Parser;
use querent::Engine;
use querent::measure::device::recording_blocking;
use querent::measure::{SHAPES, Shape};
use querent::wgpu;
use support::Outcome;
use support::stats::{short, table};

/// What recording and submitting a training step costs the host.
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench recording --")]
struct Arguments {
    /// Shapes: syn1, diabetes, cube, mnist [default: all]
    #[arg(long, value_delimiter = ',')]
    shapes: Vec<Shape>,
    /// Instances of a step.
    #[arg(long, default_value_t = 128)]
    batch: usize,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let shapes = if arguments.shapes.is_empty() { SHAPES.to_vec() } else { arguments.shapes };
    let (device, queue) = wgpu::Device::noop(&wgpu::DeviceDescriptor::default());
    let engine = Engine::on(device, queue);
    let mut rows = Vec::new();
    for shape in shapes {
        let stepper = shape.stepper(&engine, arguments.batch, 4096)?;
        let program = stepper.program().gpu().ok_or("the noop device is none")?;
        let section = program.plan().find_section("step").ok_or("there is no section `step`")?;
        let took = recording_blocking(program, section.calls(), 1.0)?;
        let calls = section.calls().len() as f64;
        let each = took.recording_microseconds + took.submission_microseconds;
        rows.push(vec![
            shape.name.to_string(),
            calls.to_string(),
            short(took.recording_microseconds),
            short(took.submission_microseconds),
            short(each),
            short(each * calls / 1e3),
        ]);
    }
    let head =
        ["shape", "dispatches", "µs recording a dispatch", "µs submitting it", "µs both", "ms of the step"];
    print!("{}", table(&head, &rows));
    Ok(())
}
