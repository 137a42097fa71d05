//! A network on the host, one instance at a time.
//!
//! It reads `(x ⊙ m, m)`, so the first layer is a running sum: a new feature adds its rows of the weight, and nothing
//! else changes. All buffers are made once: observing allocates nothing.

use super::policy::Tensor;
use crate::engine::cpu::instructions;
use crate::error::{Error, Result};
use crate::nn::{Layer, Stack, Tensors, pitch};
use std::borrow::Cow;

/// A network's weights as a session reads them: `[input][output]`, so that a feature's rows of the first
/// layer are contiguous.
#[derive(Clone, Debug, PartialEq)]
pub struct Perceptron {
    name: Cow<'static, str>,
    stack: Stack,
    values: Vec<f32>,
}

impl Perceptron {
    /// From layers in PyTorch's layout, rounded to f32. `widths` are those of the inputs, the hidden layers and the
    /// outputs.
    ///
    /// # Errors
    /// Layers of other widths, or a number that is not finite.
    pub fn new(name: impl Into<Cow<'static, str>>, widths: &[usize], layers: &[Tensors]) -> Result<Self> {
        let name = name.into();
        let fail = |what: String| Err(Error::Config(what));
        let count = widths.len() - 1;
        if layers.len() != count {
            return fail(format!("the {name} has {} layers instead of {count}", layers.len()));
        }
        for ((index, layer), width) in layers.iter().enumerate().zip(widths.windows(2)) {
            let (inputs, outputs) = (width[0], width[1]);
            if Some(layer.weight.len()) != inputs.checked_mul(outputs) || layer.bias.len() != outputs {
                return fail(format!(
                    "layer {index} of the {name} has {} weights and {} biases, but it leads from {inputs} to \
                     {outputs} units",
                    layer.weight.len(),
                    layer.bias.len()
                ));
            }
            for (what, values) in [("weight", &layer.weight), ("bias", &layer.bias)] {
                if let Some(at) = values.iter().position(|&value| !(value as f32).is_finite()) {
                    let value = values[at];
                    return fail(format!(
                        "element {at} of `{name}.{index}.{what}` is {value:e}, not a finite number of 32 bits"
                    ));
                }
            }
        }
        let stack = Stack::new(0, widths);
        let values = stack.pack(layers).into_iter().map(|value| value as f32).collect();
        Ok(Self { name, stack, values })
    }

    /// Its tensors, as a model's file has them: `NAME.0.weight` (`[outputs, inputs]`, as PyTorch's linear layers),
    /// `NAME.0.bias`, …
    pub fn tensors(&self) -> Vec<Tensor> {
        let values: Vec<f64> = self.values.iter().map(|&value| value.into()).collect();
        let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect();
        let layers = self.stack.layers.iter().zip(self.stack.unpack(&values)).enumerate();
        layers
            .flat_map(|(index, (layer, tensors))| {
                let name = |what: &str| format!("{}.{index}.{what}", self.name);
                [
                    Tensor {
                        name: name("weight"),
                        shape: vec![layer.outputs, layer.inputs],
                        values: narrow(&tensors.weight),
                    },
                    Tensor { name: name("bias"), shape: vec![layer.outputs], values: narrow(&tensors.bias) },
                ]
            })
            .collect()
    }

    /// How many layers it has.
    pub(crate) fn layers(&self) -> usize {
        self.stack.layers.len()
    }

    /// A layer's weight, `[input][output]`, the length of its rows, and its bias: for whoever runs many instances at once.
    pub(crate) fn layer(&self, index: usize) -> (&[f32], usize, &[f32]) {
        let layer = &self.stack.layers[index];
        let (weight, row) = self.weight(layer);
        (weight, row, self.bias(layer))
    }

    /// A layer's bias.
    fn bias(&self, layer: &Layer) -> &[f32] {
        &self.values[layer.bias..][..pitch(layer.outputs)]
    }

    /// A layer's weight, `[input][output]`, and the length of its rows.
    #[inline(always)]
    fn weight(&self, layer: &Layer) -> (&[f32], usize) {
        let row = pitch(layer.outputs);
        (&self.values[layer.weight..][..pitch(layer.inputs) * row], row)
    }
}

/// A network's units for one instance, each layer padded to its pitch.
#[derive(Clone, Debug)]
pub struct Activations<'a> {
    network: &'a Perceptron,
    arch: pulp::Arch,
    /// The first layer before its ReLU.
    sum: Vec<f32>,
    /// What it was before the last feature.
    sum_before: Vec<f32>,
    /// The hidden layers.
    hidden: Vec<Vec<f32>>,
    output: Vec<f32>,
    /// Indices of the hidden units that are not zero.
    active: Vec<u32>,
}

impl<'a> Activations<'a> {
    /// With nothing seen.
    pub fn new(network: &'a Perceptron) -> Self {
        let mut layers: Vec<Vec<f32>> =
            network.stack.layers.iter().map(|layer| vec![0.0; pitch(layer.outputs)]).collect();
        let output = layers.pop().unwrap_or_default();
        let sum = layers.first().cloned().unwrap_or_else(|| output.clone());
        let active = vec![0; layers.iter().map(Vec::len).max().unwrap_or(0)];
        let arch = instructions::best();
        let mut units = Self { network, arch, sum_before: sum.clone(), sum, hidden: layers, output, active };
        units.reset();
        units
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.sum.copy_from_slice(self.network.bias(&self.network.stack.layers[0]));
        self.evaluate();
    }

    /// Adds the values of columns, and a row of the mask.
    pub fn observe(&mut self, columns: &[u32], inputs: &[f32], mask: Option<usize>) {
        let arch = self.arch;
        arch.dispatch(Add { activations: self, columns, inputs, mask });
        self.evaluate();
    }

