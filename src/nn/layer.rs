//! One linear layer: where it lies among its group's weights.

/// A width as it is laid out: a multiple of four, so that kernels can work on vectors of four.
pub fn pitch(width: usize) -> usize {
    width.next_multiple_of(4)
}

/// One layer's place in its group's buffers. Its weight is stored `[input][output]`, so that the first layer under hard
/// masks reads whole rows, padded with zeros to multiples of four both ways; gradients of the padding are zero, so it
/// stays zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Inputs.
    pub inputs: usize,
    /// Outputs.
    pub outputs: usize,
    /// Where the weight starts.
    pub weight: usize,
    /// Where the bias starts.
    pub bias: usize,
    /// Whether a ReLU follows.
    pub relu: bool,
}

impl Layer {
    /// Where the next layer may start.
    pub fn end(&self) -> usize {
        self.bias + pitch(self.outputs)
    }
}

/// A weight in PyTorch's layout, `[output][input]`, and its bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensors {
    /// `[outputs][inputs]`.
    pub weight: Vec<f64>,
    /// `[outputs]`.
    pub bias: Vec<f64>,
}
