//! What the host draws: its own shapes and letters, and, with pipelines of its own, the trainer's buffers.

use crate::text::Letters;
use querent::nmppg::Buffers;
use querent::wgpu;
use std::collections::VecDeque;
use wgpu::util::{BufferInitDescriptor, DeviceExt};

/// The window's size in pixels.
pub const SIZE: [u32; 2] = [960, 600];
/// Left, top, width, height.
type Area = [f32; 4];
const PLOT: Area = [64.0, 96.0, 500.0, 264.0];
const HEAT: Area = [664.0, 96.0, 264.0, 264.0];
const TIMES: Area = [64.0, 440.0, 864.0, 112.0];
/// Values of the curves that are shown, and the frame time at the upper edge.
const RANGE: [f32; 2] = [0.4, 0.9];
const LONGEST: f32 = 50.0;
/// Frame times that are shown.
const FRAMES: usize = 288;

const INK: [f32; 4] = [0.13, 0.13, 0.15, 1.0];
const PALE: [f32; 4] = [0.45, 0.45, 0.5, 1.0];
const GRID: [f32; 4] = [0.88, 0.89, 0.91, 1.0];
const PANEL: [f32; 4] = [1.0, 1.0, 1.0, 1.0];
const TRAINING: [f32; 4] = [0.55, 0.68, 0.86, 1.0];
const VALIDATION: [f32; 4] = [0.86, 0.34, 0.13, 1.0];
const BAR: [f32; 4] = [0.36, 0.55, 0.43, 1.0];

/// A filled rectangle: where it goes, where in the atlas it comes from, its colour.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Shape {
    to: Area,
    from: Area,
    color: [f32; 4],
}

/// The uniform block of `scene.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct View {
    size: [f32; 2],
    range: [f32; 2],
    plot: Area,
    heat: Area,
    points: u32,
    epochs: u32,
    steps: u32,
    features: u32,
    alpha: f32,
    padding: [f32; 3],
}

/// What is said in words.
pub struct Readout {
    /// The lines at the top.
    pub lines: [String; 2],
    /// Milliseconds of the last frames.
    pub times: VecDeque<f32>,
}

impl Readout {
    pub fn push(&mut self, millis: f32) {
        self.times.push_back(millis);
        if self.times.len() > FRAMES {
            self.times.pop_front();
        }
    }

    /// The middle one of the last frame times.
    pub fn median(&self) -> f32 {
        let mut times: Vec<f32> = self.times.iter().copied().collect();
        times.sort_by(f32::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    }
}

pub struct Scene {
    letters: Letters,
    atlas: wgpu::TextureView,
    sampler: wgpu::Sampler,
    /// Shapes, heat map, training and validation curve.
    pipelines: [wgpu::RenderPipeline; 4],
    instances: wgpu::Buffer,
    training: Drawn,
}

/// A training as it is drawn: what each of the pipelines reads, and how much of it there is.
struct Drawn {
    bound: [wgpu::BindGroup; 4],
    points: usize,
    epochs: usize,
    steps: usize,
    features: usize,
}

/// Shapes at most.
const MOST: usize = 2048;

impl Drawn {
    fn new(
        device: &wgpu::Device,
        [shapes, heat, training, validation]: &[wgpu::RenderPipeline; 4],
        (atlas, sampler): (&wgpu::TextureView, &wgpu::Sampler),
        drawn: Buffers,
        alpha: f64,
    ) -> Self {
        let view = View {
            size: SIZE.map(|pixels| pixels as f32),
            range: RANGE,
            plot: PLOT,
            heat: HEAT,
            points: drawn.points as u32,
            epochs: drawn.epochs as u32,
            steps: drawn.steps as u32,
            features: drawn.features as u32,
            alpha: alpha as f32,
            padding: [0.0; 3],
        };
        let view = device.create_buffer_init(&BufferInitDescriptor {
            label: Some("view"),
            contents: bytemuck::bytes_of(&view),
            usage: wgpu::BufferUsages::UNIFORM,
        });
        let bind = |pipeline: &wgpu::RenderPipeline, resources: &[(u32, wgpu::BindingResource)]| {
            let entries: Vec<wgpu::BindGroupEntry> = [(0, view.as_entire_binding())]
                .iter()
                .chain(resources)
                .map(|(binding, resource)| wgpu::BindGroupEntry {
                    binding: *binding,
                    resource: resource.clone(),
                })
                .collect();
            device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some("scene"),
                layout: &pipeline.get_bind_group_layout(0),
                entries: &entries,
            })
        };
        let bound = [
            bind(
                shapes,
                &[
                    (1, wgpu::BindingResource::TextureView(atlas)),
                    (2, wgpu::BindingResource::Sampler(sampler)),
                ],
            ),
            // From here on, the trainer's buffers, as they are.
            bind(heat, &[(5, drawn.paths.as_entire_binding())]),
            bind(training, &[(3, drawn.training.as_entire_binding())]),
            bind(validation, &[(4, drawn.validation.as_entire_binding())]),
        ];
        Self {
            bound,
            points: drawn.points,
            epochs: drawn.epochs,
            steps: drawn.steps,
            features: drawn.features,
        }
    }
}

