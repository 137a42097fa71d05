//! With a display: a window, and keys for the budget.

use crate::host::{Host, Share};
use crate::scene::SIZE;
use querent::wgpu;
use std::sync::Arc;
use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::event::{ElementState, KeyEvent, WindowEvent};
use winit::event_loop::{ActiveEventLoop, EventLoop};
use winit::keyboard::{Key, NamedKey};
use winit::window::{Window, WindowId};

type Error = Box<dyn std::error::Error>;

pub fn run(event_loop: EventLoop<()>, share: Share, features: wgpu::Features) -> Result<(), Error> {
    let mut app = App { share, features, open: None, error: None };
    event_loop.run_app(&mut app)?;
    app.error.map_or(Ok(()), Err)
}

struct App {
    share: Share,
    features: wgpu::Features,
    open: Option<Open>,
    error: Option<Error>,
}

struct Open {
    window: Arc<Window>,
    surface: wgpu::Surface<'static>,
    config: wgpu::SurfaceConfiguration,
    host: Host,
}

impl Open {
    fn new(event_loop: &ActiveEventLoop, share: Share, features: wgpu::Features) -> Result<Self, Error> {
        let size = PhysicalSize::new(SIZE[0], SIZE[1]);
        let attributes = Window::default_attributes()
            .with_title("querent in a host's frames")
            .with_inner_size(size)
            .with_resizable(false);
        let window = Arc::new(event_loop.create_window(attributes)?);
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_with_display_handle(Box::new(
            event_loop.owned_display_handle(),
        )));
        let surface = instance.create_surface(Arc::clone(&window))?;
        let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions {
            compatible_surface: Some(&surface),
            ..Default::default()
        }))?;
        let mut config = surface
            .get_default_config(&adapter, SIZE[0], SIZE[1])
            .ok_or("the adapter cannot draw into the window")?;
        // Colours are given as the screen shows them.
        config.format = config.format.remove_srgb_suffix();
        let host = Host::new(&adapter, config.format, share, features)?;
        surface.configure(&host.device, &config);
        Ok(Self { window, surface, config, host })
    }

    fn redraw(&mut self) -> Result<(), Error> {
        let texture = match self.surface.get_current_texture() {
            wgpu::CurrentSurfaceTexture::Success(texture) => texture,
            wgpu::CurrentSurfaceTexture::Suboptimal(_)
            | wgpu::CurrentSurfaceTexture::Outdated
            | wgpu::CurrentSurfaceTexture::Lost => {
                self.surface.configure(&self.host.device, &self.config);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let commands = self.host.frame(&texture.texture.create_view(&Default::default()))?;
        self.host.queue.submit([commands]);
        self.host.queue.present(texture);
        // The host's own poll, which does not wait: it brings the trainer what has arrived.
        self.host.device.poll(wgpu::PollType::Poll)?;
        Ok(())
    }

    fn press(&mut self, key: &Key) {
        let host = &mut self.host;
        match key {
            Key::Named(NamedKey::ArrowUp) => host.share = host.share.scaled(1.5),
            Key::Named(NamedKey::ArrowDown) => host.share = host.share.scaled(1.0 / 1.5),
            Key::Named(NamedKey::Space) => host.paused = !host.paused,
            _ => {}
        }
    }
}

impl ApplicationHandler for App {
    fn resumed(&mut self, event_loop: &ActiveEventLoop) {
        match Open::new(event_loop, self.share, self.features) {
            Ok(open) => self.open = Some(open),
            Err(error) => {
                self.error = Some(error);
                event_loop.exit();
            }
        }
    }

    fn window_event(&mut self, event_loop: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        let Some(open) = &mut self.open else { return };
        match event {
            WindowEvent::CloseRequested => event_loop.exit(),
            WindowEvent::KeyboardInput {
                event: KeyEvent { state: ElementState::Pressed, logical_key, .. },
                ..
            } => match logical_key {
                Key::Named(NamedKey::Escape) => event_loop.exit(),
                key => open.press(&key),
            },
            WindowEvent::RedrawRequested => {
                if let Err(error) = open.redraw() {
                    self.error = Some(error);
                    event_loop.exit();
                } else {
                    open.window.request_redraw();
                }
            }
            _ => {}
        }
    }
}
