//! The networks of a session, one instance at a time.

use crate::nn::{Layer, pitch};
use crate::policy::model::Network;

/// A network's units, each layer padded to its pitch.
#[derive(Clone, Debug)]
pub(super) struct Activations {
    /// The first layer before its ReLU.
    pub sum: Vec<f32>,
    /// What it was before the last feature.
    pub sum_before: Vec<f32>,
    pub hidden: [Vec<f32>; 2],
    pub output: Vec<f32>,
    /// Indices of the hidden units that are not zero.
    pub active: Vec<u32>,
}

impl Activations {
    pub fn new(network: &Network) -> Self {
        let [a, b, c] = [0, 1, 2].map(|layer| vec![0.0; pitch(network.stack.layers[layer].outputs)]);
        let active = vec![0; a.len().max(b.len())];
        Self { sum: a.clone(), sum_before: a.clone(), hidden: [a, b], output: c, active }
    }

    pub fn undo(&mut self) {
        self.sum.copy_from_slice(&self.sum_before);
    }
}

impl Network {
    /// A layer's bias.
    pub(super) fn bias(&self, layer: &Layer) -> &[f32] {
        &self.values[layer.bias..][..pitch(layer.outputs)]
    }

    /// A layer's weight, `[input][output]`, and the length of its rows.
    #[inline(always)]
    fn weight(&self, layer: &Layer) -> (&[f32], usize) {
        let row = pitch(layer.outputs);
        (&self.values[layer.weight..][..pitch(layer.inputs) * row], row)
    }
}

// Run through `pulp`, these are compiled for several instruction sets and the best one this machine has
// is taken; that is why everything in them is inlined. Products and sums stay separate, and each output
// adds up its inputs in their order, so the bits are the same on every machine.

/// Adds the rows of a feature's columns, times their values, and of its mask.
pub(super) struct Add<'a> {
    pub network: &'a Network,
    pub activations: &'a mut Activations,
    pub columns: &'a [u32],
    pub inputs: &'a [f32],
    pub mask: Option<usize>,
}

impl pulp::WithSimd for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Activations { sum, sum_before, .. } = self.activations;
        sum_before.copy_from_slice(sum);
        let (weight, len) = self.network.weight(&self.network.stack.layers[0]);
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
pub(super) struct Forward<'a> {
    pub network: &'a Network,
    pub activations: &'a mut Activations,
}

impl pulp::WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Activations { sum, hidden: [first, second], output, active, .. } = self.activations;
        for (unit, &sum) in first.iter_mut().zip(sum.iter()) {
            *unit = relu(sum);
        }
        linear(self.network, 1, first, active, second);
        for unit in second.iter_mut() {
            *unit = relu(*unit);
        }
        linear(self.network, 2, second, active, output);
    }
}

/// What is not a number stays so, so that an overflow shows in the outputs.
#[inline(always)]
fn relu(value: f32) -> f32 {
    if value < 0.0 { 0.0 } else { value }
}

/// y = x·W + b. `active` has room for as many indices as there are inputs.
#[inline(always)]
fn linear(network: &Network, layer: usize, x: &[f32], active: &mut [u32], y: &mut [f32]) {
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
