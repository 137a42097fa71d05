//! A training run's state on the host and in a file.

use super::differences::differences;
use super::method::Method;
use crate::error::{Error, Result};
use crate::files::{in_order, write_atomically};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Everything a run needs to continue with equal bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The method's name.
    method: String,
    /// The run's settings, as JSON.
    config: String,
    /// Where the procedure is, as JSON; empty for a stepper alone.
    progress: String,
    /// The stage it was in, as JSON.
    stage: String,
    /// Buffers of reals.
    pub(super) reals: BTreeMap<String, Vec<f32>>,
    /// Buffers of integers.
    pub(super) words: BTreeMap<String, Vec<u32>>,
}

/// What the file says it is.
const FORMAT: &str = "querent checkpoint 4";

impl Checkpoint {
    pub(super) fn new<M: Method>(config: &M::Config, stage: &M::Stage) -> Result<Self> {
        Ok(Self {
            method: M::NAME.into(),
            config: text("settings", config)?,
            progress: String::new(),
            stage: text("stage", stage)?,
            reals: BTreeMap::new(),
            words: BTreeMap::new(),
        })
    }

    pub(super) fn check_config<M: Method>(&self, config: &M::Config) -> Result<()> {
        if self.method != M::NAME {
            return Err(Error::Config(format!(
                "the checkpoint is of the method {}, this run is of {}",
                self.method,
                M::NAME
            )));
        }
        let mine = text("settings", config)?;
        if mine == self.config {
            return Ok(());
        }
        let now = serde_json::from_str(&mine).unwrap_or_default();
        Err(Error::Config(format!(
            "the checkpoint is of another configuration: {}",
            differences(&self.settings(), &now).join("; ")
        )))
    }

    /// The settings of the run it is of; null if they cannot be read.
    pub fn settings(&self) -> serde_json::Value {
        serde_json::from_str(&self.config).unwrap_or_default()
    }

    /// Notes where the procedure is.
    pub(super) fn set_place(&mut self, place: &impl Serialize) -> Result<()> {
        self.progress = text("progress", place)?;
        Ok(())
    }

    /// Where the procedure was.
    pub(super) fn place<P: DeserializeOwned>(&self) -> Result<P> {
        serde_json::from_str(&self.progress)
            .map_err(|error| Error::Config(format!("the checkpoint's progress cannot be read: {error}")))
    }

    /// The stage it was in.
    pub(super) fn stage<S: DeserializeOwned>(&self) -> Result<S> {
        serde_json::from_str(&self.stage)
            .map_err(|error| Error::Config(format!("the checkpoint's stage cannot be read: {error}")))
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
        let bytes = self.to_bytes().map_err(|error| Error::file(path, error.message()))?;
        write_atomically(path, &bytes)
    }

    /// The checkpoint as the bytes of its file.
    ///
    /// # Errors
    /// None that is known: what it holds can be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let metadata = HashMap::from(
            [
                ("format", FORMAT.to_string()),
                ("method", self.method.clone()),
                ("config", self.config.clone()),
                ("stage", self.stage.clone()),
                ("progress", self.progress.clone()),
            ]
            .map(|(key, value)| (key.to_string(), value)),
        );
        let bad = |error: safetensors::SafeTensorError| Error::Config(error.to_string());
        let mut tensors = Vec::new();
        for (name, values) in &self.reals {
            let view = TensorView::new(Dtype::F32, vec![values.len()], bytemuck::cast_slice(values));
            tensors.push((name.as_str(), view.map_err(bad)?));
        }
        for (name, values) in &self.words {
            let view = TensorView::new(Dtype::U32, vec![values.len()], bytemuck::cast_slice(values));
            tensors.push((name.as_str(), view.map_err(bad)?));
        }
        safetensors::serialize(tensors, Some(metadata)).map_err(bad).map(in_order)
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// The file cannot be read, or is not a checkpoint.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
        Self::from_bytes(&bytes).map_err(|error| Error::file(path, error.message()))
    }

    /// Reads a checkpoint from the bytes of its file.
    ///
    /// # Errors
    /// They are not a checkpoint, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let fail = |what: String| Error::Config(what);
        let bad = |error: safetensors::SafeTensorError| {
            fail(format!("not a checkpoint of querent, or cut off: {error}"))
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(bad)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        match metadata.get("format").map(String::as_str) {
            Some(FORMAT) => {}
            Some(other) if other.starts_with("querent checkpoint") => {
                return Err(fail(format!(
                    "it says it is a `{other}`, but this version reads a `{FORMAT}`: a run is to be finished with the \
                     version that began it"
                )));
            }
            _ => return Err(fail("not a checkpoint of querent".into())),
        }
        let entry =
            |key: &str| metadata.get(key).ok_or_else(|| fail(format!("the checkpoint has no `{key}`")));
        let mut checkpoint = Self {
            method: entry("method")?.clone(),
            config: entry("config")?.clone(),
            progress: entry("progress")?.clone(),
            stage: entry("stage")?.clone(),
            reals: BTreeMap::new(),
            words: BTreeMap::new(),
        };
        for (name, view) in SafeTensors::deserialize(bytes).map_err(bad)?.iter() {
            let words = view.data().chunks_exact(4).map(bytemuck::pod_read_unaligned::<u32>);
            match view.dtype() {
                Dtype::F32 => {
                    checkpoint.reals.insert(name.to_string(), words.map(f32::from_bits).collect());
                }
                Dtype::U32 => {
                    checkpoint.words.insert(name.to_string(), words.collect());
                }
                other => return Err(fail(format!("tensor `{name}` has type {other:?}"))),
            }
        }
        Ok(checkpoint)
    }
}

/// As JSON.
fn text(what: &str, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::Config(format!("the {what} cannot be stored: {error}")))
}
