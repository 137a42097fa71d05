//! Without a display: frames into a texture, some of them into files.

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

pub fn run(frames: usize, share: Share, features: wgpu::Features, folder: &Path) -> Result<(), Error> {
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
    let mut times = Vec::new();
    for frame in 1..=frames {
        let start = Instant::now();
        let commands = host.frame(&view)?;
        let shown = host.queue.submit([commands]);
        // A display would hold the host back until its frame is done.
        host.device.poll(wgpu::PollType::Wait { submission_index: Some(shown), timeout: None })?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        if frame % frames.div_ceil(PICTURES) == 0 || frame == frames {
            let path = folder.join(format!("frame_{frame:05}.png"));
            save(&host, &texture, &path)?;
            println!("{}: {}", path.display(), host.readout.lines[0]);
        }
        if host.is_finished() {
            println!("the training ended in frame {frame}");
            save(&host, &texture, &folder.join("finished.png"))?;
            break;
        }
    }
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