impl Scene {
    pub fn new(
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        format: wgpu::TextureFormat,
        drawn: Buffers,
        alpha: f64,
    ) -> Result<Self, String> {
        let letters = Letters::new()?;
        let module = device.create_shader_module(wgpu::include_wgsl!("scene.wgsl"));
        let pipeline = |name: &str, instances: &[Option<wgpu::VertexBufferLayout>]| {
            device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
                label: Some(name),
                layout: None,
                vertex: wgpu::VertexState {
                    module: &module,
                    entry_point: Some(&format!("{name}_corner")),
                    compilation_options: Default::default(),
                    buffers: instances,
                },
                primitive: wgpu::PrimitiveState {
                    topology: wgpu::PrimitiveTopology::TriangleStrip,
                    ..Default::default()
                },
                depth_stencil: None,
                multisample: Default::default(),
                fragment: Some(wgpu::FragmentState {
                    module: &module,
                    entry_point: Some(&format!("{name}_color")),
                    compilation_options: Default::default(),
                    targets: &[Some(wgpu::ColorTargetState {
                        format,
                        blend: Some(wgpu::BlendState::ALPHA_BLENDING),
                        write_mask: wgpu::ColorWrites::ALL,
                    })],
                }),
                multiview_mask: None,
                cache: None,
            })
        };
        let attributes = wgpu::vertex_attr_array![0 => Float32x4, 1 => Float32x4, 2 => Float32x4];
        let shapes = pipeline(
            "shape",
            &[Some(wgpu::VertexBufferLayout {
                array_stride: size_of::<Shape>() as u64,
                step_mode: wgpu::VertexStepMode::Instance,
                attributes: &attributes,
            })],
        );
        let [training, validation, heat] = ["training", "validation", "heat"].map(|name| pipeline(name, &[]));
        let atlas = atlas(device, queue, &letters);
        let sampler = device.create_sampler(&wgpu::SamplerDescriptor::default());
        let instances = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("shapes"),
            size: (MOST * size_of::<Shape>()) as u64,
            usage: wgpu::BufferUsages::VERTEX | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let pipelines = [shapes, heat, training, validation];
        let training = Drawn::new(device, &pipelines, (&atlas, &sampler), drawn, alpha);
        Ok(Self { letters, atlas, sampler, pipelines, instances, training })
    }

    /// Draws another training from now on.
    pub fn show(&mut self, device: &wgpu::Device, drawn: Buffers, alpha: f64) {
        self.training = Drawn::new(device, &self.pipelines, (&self.atlas, &self.sampler), drawn, alpha);
    }

    /// Records a frame's picture.
    pub fn draw(
        &self,
        queue: &wgpu::Queue,
        encoder: &mut wgpu::CommandEncoder,
        target: &wgpu::TextureView,
        readout: &Readout,
    ) {
        let mut shapes = self.shapes(readout);
        shapes.truncate(MOST);
        queue.write_buffer(&self.instances, 0, bytemuck::cast_slice(&shapes));
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("host"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: target,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color { r: 0.955, g: 0.96, b: 0.97, a: 1.0 }),
                    store: wgpu::StoreOp::Store,
                },
            })],
            ..Default::default()
        });
        pass.set_vertex_buffer(0, self.instances.slice(..));
        let counts = [shapes.len(), 1, self.training.points * self.training.epochs, self.training.epochs];
        for ((pipeline, bound), count) in self.pipelines.iter().zip(&self.training.bound).zip(counts) {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, bound, &[]);
            pass.draw(0..4, 0..count as u32);
        }
    }

    fn shapes(&self, readout: &Readout) -> Vec<Shape> {
        let mut canvas = Canvas { letters: &self.letters, shapes: Vec::new() };
        let c = &mut canvas;
        for (line, y) in readout.lines.iter().zip([30.0, 54.0]) {
            c.text(line, [PLOT[0], y], if y < 40.0 { INK } else { PALE });
        }
        for area in [PLOT, TIMES] {
            c.fill(area, PANEL);
        }
        // The curves' axes.
        for step in 0..=5 {
            let value = RANGE[0] + (RANGE[1] - RANGE[0]) * step as f32 / 5.0;
            let y = PLOT[1] + PLOT[3] * (1.0 - step as f32 / 5.0);
            c.fill([PLOT[0], y, PLOT[2], 1.0], GRID);
            c.text_left_of(&format!("{value:.1}"), [PLOT[0] - 8.0, y + 5.0]);
        }
        let every = self.training.epochs.div_ceil(8).max(1);
        for epoch in (0..=self.training.epochs).step_by(every) {
            let x = PLOT[0] + PLOT[2] * epoch as f32 / self.training.epochs as f32;
            c.fill([x, PLOT[1], 1.0, PLOT[3]], GRID);
            c.text_around(&epoch.to_string(), [x, PLOT[1] + PLOT[3] + 18.0]);
        }
        c.text("objective by epoch:", [PLOT[0], PLOT[1] - 12.0], INK);
        c.fill([PLOT[0] + 140.0, PLOT[1] - 18.0, 22.0, 2.0], TRAINING);
        c.text("in training", [PLOT[0] + 168.0, PLOT[1] - 12.0], INK);
        c.fill([PLOT[0] + 254.0, PLOT[1] - 19.0, 22.0, 3.0], VALIDATION);
        c.text("greedy, on the validation rows", [PLOT[0] + 282.0, PLOT[1] - 12.0], INK);
        // The heat map's.
        c.text("questions asked, first to last", [HEAT[0], HEAT[1] - 12.0], INK);
        for feature in 0..=self.training.features {
            let name =
                if feature == self.training.features { "stop".into() } else { format!("x{}", feature + 1) };
            let y = HEAT[1] + HEAT[3] * (feature as f32 + 0.5) / (self.training.features + 1) as f32;
            c.text_left_of(&name, [HEAT[0] - 8.0, y + 5.0]);
        }
        for step in 0..self.training.steps {
            let x = HEAT[0] + HEAT[2] * (step as f32 + 0.5) / self.training.steps as f32;
            c.text_around(&(step + 1).to_string(), [x, HEAT[1] + HEAT[3] + 18.0]);
        }
        // The frame times.
        c.text("frame times in milliseconds", [TIMES[0], TIMES[1] - 12.0], INK);
        for line in 0..=5 {
            let y = TIMES[1] + TIMES[3] * (1.0 - line as f32 / 5.0);
            c.fill([TIMES[0], y, TIMES[2], 1.0], GRID);
            c.text_left_of(&format!("{:.0}", LONGEST * line as f32 / 5.0), [TIMES[0] - 8.0, y + 5.0]);
        }
        let width = TIMES[2] / FRAMES as f32;
        for (frame, &millis) in readout.times.iter().enumerate() {
            let height = TIMES[3] * (millis / LONGEST).min(1.0);
            let x = TIMES[0] + frame as f32 * width;
            c.fill([x, TIMES[1] + TIMES[3] - height, width - 1.0, height], BAR);
        }
        canvas.shapes
    }
}

