//! The search: which features, together with what is known, would have helped the most similar training rows most for
//! their price. On the CPU, one case on one core: where there are many cases, each core has its own.
//!
//! The predictor reads `(x ⊙ m, m)`, so its first layer is a sum: of what is known, and for each feature of a set of
//! what that feature's columns and mask contribute. Those contributions are computed once for each neighbour and feature;
//! the first layer of many candidates is then the product of their 0s and 1s with them, whose size does not depend on the
//! columns, and what follows are matrix products over all candidates and neighbours of a block at once.

use super::rows::{Rows, nearest};
use super::sets::Sets;
use crate::engine::cpu::matmul::{Finish, Shape, Start, matmul};
use crate::engine::groups::{self, Groups};
use crate::policy::Perceptron;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// Rows (a candidate for a neighbour) that go through the predictor at once, about: they stay in the nearer caches.
const BLOCK: usize = 256;

/// Which feature of the best set is acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pick {
    /// The one of the least mean loss alone, as published.
    Alone,
    /// The one without which the set's mean loss would be the greatest.
    Needed,
}

/// How the search is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct How {
    pub neighbours: usize,
    pub start_rows: usize,
    pub candidates: usize,
    pub whole_neighbours: bool,
    pub pick: Pick,
    pub seed: u64,
}

/// All that the search looks at, whatever the case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Oracle {
    pub how: How,
    pub predictor: Perceptron,
    pub rows: Rows,
    pub columns: usize,
    pub features: usize,
    pub classes: usize,
    groups: Vec<u32>,
    costs: Vec<f32>,
    weights: Vec<f32>,
}

/// What is known of a case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// The squared distance of each training row over the columns that are known.
    pub distances: &'a [f32],
    /// A training row that is left out: the case itself.
    pub left_out: Option<usize>,
    /// Which features are known.
    pub seen: &'a [bool],
    /// Whether the columns that are known from the start were given.
    pub given: bool,
    /// The predictor's first layer, before its ReLU.
    pub sum: &'a [f32],
    /// Keys the candidate sets.
    pub mark: u32,
}

impl Known<'_> {
    /// Whether nothing is known: all training rows are equally near then.
    pub fn is_nothing(&self) -> bool {
        !self.given && !self.seen.contains(&true)
    }
}

/// What the search has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The feature to acquire, of those of the best set.
    pub feature: usize,
    /// The neighbours' mean loss with what is known: the value of stopping.
    pub nothing: f32,
    /// The value of the best set: its mean loss and its price.
    pub best: f32,
    /// How many sets were tried.
    pub sets: usize,
}

/// Numbers that features may add to the first layer, over all neighbours: 64 MiB of them.
const MOST_PARTS: usize = 1 << 24;
/// Neighbours that are looked at together.
const TOGETHER: usize = 64;
/// Sets that are tried before it is asked again whether those that are left can still be the best.
const AT_A_TIME: usize = 64;

/// Some neighbours of a case, with what the predictor's first layer makes of them.
struct Ground<'a> {
    neighbours: &'a [usize],
    /// What is known, in the first layer before its ReLU, neighbour after neighbour.
    base: Vec<f32>,
    /// What each open feature adds to it: feature after feature, neighbour after neighbour.
    parts: Vec<f32>,
    /// How many are open.
    open: usize,
}

impl Oracle {
    pub fn new(problem: &Problem, predictor: Perceptron, rows: Rows, how: How) -> Self {
        let features = problem.features().len();
        Self {
            how,
            predictor,
            rows,
            columns: problem.columns(),
            features,
            classes: problem.classes().len(),
            groups: groups::words(features, problem.group_of_column()),
            costs: problem.features().iter().map(|feature| feature.cost as f32).collect(),
            weights: problem.class_weights().iter().map(|&weight| weight as f32).collect(),
        }
    }

