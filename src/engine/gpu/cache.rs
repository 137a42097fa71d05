//! Compiled pipelines in a file, where the backend has such a cache (Vulkan). Drivers keep one of their own as a
//! rule, so this is only used when asked for: `QUERENT_PIPELINE_CACHE` names a folder. A host's device is the
//! host's affair.

use crate::files::write_atomically;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The folder that is asked for.
const FOLDER: &str = "QUERENT_PIPELINE_CACHE";

/// A device's cache of pipelines and the file it comes from.
#[derive(Debug)]
pub(super) struct PipelineCache {
    cache: wgpu::PipelineCache,
    file: PathBuf,
    /// Bytes in the file: caches only grow.
    stored: AtomicUsize,
}

/// What a device needs to be asked for so that it can have a cache.
pub(super) fn wanted_features(adapter: &wgpu::Adapter) -> wgpu::Features {
    match std::env::var_os(FOLDER) {
        Some(_) => adapter.features() & wgpu::Features::PIPELINE_CACHE,
        None => wgpu::Features::empty(),
    }
}

impl PipelineCache {
    /// The cache of a device that was opened with [`wanted_features`]; `None` if there is none.
    pub fn open(device: &wgpu::Device) -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os(FOLDER)?);
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            log::info!("{FOLDER} is set, but this backend has no pipeline cache");
            return None;
        }
        let file = folder.join(wgpu::util::pipeline_cache_key(&device.adapter_info())?);
        let data = std::fs::read(&file).ok();
        // SAFETY: the file was written by `save` below, under the adapter's key and in one piece. wgpu and the
        // driver check its header, and start anew (`fallback`) if it is another driver's.
        let cache = unsafe {
            device.create_pipeline_cache(&wgpu::PipelineCacheDescriptor {
                label: Some("querent"),
                data: data.as_deref(),
                fallback: true,
            })
        };
        Some(Self { cache, file, stored: AtomicUsize::new(data.map_or(0, |data| data.len())) })
    }

    /// For a pipeline's descriptor.
    pub fn cache(&self) -> &wgpu::PipelineCache {
        &self.cache
    }

    /// Stores what is new. A cache that cannot be stored is only a slower start next time.
    pub fn save(&self) {
        let Some(data) = self.cache.get_data() else { return };
        if data.len() <= self.stored.load(Ordering::Relaxed) {
            return;
        }
        let folder = self.file.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = folder
            .map_err(|error| crate::Error::io(&self.file, error))
            .and_then(|()| write_atomically(&self.file, &data));
        match written {
            Ok(()) => self.stored.store(data.len(), Ordering::Relaxed),
            Err(error) => log::warn!("the pipeline cache: {error}"),
        }
    }
}
