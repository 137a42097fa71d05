//! A host application with a window, a device and pipelines of its own. It trains Syn1 in the frames it
//! draws anyway, and draws the training curve and what the policy asks straight from the trainer's
//! buffers. Up and down change how much of a frame training may take, the space bar pauses it.
//!
//! Without a display it draws into a texture, writes some frames as PNG files and says how long frames
//! took: `cargo run --release --package querent-embed --example embed -- --offscreen --frames 600 --budget 4ms`.

use clap::Parser;
use querent::{Engine, wgpu};
use querent_embed::host::Share;
use querent_embed::offscreen::{self, Length};
use querent_embed::window;
use std::path::PathBuf;
use winit::event_loop::EventLoop;

#[derive(Parser)]
#[command(about = "Trains in the frames of a window")]
struct Flags {
    /// How much of a frame goes to training: `4ms`, `64` dispatches, `20M` operations, or `off`.
    #[arg(long, default_value = "4ms")]
    budget: Share,
    /// Open the device without timestamps, so that time is learned from when frames are done.
    #[arg(long)]
    without_timestamps: bool,
    /// Draw into a texture, also if there is a display.
    #[arg(long)]
    offscreen: bool,
    /// Frames to draw without a display.
    #[arg(long, default_value_t = 600)]
    frames: usize,
    /// Draw for so many minutes instead, without pictures, and begin another training whenever one has ended.
    #[arg(long, conflicts_with = "frames")]
    minutes: Option<f64>,
    /// Where the pictures go.
    #[arg(long, default_value = "runs/embed")]
    out: PathBuf,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flags = Flags::parse();
    let features = if flags.without_timestamps { wgpu::Features::empty() } else { Engine::useful_features() };
    if !flags.offscreen && flags.minutes.is_none() {
        match EventLoop::new() {
            Ok(event_loop) => return window::run(event_loop, flags.budget, features),
            Err(error) => eprintln!("no window ({error}): drawing {} frames into files", flags.frames),
        }
    }
    let length = flags.minutes.map_or(Length::Frames(flags.frames), Length::Minutes);
    offscreen::run(length, flags.budget, features, &flags.out)
}
