//! A training run's state on the host and in a file.

use super::config::{Config, Stage};
use crate::error::{Error, Result};
use crate::files::write_atomically;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Everything a run needs to continue with equal bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The run's settings, as JSON.
    config: String,
    /// Where the staged procedure is, as JSON; empty for a stepper alone.
    pub(super) progress: String,
    /// The stage it was in.
    pub(super) stage: Stage,
    /// Buffers of reals.
    pub(super) reals: BTreeMap<String, Vec<f32>>,
    /// Buffers of integers.
    pub(super) words: BTreeMap<String, Vec<u32>>,
}

/// What the file says it is.
const FORMAT: &str = "querent checkpoint 1";

impl Checkpoint {
    pub(super) fn new(config: &Config, stage: Stage) -> Self {
        let config = serde_json::to_string(config).unwrap_or_default();
        Self { config, progress: String::new(), stage, reals: BTreeMap::new(), words: BTreeMap::new() }
    }

    pub(super) fn check_config(&self, config: &Config) -> Result<()> {
        let mine = Checkpoint::new(config, self.stage).config;
        if mine == self.config {
            return Ok(());
        }
        Err(Error::Config(format!(
            "the checkpoint is of another configuration: it was made with {}, this run has {mine}",
            self.config
        )))
    }

    pub(super) fn check_len(&self, name: &str, is_real: bool, len: usize) -> Result<()> {
        let found =
            if is_real { self.reals.get(name).map(Vec::len) } else { self.words.get(name).map(Vec::len) };
        if found == Some(len) {
            return Ok(());
        }
        Err(Error::Config(format!(
            "the checkpoint is of another problem or engine: `{name}` has {} elements there, {len} here",
            found.unwrap_or(0)
        )))
    }

    /// On how many lanes something of so many elements was counted; at least one, whatever is there.
    pub(super) fn lanes(&self, name: &str, len: usize) -> usize {
        self.reals.get(name).map_or(1, |values| (values.len() / len).max(1))
    }

    /// What was counted on each lane, for so many lanes: as it was, or all on the first where there were others.
    pub(super) fn on_lanes(&self, name: &str, lanes: usize, len: usize) -> Vec<f32> {
        let stored = self.reals.get(name).map_or(&[][..], Vec::as_slice);
        if stored.len() == lanes * len {
            return stored.to_vec();
        }
        let mut sums = vec![0.0; lanes * len];
        for lane in stored.chunks_exact(len) {
            sums.iter_mut().zip(lane).for_each(|(sum, value)| *sum += value);
        }
        sums
    }

    /// Writes the checkpoint to a file, under a temporary name first.
    ///
    /// # Errors
    /// The file cannot be written; an older file of that name is then still there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let stage = serde_json::to_string(&self.stage).unwrap_or_default();
        let metadata = HashMap::from(
            [
                ("format", FORMAT.to_string()),
                ("config", self.config.clone()),
                ("stage", stage),
                ("progress", self.progress.clone()),
            ]
            .map(|(key, value)| (key.to_string(), value)),
        );
        let bad = |error: safetensors::SafeTensorError| Error::file(path, error.to_string());
        let mut tensors = Vec::new();
        for (name, values) in &self.reals {
            let view = TensorView::new(Dtype::F32, vec![values.len()], bytemuck::cast_slice(values));
            tensors.push((name.as_str(), view.map_err(bad)?));
        }
        for (name, values) in &self.words {
            let view = TensorView::new(Dtype::U32, vec![values.len()], bytemuck::cast_slice(values));
            tensors.push((name.as_str(), view.map_err(bad)?));
        }
        let bytes = safetensors::serialize(tensors, Some(metadata)).map_err(bad)?;
        write_atomically(path, &bytes)
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// The file cannot be read, or is not a checkpoint.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
        let bad = |error: safetensors::SafeTensorError| {
            Error::file(path, format!("not a checkpoint of querent, or cut off: {error}"))
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(bad)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        if metadata.get("format").map(String::as_str) != Some(FORMAT) {
            return Err(Error::file(path, "not a checkpoint of querent"));
        }
        let text = |key: &str| {
            metadata.get(key).ok_or_else(|| Error::file(path, format!("the checkpoint has no `{key}`")))
        };
        let stage = serde_json::from_str(text("stage")?)
            .map_err(|error| Error::file(path, format!("the checkpoint's stage cannot be read: {error}")))?;
        let mut checkpoint = Self {
            config: text("config")?.clone(),
            progress: text("progress")?.clone(),
            stage,
            reals: BTreeMap::new(),
            words: BTreeMap::new(),
        };
        for (name, view) in SafeTensors::deserialize(&bytes).map_err(bad)?.iter() {
            let words = view.data().chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            match view.dtype() {
                Dtype::F32 => {
                    checkpoint.reals.insert(name.to_string(), words.map(f32::from_bits).collect());
                }
                Dtype::U32 => {
                    checkpoint.words.insert(name.to_string(), words.collect());
                }
                other => return Err(Error::file(path, format!("tensor `{name}` has type {other:?}"))),
            }
        }
        Ok(checkpoint)
    }
}
