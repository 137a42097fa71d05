// The smallest host: trains in its own frames, and draws what the policy asks from the trainer's buffer: a
// column a question, a row a feature, the last row for having stopped.
use querent::{Budget, Engine, data::synthetic, nmppg::Config, nmppg::Trainer, wgpu};
use wgpu::util::{DeviceExt, DownloadBuffer};
const DRAW: &str = "@group(0) @binding(0) var<storage, read> paths: array<u32>;
@group(0) @binding(1) var<storage, read_write> pixels: array<u32>;
@compute @workgroup_size(8, 8) fn draw(@builtin(global_invocation_id) id: vec3<u32>) {
    let share = f32(paths[id.x / 48u * 12u + id.y / 24u]) / 1000.0;
    pixels[id.y * 288u + id.x] = pack4x8unorm(vec4(1.0 - share, 1.0 - 0.6 * share, 1.0, 1.0));
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()))?;
    let (device, queue) = pollster::block_on(adapter.request_device(&Default::default()))?;

    let data = synthetic::syn1(0, [10_000, 1_000, 0])?.standardized();
    let mut config = Config { batch: 64, horizon: Some(6), ..Config::new(0.02) };
    (config.networks.policy, config.networks.predictor) = ([32, 32], [32, 32]);
    let s = &mut config.schedule;
    (s.policy_rate, s.predictor_rate, s.ema) = (5e-3, 1e-2, 0.1);
    (s.warm_up_epochs, s.stage_epochs, s.epoch_steps) = (1, 2, 156);
    let mut trainer = Trainer::new(&Engine::on(device.clone(), queue.clone()), &data, config)?;
    let source = wgpu::ShaderSource::Wgsl(DRAW.into());
    let draw = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("draw"),
        layout: None,
        module: &device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source }),
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let (label, contents) = (Some("pixels"), &[0; 288 * 288 * 4]);
    let pixels = device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label, contents, usage });
    let entries = [(0, trainer.buffers().ok_or("not on a device")?.paths), (1, &pixels)]
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() });
    let layout = &draw.get_bind_group_layout(0);
    let bound = device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout, entries: &entries });
    while !trainer.try_progress()?.finished {
        let mut encoder = device.create_command_encoder(&Default::default());
        trainer.encode(&mut encoder, Budget::Millis(8.0))?; // a slice of training …
        let mut pass = encoder.begin_compute_pass(&Default::default()); // … and the host's own work
        pass.set_pipeline(&draw);
        pass.set_bind_group(0, &bound, &[]);
        pass.dispatch_workgroups(288 / 8, 288 / 8, 1);
        drop(pass);
        let frame = Some(queue.submit([encoder.finish()]));
        device.poll(wgpu::PollType::Wait { submission_index: frame, timeout: None })?; // as its display would
    }
    println!("best objective {:?}", trainer.best());
    let mut picture = png::Encoder::new(std::fs::File::create("embed_min.png")?, 288, 288);
    picture.set_color(png::ColorType::Rgba);
    let mut picture = picture.write_header()?;
    DownloadBuffer::read_buffer(&device, &queue, &pixels.slice(..), move |bytes| {
        bytes.map(|bytes| picture.write_image_data(&bytes)).expect("read").expect("written");
    });
    device.poll(wgpu::PollType::wait_indefinitely())?;
    Ok(())
}