    /// Forgets everything but the values of these columns, and masks among them.
    pub fn read(&mut self, columns: &[u32], inputs: &[f32]) {
        self.sum.copy_from_slice(self.network.bias(&self.network.stack.layers[0]));
        self.observe(columns, inputs, None);
    }

    /// Takes the last observation back.
    pub fn undo(&mut self) {
        self.sum.copy_from_slice(&self.sum_before);
        self.evaluate();
    }

    fn evaluate(&mut self) {
        let arch = self.arch;
        arch.dispatch(Forward { activations: self });
    }

    /// The first layer before its ReLU.
    pub fn sum(&self) -> &[f32] {
        &self.sum
    }

    /// The last layer.
    pub fn output(&self) -> &[f32] {
        &self.output
    }

    /// Whether the outputs are finite.
    pub fn is_finite(&self) -> bool {
        self.output.iter().all(|value| value.is_finite())
    }
}

// Run through `pulp`, these are compiled for several instruction sets and the best one this machine has
// is taken; that is why everything in them is inlined. Products and sums stay separate, and each output
// adds up its inputs in their order, so the bits are the same on every machine.

/// Adds the rows of a feature's columns, times their values, and of its mask.
struct Add<'a, 'n> {
    activations: &'a mut Activations<'n>,
    columns: &'a [u32],
    inputs: &'a [f32],
    mask: Option<usize>,
}

impl pulp::WithSimd for Add<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Activations { network, sum, sum_before, .. } = self.activations;
        sum_before.copy_from_slice(sum);
        let (weight, len) = network.weight(&network.stack.layers[0]);
        for (&column, &input) in self.columns.iter().zip(self.inputs) {
            for (sum, &weight) in sum.iter_mut().zip(&weight[column as usize * len..][..len]) {
                *sum += input * weight;
            }
        }
        if let Some(mask) = self.mask {
            for (sum, &weight) in sum.iter_mut().zip(&weight[mask * len..][..len]) {
                *sum += weight;
            }
        }
    }
}

/// Runs a network from its running sum.
struct Forward<'a, 'n> {
    activations: &'a mut Activations<'n>,
}

impl pulp::WithSimd for Forward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Activations { network, sum, hidden, output, active, .. } = self.activations;
        let Some(first) = hidden.first_mut() else {
            output.copy_from_slice(sum);
            return;
        };
        for (unit, &sum) in first.iter_mut().zip(sum.iter()) {
            *unit = relu(sum);
        }
        for layer in 1..hidden.len() {
            let (before, after) = hidden.split_at_mut(layer);
            let units = &mut after[0];
            linear(network, layer, &before[layer - 1], active, units);
            for unit in units.iter_mut() {
                *unit = relu(*unit);
            }
        }
        linear(network, hidden.len(), &hidden[hidden.len() - 1], active, output);
    }
}

/// What is not a number stays so, so that an overflow shows in the outputs.
#[inline(always)]
fn relu(value: f32) -> f32 {
    if value < 0.0 { 0.0 } else { value }
}

/// y = x·W + b. `active` has room for as many indices as there are inputs.
#[inline(always)]
fn linear(network: &Perceptron, layer: usize, x: &[f32], active: &mut [u32], y: &mut [f32]) {
    let layer = &network.stack.layers[layer];
    let (weight, len) = network.weight(layer);
    y.copy_from_slice(network.bias(layer));
    let mut at = 0;
    if len >= WIDE {
        // About half of the inputs are zero after a ReLU: their rows need not be read.
        let mut count = 0;
        for (index, &x) in x.iter().enumerate() {
            active[count] = index as u32;
            count += usize::from(x != 0.0);
        }
        let (groups, rest) = active[..count].as_chunks::<ABREAST>();
        for group in groups {
            stream(x, weight, *group, y);
        }
        for &index in rest {
            stream(x, weight, [index], y);
        }
        return;
    }
    let rows = || x.iter().copied().zip(weight.chunks_exact(len));
    while len - at >= 16 {
        block::<16>(rows(), at, y);
        at += 16;
    }
    while len - at >= 8 {
        block::<8>(rows(), at, y);
        at += 8;
    }
    if len > at {
        block::<4>(rows(), at, y);
    }
}

/// From this width on, rows are read whole, one after the other.
const WIDE: usize = 64;
/// Rows that are read side by side.
const ABREAST: usize = 4;

/// Adds some inputs times their rows of the weight to the outputs.
#[inline(always)]
fn stream<const ROWS: usize>(x: &[f32], weight: &[f32], inputs: [u32; ROWS], y: &mut [f32]) {
    let factors = inputs.map(|input| x[input as usize]);
    let rows = inputs.map(|input| &weight[input as usize * y.len()..][..y.len()]);
    for (at, y) in y.iter_mut().enumerate() {
        let mut sum = *y;
        for (row, factor) in rows.iter().zip(factors) {
            sum += factor * row[at];
        }
        *y = sum;
    }
}

/// Adds inputs times their rows of the weight to so many outputs from the `at`-th on.
#[inline(always)]
fn block<'a, const WIDTH: usize>(rows: impl Iterator<Item = (f32, &'a [f32])>, at: usize, y: &mut [f32]) {
    let y = &mut y[at..][..WIDTH];
    let mut sums = [0.0; WIDTH];
    sums.copy_from_slice(y);
    for (x, row) in rows {
        for (sum, &weight) in sums.iter_mut().zip(&row[at..][..WIDTH]) {
            *sum += x * weight;
        }
    }
    y.copy_from_slice(&sums);
}
