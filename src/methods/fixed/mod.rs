//! What a policy has to beat: asking nothing, and asking the same best features of everybody.

use crate::data::{Dataset, Part, Split};
use crate::engine::Engine;
use crate::engine::cpu::matmul::{Finish, Shape, Start, matmul};
use crate::error::{Error, Result};
use crate::methods::nmppg::{Config, Stepper};
use crate::nn::Tensors;
use crate::policy::evaluate::{Summary, Traces};
use crate::problem::{Feature, Problem};
use serde::{Deserialize, Serialize};

/// Validation rows that decide between subsets, at most.
const ROWS: usize = 1_000;
/// Features that stay candidates after the first look, at most.
const CANDIDATES: usize = 60;

/// A fixed set of features, asked of everybody, and how well a predictor of its own does with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subset {
    /// The features, in the order of their choice.
    pub features: Vec<String>,
    /// What they cost together.
    pub cost: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// F1 averaged over the classes.
    pub macro_f1: f64,
    /// Loss, weighted by class if the problem says so.
    pub loss: f64,
}

/// A predictor of any subset, for choosing one.
struct Selector {
    rows: usize,
    /// The first layer's running sum, row after row.
    sum: Vec<f32>,
    /// First-layer weights, `[input][hidden]`; the second and third layer, `[output][input]`.
    first: Vec<f32>,
    rest: [(Vec<f32>, Vec<f32>); 2],
    hidden: [usize; 2],
    x: Vec<f32>,
    y: Vec<u32>,
    columns: usize,
    weights: Vec<f32>,
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// The rows of a split as the networks read them, at most so many.
fn inputs(data: &Dataset, part: Part, most: usize) -> (Vec<f32>, Vec<u32>) {
    let columns = data.problem().columns();
    let split = &data.splits()[part as usize];
    let rows = split.y.len().min(most);
    let x = match data.images() {
        Some(images) => {
            let divisor = data.divisor().unwrap_or(1) as f32;
            images[part as usize][..rows * columns].iter().map(|&byte| f32::from(byte) / divisor).collect()
        }
        None => split.x[..rows * columns].to_vec(),
    };
    (x, split.y[..rows].to_vec())
}

impl Selector {
    fn new(data: &Dataset, layers: &[Tensors]) -> Self {
        let problem = data.problem();
        let columns = problem.columns();
        let (x, y) = inputs(data, Part::Validation, ROWS);
        let hidden = [layers[0].bias.len(), layers[1].bias.len()];
        let wide = columns + problem.features().len();
        let first = by_input(&layers[0].weight, wide);
        let bias = narrow(&layers[0].bias);
        let rows = y.len();
        let mut selector = Self {
            rows,
            sum: (0..rows).flat_map(|_| bias.iter().copied()).collect(),
            first,
            rest: [
                (by_input(&layers[1].weight, hidden[0]), narrow(&layers[1].bias)),
                (narrow(&layers[2].weight), narrow(&layers[2].bias)),
            ],
            hidden,
            x,
            y,
            columns,
            weights: narrow(problem.class_weights()),
        };
        let known: Vec<usize> = (columns - problem.known_columns()..columns).collect();
        selector.sum = selector.with(&known, None);
        selector
    }

    /// The running sum with more columns, and the mask of their feature.
    fn with(&self, columns: &[usize], feature: Option<usize>) -> Vec<f32> {
        let width = self.hidden[0];
        let mut sum = self.sum.clone();
        for (row, sum) in sum.chunks_exact_mut(width).enumerate() {
            let x = &self.x[row * self.columns..][..self.columns];
            for &column in columns {
                let value = x[column];
                if value != 0.0 {
                    let weight = &self.first[column * width..][..width];
                    sum.iter_mut().zip(weight).for_each(|(sum, weight)| *sum += value * weight);
                }
            }
            if let Some(feature) = feature {
                let weight = &self.first[(self.columns + feature) * width..][..width];
                sum.iter_mut().zip(weight).for_each(|(sum, weight)| *sum += weight);
            }
        }
        sum
    }