/// Shapes that are being collected.
struct Canvas<'a> {
    letters: &'a Letters,
    shapes: Vec<Shape>,
}

impl Canvas<'_> {
    fn fill(&mut self, to: Area, color: [f32; 4]) {
        self.shapes.push(Shape { to, from: self.letters.white(), color });
    }

    fn text(&mut self, text: &str, at: [f32; 2], color: [f32; 4]) {
        let letters = self.letters.lay_out(text, at);
        self.shapes.extend(letters.into_iter().map(|[to, from]| Shape { to, from, color }));
    }

    fn text_left_of(&mut self, text: &str, [x, y]: [f32; 2]) {
        self.text(text, [x - self.letters.width(text), y], PALE);
    }

    fn text_around(&mut self, text: &str, [x, y]: [f32; 2]) {
        self.text(text, [x - self.letters.width(text) / 2.0, y], PALE);
    }
}

fn atlas(device: &wgpu::Device, queue: &wgpu::Queue, letters: &Letters) -> wgpu::TextureView {
    let [width, height] = letters.size;
    let texture = device.create_texture_with_data(
        queue,
        &wgpu::TextureDescriptor {
            label: Some("letters"),
            size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: wgpu::TextureFormat::Rgba8Unorm,
            usage: wgpu::TextureUsages::TEXTURE_BINDING,
            view_formats: &[],
        },
        wgpu::util::TextureDataOrder::LayerMajor,
        &letters.pixels,
    );
    texture.create_view(&Default::default())
}
