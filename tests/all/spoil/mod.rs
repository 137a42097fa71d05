//! Safetensors files to spoil.

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A tensor as a file has it.
#[derive(Clone)]
pub struct Tensor {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Tensor {
    pub fn f32(shape: &[usize], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { dtype: Dtype::F32, shape: shape.to_vec(), bytes }
    }

    pub fn i64(shape: &[usize], values: &[i64]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { dtype: Dtype::I64, shape: shape.to_vec(), bytes }
    }

    /// Its values, all of which have four bytes in the goldens.
    pub fn words(&self) -> impl Iterator<Item = [u8; 4]> + '_ {
        self.bytes.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]])
    }

    pub fn put(&mut self, at: usize, word: [u8; 4]) {
        self.bytes[at * 4..][..4].copy_from_slice(&word);
    }

    pub fn put_f32(&mut self, at: usize, value: f32) {
        assert_eq!(self.dtype, Dtype::F32);
        self.put(at, value.to_le_bytes());
    }

    pub fn put_i32(&mut self, at: usize, value: i32) {
        assert_eq!(self.dtype, Dtype::I32);
        self.put(at, value.to_le_bytes());
    }

    /// One shorter along a dimension: what is cut off is at the end of the bytes, as only shapes matter.
    pub fn shorten(&mut self, dimension: usize) {
        self.shape[dimension] -= 1;
        self.bytes.truncate(self.shape.iter().product::<usize>() * 4);
    }
}

/// A safetensors file to spoil.
#[derive(Clone)]
pub struct File {
    pub tensors: BTreeMap<String, Tensor>,
    pub metadata: HashMap<String, String>,
}

impl File {
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("reads");
        let (_, header) = SafeTensors::read_metadata(&bytes).expect("a safetensors file");
        let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let tensors = file.iter().map(|(name, view)| {
            let (dtype, shape, bytes) = (view.dtype(), view.shape().to_vec(), view.data().to_vec());
            (name.to_string(), Tensor { dtype, shape, bytes })
        });
        Self { tensors: tensors.collect(), metadata: header.metadata().clone().unwrap_or_default() }
    }

    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.get_mut(name).unwrap_or_else(|| panic!("no `{name}` in the file"))
    }

    pub fn set(&mut self, key: &str, value: &str) {
        assert!(self.metadata.insert(key.into(), value.into()).is_some(), "no `{key}` in the file");
    }

    pub fn bytes(&self) -> Vec<u8> {
        let views = self.tensors.iter().map(|(name, tensor)| {
            let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes);
            (name.as_str(), view.expect("shape and bytes agree"))
        });
        safetensors::serialize(views, Some(self.metadata.clone())).expect("serialises")
    }

    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.bytes()).expect("writes");
    }
}
