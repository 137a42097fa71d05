//! What a network leaves behind on its way forward, and needs on its way back.

use super::layer::pitch;
use super::stack::Stack;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};

/// A buffer and the row in it where a call's rows start.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// The buffer.
    pub buffer: BufferId,
    /// Its first row.
    pub row: usize,
}

impl Operand {
    /// From a row on.
    pub fn at(buffer: BufferId, row: usize) -> Self {
        Self { buffer, row }
    }
}

impl From<BufferId> for Operand {
    fn from(buffer: BufferId) -> Self {
        Self { buffer, row: 0 }
    }
}

/// A network's activations, and their gradients if it is trained.
#[derive(Clone, Debug)]
pub struct Tape {
    /// Running sum of the first layer under hard masks, a row an instance.
    pub sum: BufferId,
    /// Each layer's output. The last one's is overwritten by its gradient.
    pub outputs: Vec<BufferId>,
    /// The gradients of the hidden layers' outputs before their ReLU.
    pub grads: Vec<BufferId>,
    /// The gradient of the input, if it is asked for.
    pub grad_input: Option<BufferId>,
}

impl Tape {
    /// A tape of `tape_rows` rows for `rows` instances; `input_rows` of the input's gradient.
    pub fn declare(
        b: &mut PlanBuilder,
        name: &str,
        stack: &Stack,
        [rows, tape_rows, input_rows]: [usize; 3],
    ) -> Self {
        let forward = Self::forward_only(b, name, stack, [rows, tape_rows]);
        let mut part = |what: String, len| b.buffer(format!("{name}.{what}"), Elem::F32, len, Scope::Lane);
        let hidden = &stack.layers[..stack.layers.len() - 1];
        let grads = hidden
            .iter()
            .enumerate()
            .map(|(index, layer)| part(format!("grad{}", index + 1), tape_rows * pitch(layer.outputs)))
            .collect();
        let inputs = stack.layers[0].inputs;
        let grad_input = (input_rows > 0).then(|| part("grad_input".into(), input_rows * pitch(inputs)));
        Self { grads, grad_input, ..forward }
    }

    /// One for a network that is not trained.
    pub fn forward_only(
        b: &mut PlanBuilder,
        name: &str,
        stack: &Stack,
        [rows, tape_rows]: [usize; 2],
    ) -> Self {
        let mut part = |what: &str, len| b.buffer(format!("{name}.{what}"), Elem::F32, len, Scope::Lane);
        let sum = part("sum", rows * pitch(stack.layers[0].outputs));
        let last = stack.layers.len() - 1;
        let outputs = stack.layers.iter().enumerate().map(|(index, layer)| {
            let what = if index == last { "logits".to_string() } else { format!("hidden{}", index + 1) };
            part(&what, tape_rows * pitch(layer.outputs))
        });
        Self { sum, outputs: outputs.collect(), grads: Vec::new(), grad_input: None }
    }

    /// The last layer's outputs.
    pub fn logits(&self) -> BufferId {
        self.outputs[self.outputs.len() - 1]
    }
}
