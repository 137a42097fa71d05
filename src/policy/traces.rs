//! Paths through a split, and what they come to in numbers.

use super::uncertainty::Uncertainty;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// The greedy policy's way through each instance of a split.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// Features of the problem; an action of that number is stopping.
    pub features: usize,
    /// Steps of each path.
    pub steps: usize,
    /// Instance after instance, the action of each step; once stopped, stopping again.
    pub path: Vec<u32>,
    /// The class answered.
    pub guess: Vec<u32>,
    /// The loss of the answer.
    pub loss: Vec<f32>,
}

/// A split's results in numbers: means over its instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Loss plus α times cost.
    pub objective: f64,
    /// Cross-entropy in nats, weighted by class if the problem says so.
    pub loss: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// F1 averaged over the classes.
    pub macro_f1: f64,
    /// F1 of the second class, where there are two.
    pub f1: Option<f64>,
    /// Cost of what was acquired.
    pub cost: f64,
    /// Features acquired.
    pub acquisitions: f64,
    /// The share of instances that acquired 0, 1, 2, … features.
    pub stop_steps: Vec<f64>,
    /// The share of instances whose first action was each feature, and last: stopping.
    pub first_actions: Vec<f64>,
    /// How many instances there were.
    pub instances: usize,
    /// How sure the means are; runs of older versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<Uncertainty>,
}

impl Traces {
    /// How many instances there are.
    pub fn len(&self) -> usize {
        self.guess.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.guess.is_empty()
    }

    /// One instance's actions.
    pub fn path_of(&self, instance: usize) -> &[u32] {
        &self.path[instance * self.steps..][..self.steps]
    }

    /// For each action (the features, then stopping) and step, the share of the chosen instances that
    /// took it. A stopped instance stops again in every later step.
    pub fn shares(&self, chosen: impl Fn(usize) -> bool) -> (Vec<Vec<f64>>, usize) {
        let mut counts = vec![vec![0.0; self.steps]; self.features + 1];
        let mut total = 0usize;
        for instance in (0..self.len()).filter(|&instance| chosen(instance)) {
            total += 1;
            for (t, &action) in self.path_of(instance).iter().enumerate() {
                counts[(action as usize).min(self.features)][t] += 1.0;
            }
        }
        counts.iter_mut().flatten().for_each(|count| *count /= total.max(1) as f64);
        (counts, total)
    }

    /// Sums up. `labels` are the split's, `alpha` what a unit of cost is worth.
    pub fn summary(&self, problem: &Problem, labels: &[u32], alpha: f64) -> Summary {
        let n = self.len().max(1) as f64;
        let classes = problem.classes().len();
        // For each class: hits, guesses, instances.
        let mut counts = vec![[0.0f64; 3]; classes];
        let mut confusion = vec![vec![0.0; classes]; classes];
        let mut costs = Vec::with_capacity(self.len());
        let (mut loss, mut cost, mut acquired) = (0.0, 0.0, 0.0);
        let mut stop_steps = vec![0.0; self.steps + 1];
        for (instance, (&guess, &label)) in self.guess.iter().zip(labels).enumerate() {
            counts[guess as usize][1] += 1.0;
            counts[label as usize][2] += 1.0;
            counts[label as usize][0] += f64::from(u8::from(guess == label));
            confusion[label as usize][guess as usize] += 1.0;
            loss += f64::from(self.loss[instance]);
            let asked =
                self.path_of(instance).iter().take_while(|&&action| (action as usize) < self.features);
            let (mut count, before) = (0, cost);
            for &feature in asked {
                cost += problem.features()[feature as usize].cost;
                count += 1;
            }
            costs.push(cost - before);
            acquired += count as f64;
            stop_steps[count] += 1.0 / n;
        }
        let f1 = |[hits, guesses, instances]: [f64; 3]| {
            if guesses + instances > 0.0 { 2.0 * hits / (guesses + instances) } else { 0.0 }
        };
        let losses: Vec<f64> = self.loss.iter().map(|&loss| loss.into()).collect();
        let first_actions = self.shares(|_| true).0.iter().map(|steps| steps[0]).collect();
        Summary {
            objective: (loss + alpha * cost) / n,
            loss: loss / n,
            accuracy: counts.iter().map(|count| count[0]).sum::<f64>() / n,
            macro_f1: counts.iter().copied().map(f1).sum::<f64>() / classes as f64,
            f1: (classes == 2).then(|| f1(counts[1])),
            cost: cost / n,
            acquisitions: acquired / n,
            stop_steps,
            first_actions,
            instances: self.len(),
            uncertainty: Some(Uncertainty::new(&confusion, &losses, &costs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_hand() {
        let problem = Problem::ungrouped(&[1.0, 2.0], 2).expect("valid");
        let traces = Traces {
            features: 2,
            steps: 2,
            path: vec![0, 2, 1, 0, 2, 2, 0, 2],
            guess: vec![1, 1, 0, 0],
            loss: vec![0.5, 0.25, 1.0, 0.25],
        };
        let s = traces.summary(&problem, &[1, 0, 0, 1], 0.1);
        assert_eq!((s.loss, s.cost, s.acquisitions, s.accuracy), (0.5, 1.25, 1.0, 0.5));
        assert!((s.objective - 0.625).abs() < 1e-12);
        assert_eq!(s.stop_steps, [0.25, 0.5, 0.25]);
        assert_eq!(s.first_actions, [0.5, 0.25, 0.25]);
        // Costs of 1, 3, 0 and 1: their deviation over √4.
        let cost = s.uncertainty.expect("counted").cost;
        assert!((cost - (4.75f64 / 3.0).sqrt() / 2.0).abs() < 1e-12, "{cost}");
        // Each class: one hit, two guesses, two instances.
        assert_eq!((s.macro_f1, s.f1), (0.5, Some(0.5)));
        let (shares, total) = traces.shares(|instance| instance < 2);
        assert_eq!(total, 2);
        assert_eq!(shares, [[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]]);
    }
}
