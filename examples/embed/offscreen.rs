//! Without a display: frames into a texture, some of them into files, or for as long as is said.

use crate::host::{Host, Share};
use crate::scene::SIZE;
use querent::wgpu;
use std::path::Path;
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

/// Frames at the start that are not counted: pipelines are made, the budget is learned.
const WARM: usize = 60;
/// Pictures that are written over a run.
const PICTURES: usize = 4;

/// How many frames are drawn: so many, or until the training ends; or for so many minutes, with another training on the
/// same device whenever one has ended.
pub enum Length {
    Frames(usize),
    Minutes(f64),
}

pub fn run(length: Length, share: Share, features: wgpu::Features, folder: &Path) -> Result<(), Error> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()))?;
    let format = wgpu::TextureFormat::Rgba8Unorm;
    let mut host = Host::new(&adapter, format, share, features)?;
    let texture = host.device.create_texture(&wgpu::TextureDescriptor {
        label: Some("screen"),
        size: wgpu::Extent3d { width: SIZE[0], height: SIZE[1], depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
        view_formats: &[],
    });
    let view = texture.create_view(&Default::default());
    std::fs::create_dir_all(folder)?;
    let screen = Screen { texture, view };
    let mut times = match length {
        Length::Frames(frames) => draw_frames(&mut host, &screen, frames, folder)?,
        Length::Minutes(minutes) => return draw_for(&mut host, &screen, minutes),
    };
    let mut counted = times.split_off(WARM.min(times.len() / 2));
    counted.sort_by(f64::total_cmp);
    let at = |share: f64| counted[((counted.len() - 1) as f64 * share).round() as usize];
    println!(
        "{share}: {} frames, milliseconds: median {:.2}, 90 % {:.2}, 99 % {:.2}, longest {:.2}",
        counted.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    Ok(())
}

/// What is drawn into.
struct Screen {
    texture: wgpu::Texture,
    view: wgpu::TextureView,
}

/// Draws a frame and waits for it. A display would hold the host back until its frame is done.
fn show(host: &mut Host, screen: &Screen) -> Result<(), Error> {
    let commands = host.frame(&screen.view)?;
    let shown = host.queue.submit([commands]);
    host.device.poll(wgpu::PollType::Wait { submission_index: Some(shown), timeout: None })?;
    Ok(())
}

/// Draws frames, writes some of them, and gives how many milliseconds each took.
fn draw_frames(host: &mut Host, screen: &Screen, frames: usize, folder: &Path) -> Result<Vec<f64>, Error> {
    let mut times = Vec::new();
    for frame in 1..=frames {
        let start = Instant::now();
        show(host, screen)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        if frame % frames.div_ceil(PICTURES) == 0 || frame == frames {
            let path = folder.join(format!("frame_{frame:05}.png"));
            save(host, &screen.texture, &path)?;
            println!("{}: {}", path.display(), host.readout.lines[0]);
        }
        if host.is_finished() {
            println!("the training ended in frame {frame}");
            save(host, &screen.texture, &folder.join("finished.png"))?;
            break;
        }
    }
    Ok(times)
}

/// Draws frames for so many minutes. A line for each training that ended: its frames, and how it ended, which is the same
/// each time, as nothing is left over from the training before.
fn draw_for(host: &mut Host, screen: &Screen, minutes: f64) -> Result<(), Error> {
    let start = Instant::now();
    let mut frames = 0;
    while start.elapsed().as_secs_f64() < minutes * 60.0 {
        show(host, screen)?;
        frames += 1;
        if host.is_finished() {
            println!("{frames} frames: {}", host.readout.lines[0]);
            frames = 0;
            host.begin_again()?;
        }
    }
    println!("{frames} frames: {}", host.readout.lines[0]);
    Ok(())
}

fn save(host: &Host, texture: &wgpu::Texture, path: &Path) -> Result<(), Error> {
    let [width, height] = SIZE;
    let staging = host.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("picture"),
        size: u64::from(width * height * 4),
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = host.device.create_command_encoder(&Default::default());
    encoder.copy_texture_to_buffer(
        texture.as_image_copy(),
        wgpu::TexelCopyBufferInfo {
            buffer: &staging,
            // 960 pixels of 4 bytes are a multiple of the 256 that copies need.
            layout: wgpu::TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(width * 4),
                rows_per_image: None,
            },
        },
        texture.size(),
    );
    encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., |_| {});
    host.queue.submit([encoder.finish()]);
    host.device.poll(wgpu::PollType::wait_indefinitely())?;
    let mut picture = png::Encoder::new(std::io::BufWriter::new(std::fs::File::create(path)?), width, height);
    picture.set_color(png::ColorType::Rgba);
    picture.write_header()?.write_image_data(&staging.get_mapped_range(..)?)?;
    Ok(())
}
