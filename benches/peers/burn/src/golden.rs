//! Compares steps with those of assets/golden.

use crate::Outcome;
use crate::problem::{Problem, floats, ints};
use crate::step::{Batch, Mlp, gradients};
use burn::module::Param;
use burn::nn::Linear;
use burn::prelude::*;
use safetensors::SafeTensors;
use std::path::Path;

const CASES: [&str; 2] = ["syn1_st", "dropout_groups_st"];
/// Of a tensor's largest magnitude, in f32.
const TOLERANCE: f32 = 2e-4;

struct File<'a>(SafeTensors<'a>);

impl File<'_> {
    fn find(&self, name: &str) -> Option<(Vec<u32>, Vec<usize>)> {
        let view = self.0.tensor(name).ok()?;
        let words =
            view.data().chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        Some((words.collect(), view.shape().to_vec()))
    }

    fn floats(&self, name: &str) -> Outcome<(Vec<f32>, Vec<usize>)> {
        let (words, shape) = self.find(name).ok_or_else(|| format!("there is no {name}"))?;
        Ok((words.into_iter().map(f32::from_bits).collect(), shape))
    }

    fn ints(&self, name: &str) -> Option<Vec<i32>> {
        Some(self.find(name)?.0.into_iter().map(|word| word as i32).collect())
    }

    /// A network's layers; burn keeps weights transposed.
    fn net(&self, net: &str, device: &Device) -> Outcome<Mlp> {
        let layer = |index: usize| -> Outcome<Linear> {
            let (weight, shape) = self.floats(&format!("{net}.{index}.weight"))?;
            let (bias, _) = self.floats(&format!("{net}.{index}.bias"))?;
            let weight = floats(weight, [shape[0], shape[1]], device).transpose();
            let mut linear = burn::nn::LinearConfig::new(shape[1], shape[0]).init(device);
            linear.weight = Param::from_tensor(weight);
            linear.bias = Some(Param::from_tensor(floats(bias, [shape[0]], device)));
            Ok(linear)
        };
        Ok(Mlp { first: layer(0)?, second: layer(1)?, last: layer(2)? })
    }
}

/// Exits with an error if a step differs.
pub fn check(device: &Device) -> Outcome<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../assets/golden");
    let mut failed = 0;
    for case in CASES {
        let bytes = std::fs::read(folder.join(format!("{case}.safetensors")))?;
        let (_, header) = SafeTensors::read_metadata(&bytes)?;
        let meta = header.metadata().clone().ok_or("a golden step without metadata")?;
        let number = |key: &str| -> Outcome<f32> {
            Ok(meta.get(key).ok_or_else(|| format!("no {key} in the metadata"))?.parse()?)
        };
        let file = File(SafeTensors::deserialize(&bytes)?);
        let worst = check_case(&file, number, device)?;
        println!("{case}: J, L and 12 gradients, at most {worst:.1e} off");
        failed += usize::from(worst.is_nan() || worst > TOLERANCE);
    }
    if failed > 0 { Err(format!("{failed} steps differ").into()) } else { Ok(()) }
}

fn check_case(file: &File, number: impl Fn(&str) -> Outcome<f32>, device: &Device) -> Outcome<f32> {
    let (x, shape) = file.floats("x")?;
    let (rows, columns) = (shape[0], shape[1]);
    let (cost, _) = file.floats("cost")?;
    let (gumbel, noise) = file.floats("gumbel")?;
    let (k, d) = (noise[0], cost.len());
    let policy = file.net("policy", device)?;
    let predictor = file.net("predictor", device)?;
    let classes = file.floats("predictor.2.bias")?.0.len();
    let problem = Problem {
        d,
        k,
        alpha: number("alpha")?,
        lambda: number("lambda_ent")?,
        tau_hard: number("tau_hard")?,
        tau_soft: number("tau_soft")?,
        cost: floats(cost, [d, 1], device),
        group: file.ints("group_of_column").map(|group| ints(group, [columns], device)),
        class_weight: file
            .floats("class_weight")
            .ok()
            .map(|(weights, _)| floats(weights, [1, classes], device)),
    };
    let multipliers = |index: usize, width: usize| {
        let shape = [(k + 1) * rows, width];
        match file.floats(&format!("dropout.{index}")) {
            Ok((values, _)) => floats(values, shape, device),
            Err(_) => Tensor::ones(shape, device),
        }
    };
    let batch = Batch {
        x: floats(x, [rows, columns], device),
        y: ints(file.ints("y").ok_or("there is no y")?, [rows, 1], device),
        gumbel: gumbel
            .chunks_exact(rows * (d + 1))
            .map(|step| floats(step.to_vec(), [rows, d + 1], device))
            .collect(),
        dropout: [multipliers(0, width_of(&predictor.first)), multipliers(1, width_of(&predictor.second))],
    };
    let (objective, prediction, grads) = gradients(&problem, &policy, &predictor, &batch);
    let mut worst = 0.0f32;
    let mut compare = |got: Vec<f32>, name: &str| -> Outcome<()> {
        let (wanted, _) = file.floats(&format!("expect.{name}"))?;
        let largest = wanted.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        let pairs = got.iter().zip(&wanted);
        let error =
            pairs.fold(0.0f32, |most, (a, b)| if a.is_nan() { f32::NAN } else { most.max((a - b).abs()) });
        if got.len() != wanted.len() || error.is_nan() || error > TOLERANCE * largest {
            println!("{name} is off by {error:.1e}, its largest magnitude is {largest:.1e}");
        }
        worst = if got.len() == wanted.len() { worst.max(error / largest) } else { f32::NAN };
        Ok(())
    };
    compare(values(objective)?, "J_ent")?;
    compare(values(prediction)?, "L_pred")?;
    for (net, name, grads) in [(&policy, "policy", &grads[0]), (&predictor, "predictor", &grads[1])] {
        for (index, layer) in [&net.first, &net.second, &net.last].into_iter().enumerate() {
            let weight = grads.get::<2>(layer.weight.id).ok_or("a weight without a gradient")?;
            compare(values(weight.transpose())?, &format!("grad.{name}.{index}.weight"))?;
            let bias = layer.bias.as_ref().ok_or("a layer without a bias")?;
            let bias = grads.get::<1>(bias.id).ok_or("a bias without a gradient")?;
            compare(values(bias)?, &format!("grad.{name}.{index}.bias"))?;
        }
    }
    Ok(worst)
}

fn width_of(layer: &Linear) -> usize {
    layer.weight.val().dims()[1]
}

fn values<const D: usize>(tensor: Tensor<D>) -> Outcome<Vec<f32>> {
    tensor.into_data().try_to_vec().map_err(|error| format!("{error:?}").into())
}
