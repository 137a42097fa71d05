//! Querent's training step in burn, as a peer of its benchmark: one request a line on the standard input, one
//! answer a line on the standard output (benches/support/peers.rs describes them).
//!
//!     querent-peer-burn wgpu --serve      answers requests, on the default adapter
//!     querent-peer-burn cpu --check       compares golden steps, on the CPU

mod golden;
mod problem;
mod step;

use burn::prelude::*;
use burn::tensor::DeviceKind;
use serde::Deserialize;
use serde_json::json;
use std::io::Write;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Request {
    Step {
        shape: problem::Shape,
        batch: usize,
        rows: usize,
    },
    Time {
        seconds: f64,
    },
    #[serde(other)]
    Other,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (device, what) = match arguments[..] {
        ["cpu", what] => (Device::flex(), what),
        ["wgpu", what] => (Device::wgpu(DeviceKind::DefaultDevice), what),
        _ => return Err("usage: querent-peer-burn cpu|wgpu --check|--serve".into()),
    };
    match what {
        "--check" => golden::check(&device.autodiff()),
        "--serve" => serve(&device.autodiff()),
        other => Err(format!("{other} is neither --check nor --serve").into()),
    }
}

fn serve(device: &Device) -> Outcome<()> {
    let mut work = None;
    for line in std::io::stdin().lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(Request::Step { shape, batch, rows }) => {
                let mut training = step::Training::new(&shape, batch, rows, device)?;
                // Compiles, tunes, warms up.
                (0..3).try_for_each(|_| training.steps(1))?;
                work = Some(training);
                json!({ "ready": true })
            }
            Ok(Request::Time { seconds }) => match &mut work {
                Some(training) => timed(training, seconds)?,
                None => json!({ "error": "nothing was prepared" }),
            },
            Ok(Request::Other) => json!({ "error": "burn does training steps only" }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Trains for about so long, at least one step.
fn timed(training: &mut step::Training, seconds: f64) -> Outcome<serde_json::Value> {
    let start = Instant::now();
    training.steps(1)?;
    let (mut times, mut spent) = (1, start.elapsed().as_secs_f64());
    while spent < 0.9 * seconds {
        let more = ((seconds - spent) / (spent / times as f64)).max(1.0) as usize;
        training.steps(more)?;
        times += more;
        spent = start.elapsed().as_secs_f64();
    }
    Ok(json!({ "times": times, "seconds": spent }))
}