    fn groups(&self) -> Groups<'_> {
        Groups::new(&self.groups, self.features as u32, self.columns as u32)
    }

    /// The columns of a feature, or those that are known from the start.
    pub fn columns_of(&self, feature: Option<usize>) -> &[u32] {
        feature.map_or(self.groups().known(), |feature| self.groups().columns_of(feature))
    }

    /// The best of the features that are open, and what it is worth; `None` if none is. Of equal values the first set
    /// counts, and nothing comes before all others.
    pub fn search(&self, known: Known, open: &[usize], alpha: f64) -> Option<Found> {
        let first = *open.first()?;
        let neighbours = self.neighbours(known, open.len());
        if neighbours.is_empty() {
            return Some(Found { feature: first, nothing: 0.0, best: 0.0, sets: 0 });
        }
        let grounds: Vec<Ground> =
            neighbours.chunks(TOGETHER).map(|some| self.ground(known, open, some)).collect();
        let sets = Sets::draw(open.len(), self.how.candidates, self.how.seed, known.mark);
        let price = |set: usize| {
            let cost: f32 = sets.places(set).map(|place| self.costs[open[place]]).sum();
            alpha as f32 * cost
        };
        let prices: Vec<f32> = (0..sets.len()).map(price).collect();
        let (set, best) = self.least(&grounds, &sets, &prices)?;
        let nothing = self.mean_losses(&grounds, &Sets::nothing(), &[0])[0];
        let place = self.pick(&grounds, &sets, set)?;
        Some(Found { feature: open[place], nothing, best, sets: sets.len() })
    }

    /// Which feature of a set to begin with: its place, of equal ones the first.
    fn pick(&self, grounds: &[Ground], sets: &Sets, set: usize) -> Option<usize> {
        let members: Vec<usize> = sets.places(set).collect();
        let losses: Vec<f32> = match self.how.pick {
            Pick::Alone => self.mean_losses(grounds, &Sets::alone(grounds[0].open), &members),
            Pick::Needed => {
                let all: Vec<usize> = (0..members.len()).collect();
                let without = self.mean_losses(grounds, &sets.without_each(set), &all);
                without.iter().map(|loss| -loss).collect()
            }
        };
        least(losses.into_iter().zip(members)).map(|(place, _)| place)
    }

    /// The neighbours' mean loss with each open feature alone.
    pub fn alone(&self, known: Known, open: &[usize]) -> Vec<f32> {
        let neighbours = self.neighbours(known, open.len());
        let grounds: Vec<Ground> =
            neighbours.chunks(TOGETHER).map(|some| self.ground(known, open, some)).collect();
        let all: Vec<usize> = (0..open.len()).collect();
        self.mean_losses(&grounds, &Sets::alone(open.len()), &all)
    }

    fn neighbours(&self, known: Known, open: usize) -> Vec<usize> {
        if known.is_nothing() {
            let fit = MOST_PARTS / (open * self.predictor.layer(0).1).max(1);
            let most = self.how.start_rows.min(fit.max(self.how.neighbours));
            return (0..self.rows.len().min(most)).collect();
        }
        nearest(known.distances, self.how.neighbours, known.left_out)
    }

    /// The set of the least value, loss and price together. No loss is below zero: from the cheapest set on, all others
    /// are worse as soon as their price alone is.
    fn least(&self, grounds: &[Ground], sets: &Sets, prices: &[f32]) -> Option<(usize, f32)> {
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by(|&a, &b| prices[a].total_cmp(&prices[b]).then(a.cmp(&b)));
        let mut best: Option<(usize, f32)> = None;
        for some in order.chunks(AT_A_TIME) {
            if best.is_some_and(|(_, value)| prices[some[0]] > value) {
                break;
            }
            let values = self.mean_losses(grounds, sets, some).into_iter().zip(some);
            let values = values.map(|(loss, &set)| (loss + prices[set], set));
            best = least(best.map(|(set, value)| (value, set)).into_iter().chain(values));
        }
        best
    }

    /// The neighbours' mean loss with the features of some sets, filled in from each neighbour.
    fn mean_losses(&self, grounds: &[Ground], sets: &Sets, which: &[usize]) -> Vec<f32> {
        let mut sums = vec![0.0; which.len()];
        for ground in grounds {
            let at_once = (BLOCK / ground.neighbours.len().max(1)).max(1);
            let blocks = which.chunks(at_once).zip(sums.chunks_mut(at_once));
            blocks.for_each(|(which, sums)| self.add_losses(ground, sets, which, sums));
        }
        let count: usize = grounds.iter().map(|ground| ground.neighbours.len()).sum();
        sums.iter_mut().for_each(|sum| *sum /= count.max(1) as f32);
        sums
    }

    fn ground<'a>(&self, known: Known, open: &[usize], neighbours: &'a [usize]) -> Ground<'a> {
        let (_, pitch, bias) = self.predictor.layer(0);
        let mut base = Vec::with_capacity(neighbours.len() * pitch);
        for &row in neighbours {
            if !self.how.whole_neighbours {
                base.extend_from_slice(known.sum);
                continue;
            }
            let at = base.len();
            base.extend_from_slice(bias);
            let sum = &mut base[at..];
            if known.given {
                self.add_columns(row, None, sum);
            }
            let seen = known.seen.iter().enumerate().filter(|(_, seen)| **seen);
            seen.for_each(|(feature, _)| self.add_columns(row, Some(feature), sum));
        }
        let mut parts = vec![0.0; open.len() * neighbours.len() * pitch];
        for (index, part) in parts.chunks_exact_mut(pitch).enumerate() {
            let (feature, row) = (open[index / neighbours.len()], neighbours[index % neighbours.len()]);
            self.add_columns(row, Some(feature), part);
        }
        Ground { neighbours, base, parts, open: open.len() }
    }

    /// Adds what a training row's columns contribute to the first layer, and a feature's mask.
    fn add_columns(&self, row: usize, feature: Option<usize>, sum: &mut [f32]) {
        let (weight, pitch, _) = self.predictor.layer(0);
        for &column in self.columns_of(feature) {
            let value = self.rows.value(row, column as usize);
            let weights = &weight[column as usize * pitch..][..pitch];
            sum.iter_mut().zip(weights).for_each(|(sum, &weight)| *sum += value * weight);
        }
        if let Some(feature) = feature {
            let weights = &weight[(self.columns + feature) * pitch..][..pitch];
            sum.iter_mut().zip(weights).for_each(|(sum, &weight)| *sum += weight);
        }
    }

    /// Adds the neighbours' losses with some sets, one neighbour after the other.
    fn add_losses(&self, ground: &Ground, sets: &Sets, which: &[usize], sums: &mut [f32]) {
        let (count, layers) = (ground.neighbours.len(), self.predictor.layers());
        let (rows, open) = (which.len() * count, ground.open);
        let mut members = vec![0.0; which.len() * open];
        for (set, members) in which.iter().zip(members.chunks_exact_mut(open)) {
            sets.places(*set).for_each(|place| members[place] = 1.0);
        }
        // All neighbours of a set side by side: the sets' features times what each adds.
        let width = ground.base.len();
        let mut units = vec![0.0; which.len() * width];
        matmul(
            (&mut units, Shape::rows(which.len(), width, width)),
            Start::Bias(&ground.base),
            1.0,
            (&members, Shape::rows(which.len(), open, open)),
            (&ground.parts, Shape::rows(open, width, width)),
            (self.finish(0), None),
        );
        for layer in 1..layers {
            let (weight, pitch, bias) = self.predictor.layer(layer);
            let inputs = self.predictor.layer(layer - 1).1;
            let mut next = vec![0.0; rows * pitch];
            matmul(
                (&mut next, Shape::rows(rows, pitch, pitch)),
                Start::Bias(bias),
                1.0,
                (&units, Shape::rows(rows, inputs, inputs)),
                (weight, Shape::rows(inputs, pitch, pitch)),
                (self.finish(layer), None),
            );
            units = next;
        }
        let pitch = self.predictor.layer(layers - 1).1;
        for (sum, logits) in sums.iter_mut().zip(units.chunks_exact(count * pitch)) {
            for (logits, &row) in logits.chunks_exact(pitch).zip(ground.neighbours) {
                *sum += self.loss(logits, self.rows.label(row));
            }
        }
    }

    /// Hidden layers have a ReLU, the last one has none.
    fn finish(&self, layer: usize) -> Finish<'static, f32> {
        if layer + 1 < self.predictor.layers() { Finish::Relu } else { Finish::Nothing }
    }

    /// The weighted cross-entropy of some logits.
    fn loss(&self, logits: &[f32], label: usize) -> f32 {
        let logits = &logits[..self.classes];
        let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mass: f32 = logits.iter().map(|logit| (logit - top).exp()).sum();
        self.weights[label] * (mass.ln() + top - logits[label])
    }
}

/// The least of some values, each with its number: of equal ones the least number.
fn least(values: impl Iterator<Item = (f32, usize)>) -> Option<(usize, f32)> {
    let mut least: Option<(usize, f32)> = None;
    for (value, number) in values {
        if least.is_none_or(|(other, most)| value < most || value == most && number < other) {
            least = Some((number, value));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_values_the_first_counts() {
        let of =
            |values: &[f32], numbers: &[usize]| least(values.iter().copied().zip(numbers.iter().copied()));
        assert_eq!(of(&[2.0, 1.0, 1.0, 3.0], &[0, 1, 2, 3]), Some((1, 1.0)));
        assert_eq!(of(&[2.0, 1.0, 1.0, 3.0], &[0, 3, 2, 1]), Some((2, 1.0)));
        assert_eq!(of(&[], &[]), None);
    }
}
