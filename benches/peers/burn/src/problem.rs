//! What is learned: sizes, costs, groups of columns, and what the objective is made of.

use burn::prelude::*;
use burn::tensor::TensorData;
use serde::Deserialize;

/// The shape of a request.
#[derive(Deserialize)]
pub struct Shape {
    pub d: usize,
    pub columns: usize,
    pub k: usize,
    pub classes: usize,
    pub hidden: usize,
    pub group_of_column: Vec<i32>,
}

/// A problem with its constants on a device.
pub struct Problem {
    pub d: usize,
    pub k: usize,
    pub alpha: f32,
    pub lambda: f32,
    pub tau_hard: f32,
    pub tau_soft: f32,
    /// d × 1.
    pub cost: Tensor<2>,
    /// The group of each column, if columns and groups are not the same.
    pub group: Option<Tensor<1, Int>>,
    /// 1 × classes, if they are not all 1.
    pub class_weight: Option<Tensor<2>>,
}

impl Problem {
    /// The published setting, as benches/support/shapes.rs has it.
    pub fn of(shape: &Shape, device: &Device) -> Self {
        let grouped = shape.columns != shape.d;
        Self {
            d: shape.d,
            k: shape.k,
            alpha: 0.02,
            lambda: 0.5,
            tau_hard: 1.0,
            tau_soft: 0.5,
            cost: Tensor::ones([shape.d, 1], device),
            group: grouped.then(|| ints(shape.group_of_column.clone(), [shape.columns], device)),
            class_weight: None,
        }
    }
}

pub fn ints<const D: usize>(values: Vec<i32>, shape: [usize; D], device: &Device) -> Tensor<D, Int> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

pub fn floats<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}