    /// The mean loss from a running sum.
    fn loss(&self, sum: &[f32]) -> f64 {
        let [(w2, b2), (w3, b3)] = &self.rest;
        let (h1, h2) = (self.hidden[0], self.hidden[1]);
        let mut second = vec![0.0f32; self.rows * h2];
        let first: Vec<f32> = sum.iter().map(|value| value.max(0.0)).collect();
        matmul(
            (&mut second, Shape::rows(self.rows, h2, h2)),
            Start::Bias(b2),
            1.0,
            (&first, Shape::rows(self.rows, h1, h1)),
            (w2, Shape::rows(h1, h2, h2)),
            (Finish::Relu, None),
        );
        let mut total = 0.0;
        let mut logits = vec![0.0f32; b3.len()];
        for (row, hidden) in second.chunks_exact(h2).enumerate() {
            for ((logit, weight), bias) in logits.iter_mut().zip(w3.chunks_exact(h2)).zip(b3) {
                *logit = bias + weight.iter().zip(hidden.iter()).map(|(w, h)| w * h).sum::<f32>();
            }
            let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mass: f32 = logits.iter().map(|logit| (logit - top).exp()).sum();
            let label = self.y[row] as usize;
            total += f64::from(self.weights[label] * (mass.ln() + top - logits[label]));
        }
        total / self.rows.max(1) as f64
    }
}

/// A weight of `[output][input]` as `[input][output]`.
fn by_input(weight: &[f64], inputs: usize) -> Vec<f32> {
    let outputs = weight.len() / inputs;
    (0..weight.len()).map(|at| weight[at % outputs * inputs + at / outputs] as f32).collect()
}

/// Chooses features one after the other: always the one that lowers the validation loss most for its cost,
/// by a predictor that was trained on random subsets, until one more than `cost` buys is chosen.
///
/// # Errors
/// Settings that do not fit the problem, or a device that was lost.
pub fn choose_blocking(engine: &Engine, data: &Dataset, config: &Config, cost: f64) -> Result<Vec<usize>> {
    let problem = data.problem();
    let mut stepper = Stepper::new(engine, data, config.clone())?;
    let epochs = config.schedule.warm_up_epochs.max(1);
    for epoch in 0..epochs {
        let pass = stepper.steps_per_epoch();
        stepper.set_stage(config.warm_up_stage(epoch, pass))?;
        stepper.warm_up(config.whole_passes(pass));
        stepper.metrics_blocking()?;
    }
    let mut selector = Selector::new(data, &stepper.predictor_blocking()?);
    let columns_of = |feature: usize| -> Vec<usize> {
        let groups = problem.group_of_column();
        (0..groups.len()).filter(|&column| groups[column] as usize == feature).collect()
    };
    let columns: Vec<Vec<usize>> = (0..problem.features().len()).map(columns_of).collect();
    let mut candidates: Vec<usize> = (0..columns.len()).collect();
    let mut chosen = Vec::new();
    let mut spent = 0.0;
    let mut loss = selector.loss(&selector.sum);
    while spent <= cost && !candidates.is_empty() {
        let mut scored: Vec<(f64, usize)> = candidates
            .iter()
            .map(|&feature| {
                let with = selector.loss(&selector.with(&columns[feature], Some(feature)));
                ((loss - with) / problem.features()[feature].cost.max(1e-3), feature)
            })
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let best = scored[0].1;
        candidates = scored.iter().skip(1).take(CANDIDATES).map(|(_, feature)| *feature).collect();
        selector.sum = selector.with(&columns[best], Some(best));
        loss = selector.loss(&selector.sum);
        spent += problem.features()[best].cost;
        chosen.push(best);
    }
    Ok(chosen)
}

/// Trains a predictor on a fixed set of features and tests it.
///
/// # Errors
/// Settings that do not fit the problem, or a device that was lost.
pub fn subset_blocking(engine: &Engine, data: &Dataset, config: &Config, chosen: &[usize]) -> Result<Subset> {
    let problem = data.problem();
    let names = chosen.iter().map(|&feature| problem.features()[feature].name.clone()).collect();
    // Not `sum`, which is -0 for nothing.
    let cost = chosen.iter().fold(0.0, |cost, &feature| cost + problem.features()[feature].cost);
    let groups = problem.group_of_column();
    let nobody = problem.features().len() as u32;
    let mut columns: Vec<usize> = Vec::new();
    let mut kept: Vec<u32> = Vec::new();
    for (index, &feature) in chosen.iter().enumerate() {
        for column in (0..groups.len()).filter(|&column| groups[column] as usize == feature) {
            columns.push(column);
            kept.push(index as u32);
        }
    }
    let known: Vec<usize> = (0..groups.len()).filter(|&column| groups[column] == nobody).collect();
    columns.extend(&known);
    if chosen.is_empty() && known.is_empty() {
        return nothing(data);
    }
    // With nothing chosen, what is known is still there; a feature that is always zero stands for nothing.
    let mut features: Vec<Feature> =
        chosen.iter().map(|&feature| problem.features()[feature].clone()).collect();
    let idle = features.is_empty();
    if idle {
        features.push(Feature { name: "nothing".into(), cost: 0.0 });
        kept.insert(0, 0);
    }
    let small = Problem::new(features, kept, problem.classes().to_vec())?
        .with_known_columns(known.len())
        .with_class_weights(problem.class_weights().to_vec())?;
    let all = problem.columns();
    let splits = [Part::Train, Part::Validation, Part::Test].map(|part| {
        let (x, y) = inputs(data, part, usize::MAX);
        let mut to = Split { x: Vec::new(), y };
        for row in x.chunks_exact(all) {
            if idle {
                to.x.push(0.0);
            }
            to.x.extend(columns.iter().map(|&column| row[column]));
        }
        to
    });
    let [train, validation, test] = splits;
    let small = Dataset::new(small, train, validation, test)?;
    let config = Config { horizon: None, ..config.clone() };
    let (guesses, losses) = best_answers_blocking(engine, &small, &config)?;
    let summary = summary(&small, guesses, losses);
    Ok(Subset {
        features: names,
        cost,
        accuracy: summary.accuracy,
        macro_f1: summary.macro_f1,
        loss: summary.loss,
    })
}

/// Trains a predictor that sees everything; its answers to the test rows at the epoch with the best
/// validation loss.
fn best_answers_blocking(engine: &Engine, data: &Dataset, config: &Config) -> Result<(Vec<u32>, Vec<f32>)> {
    let mut stepper = Stepper::new(engine, data, config.clone())?;
    let epochs = config.schedule.warm_up_epochs + config.schedule.stage_epochs;
    let stretched = config.clone().with(|c| c.schedule.warm_up_epochs = epochs);
    let mut best: Option<(f64, Vec<(u32, f64)>)> = None;
    for epoch in 0..epochs {
        let pass = stepper.steps_per_epoch();
        stepper.set_stage(stretched.warm_up_stage(epoch, pass))?;
        stepper.reference_steps(config.whole_passes(pass));
        stepper.metrics_blocking()?;
        let validation = stepper.evaluate_all_blocking(Part::Validation)?;
        if best.as_ref().is_none_or(|(loss, _)| validation.loss < *loss) {
            best = Some((validation.loss, stepper.answers_blocking(Part::Test)?));
        }
    }
    let (_, answers) = best.ok_or_else(|| Error::Config("the baseline was given no epochs".into()))?;
    Ok(answers.into_iter().map(|(guess, loss)| (guess, loss as f32)).unzip())
}

/// All features, asked of everybody: what acquiring could reach if nothing had a price.
///
/// # Errors
/// Settings that do not fit the problem, or a device that was lost.
pub fn everything_blocking(engine: &Engine, data: &Dataset, config: &Config) -> Result<Subset> {
    let (guesses, losses) = best_answers_blocking(engine, data, config)?;
    let Summary { accuracy, macro_f1, loss, .. } = summary(data, guesses, losses);
    let cost = data.problem().features().iter().map(|feature| feature.cost).sum();
    Ok(Subset { features: vec!["all".into()], cost, accuracy, macro_f1, loss })
}

/// Asking nothing: the most frequent class for everybody, which of all constant answers has both the best
/// accuracy and the best macro-F1; the belief, for the loss, is the weighted classes' shares.
fn nothing(data: &Dataset) -> Result<Subset> {
    let weights = data.problem().class_weights();
    let mut mass = vec![0.0; weights.len()];
    data.splits()[0].y.iter().for_each(|&label| mass[label as usize] += weights[label as usize]);
    let total: f64 = mass.iter().sum();
    let mut counts = vec![0usize; mass.len()];
    data.splits()[0].y.iter().for_each(|&label| counts[label as usize] += 1);
    let best = (0..mass.len()).fold(0, |best, class| if counts[class] > counts[best] { class } else { best });
    let test = &data.splits()[2].y;
    let losses =
        test.iter().map(|&y| (-weights[y as usize] * (mass[y as usize] / total).max(1e-9).ln()) as f32);
    let Summary { accuracy, macro_f1, loss, .. } =
        summary(data, vec![best as u32; test.len()], losses.collect());
    Ok(Subset { features: Vec::new(), cost: 0.0, accuracy, macro_f1, loss })
}

fn summary(data: &Dataset, guess: Vec<u32>, loss: Vec<f32>) -> Summary {
    let features = data.problem().features().len();
    let traces = Traces { features, steps: 1, path: vec![features as u32; guess.len()], guess, loss };
    traces.summary(data.problem(), &data.splits()[2].y, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic;

    /// The first three of eleven features make the label: they are found, and enough.
    #[test]
    fn the_best_subset_is_found() {
        let problem = Problem::ungrouped(&[1.0; 11], 2).expect("valid");
        let label = |row: &[f32]| u32::from(row[0] + row[1] + row[2] > 0.0);
        let splits = synthetic::syn1(3, [4_000, 500, 500])
            .expect("valid")
            .splits()
            .clone()
            .map(|split| Split { y: split.x.chunks_exact(11).map(label).collect(), x: split.x });
        let [a, b, c] = splits;
        let data = Dataset::new(problem, a, b, c).expect("valid");
        let config = Config::new(0.02).with(|c| {
            let s = &mut c.schedule;
            (s.warm_up_epochs, s.stage_epochs, s.epoch_steps, s.ema) = (2, 2, 100, 0.05);
        });
        let engine = Engine::cpu();
        let mut chosen = choose_blocking(&engine, &data, &config, 2.5).expect("chooses");
        chosen.sort();
        assert_eq!(chosen, [0, 1, 2]);
        let three = subset_blocking(&engine, &data, &config, &chosen).expect("trains");
        let one = subset_blocking(&engine, &data, &config, &[0]).expect("trains");
        let none = subset_blocking(&engine, &data, &config, &[]).expect("counts");
        assert!(
            three.accuracy > 0.95 && one.accuracy < 0.8 && none.accuracy < 0.6,
            "{three:?} {one:?} {none:?}"
        );
        assert_eq!((three.cost, none.cost), (3.0, 0.0));
    }
}
