//! What a replayed step gave, and its file.

use querent::files::write_atomically;
use querent::nn::{Stack, Tensors};
use querent::{Error, Result};
use safetensors::{Dtype, tensor::TensorView};
use std::path::Path;

/// What a replayed step gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// J, entropy bonus included: batch mean, like the others.
    pub objective: f64,
    /// The predictor's loss.
    pub prediction_loss: f64,
    /// Expected loss and cost.
    pub loss_and_cost: f64,
    /// Entropy over the surviving steps.
    pub entropy: f64,
    /// The feature acquired at each step: `[k][B]`.
    pub path: Vec<u32>,
    /// ∇J: the policy's gradients, in PyTorch's layout.
    pub policy: Vec<Tensors>,
    /// ∇L_pred: the predictor's.
    pub predictor: Vec<Tensors>,
    /// The sub-masks of what was asked that the predictor also learned on: `[B][d]`. Empty if it did not.
    pub submask: Vec<u32>,
    /// The weights of policy and predictor after the update. Empty, like the next, if the case has none.
    pub after: [Vec<Tensors>; 2],
    /// Their moving averages.
    pub average: [Vec<Tensors>; 2],
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) networks: [Stack; 2],
    pub(super) is_f64: bool,
}

impl Outcome {
    /// Every real tensor: name, shape, values.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>, Vec<f64>)> {
        let scalar = |name: &str, value| (name.to_string(), vec![1], vec![value]);
        let mut tensors = vec![
            scalar("J_ent", self.objective),
            scalar("L_pred", self.prediction_loss),
            scalar("G", self.loss_and_cost),
            scalar("H", self.entropy),
        ];
        let ([policy, predictor], [after, average]) = (&self.networks, [&self.after, &self.average]);
        let networks = [
            ("grad.policy", &self.policy, policy),
            ("grad.predictor", &self.predictor, predictor),
            ("after.policy", &after[0], policy),
            ("after.predictor", &after[1], predictor),
            ("average.policy", &average[0], policy),
            ("average.predictor", &average[1], predictor),
        ];
        for (name, values, stack) in networks {
            for ((i, values), layer) in values.iter().enumerate().zip(&stack.layers) {
                let weight = format!("{name}.{i}.weight");
                tensors.push((weight, vec![layer.outputs, layer.inputs], values.weight.clone()));
                tensors.push((format!("{name}.{i}.bias"), vec![layer.outputs], values.bias.clone()));
            }
        }
        tensors
    }

    /// The tensors of whole numbers: name, shape, values.
    pub fn words(&self) -> Vec<(String, Vec<usize>, Vec<u32>)> {
        let mut tensors = vec![("path".into(), vec![self.steps, self.batch], self.path.clone())];
        if !self.submask.is_empty() {
            let shape = vec![self.batch, self.submask.len() / self.batch];
            tensors.push(("submask".into(), shape, self.submask.clone()));
        }
        tensors
    }

    /// Writes the outcome to a file, under a temporary name first. Reals are f64 if the engine was.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bad = |error: safetensors::SafeTensorError| Error::file(path, error.to_string()).because(error);
        let dtype = if self.is_f64 { Dtype::F64 } else { Dtype::F32 };
        let mut buffers: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = self
            .tensors()
            .into_iter()
            .map(|(name, shape, values)| {
                let bytes = if self.is_f64 {
                    values.iter().flat_map(|value| value.to_le_bytes()).collect()
                } else {
                    values.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect()
                };
                (name, dtype, shape, bytes)
            })
            .collect();
        buffers.extend(self.words().into_iter().map(|(name, shape, values)| {
            let bytes = values.iter().flat_map(|&value| (value as i32).to_le_bytes()).collect();
            (name, Dtype::I32, shape, bytes)
        }));
        let views = buffers
            .iter()
            .map(|(name, dtype, shape, bytes)| {
                Ok((name, TensorView::new(*dtype, shape.clone(), bytes).map_err(bad)?))
            })
            .collect::<Result<Vec<_>>>()?;
        write_atomically(path, &safetensors::serialize(views, None).map_err(bad)?)
    }
}
