//! What a policy does on a split, instance by instance and summed up.

use crate::data::{Dataset, Part};
use crate::error::Result;
use crate::policy::Model;
use crate::policy::Step;
use crate::problem::Problem;
use rayon::prelude::*;
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
        let (mut loss, mut cost, mut acquired) = (0.0, 0.0, 0.0);
        let mut stop_steps = vec![0.0; self.steps + 1];
        for (instance, (&guess, &label)) in self.guess.iter().zip(labels).enumerate() {
            counts[guess as usize][1] += 1.0;
            counts[label as usize][2] += 1.0;
            counts[label as usize][0] += f64::from(u8::from(guess == label));
            loss += f64::from(self.loss[instance]);
            let asked =
                self.path_of(instance).iter().take_while(|&&action| (action as usize) < self.features);
            let mut count = 0;
            for &feature in asked {
                cost += problem.features()[feature as usize].cost;
                count += 1;
            }
            acquired += count as f64;
            stop_steps[count] += 1.0 / n;
        }
        let f1 = |[hits, guesses, instances]: [f64; 3]| {
            if guesses + instances > 0.0 { 2.0 * hits / (guesses + instances) } else { 0.0 }
        };
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
        }
    }
}

/// What a model does with the rows of a split, asked through one by one, and what it believes at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcomes {
    /// The way through each instance.
    pub traces: Traces,
    /// Instance after instance, the probability of each class at the end.
    pub beliefs: Vec<f32>,
}

/// Asks a model through each row of a split of its data set, on the host's cores and without a device, with
/// a budget for each row if there is one.
///
/// # Errors
/// The data set is of another problem, or a row makes the networks overflow.
pub fn outcomes(model: &Model, data: &Dataset, part: Part, budget: f64) -> Result<Outcomes> {
    let (problem, steps) = (model.problem(), model.steps());
    if data.problem() != problem {
        return Err(crate::Error::Data("the model and the table are of different problems".into()));
    }
    let (columns, features, classes) = (problem.columns(), problem.features().len(), problem.classes().len());
    let split = &data.splits()[part as usize];
    let bytes = data.images().map(|images| &images[part as usize]);
    let one = |instance: usize| -> Result<(Vec<u32>, Vec<f32>)> {
        let at = instance * columns;
        let divided: Vec<f32>;
        let row = match bytes {
            Some(bytes) => {
                let divisor = data.divisor().unwrap_or(1) as f32;
                divided = bytes[at..][..columns].iter().map(|&byte| f32::from(byte) / divisor).collect();
                &divided[..]
            }
            None => &split.x[at..][..columns],
        };
        let mut session = model.session().with_budget(budget)?;
        if problem.known_columns() > 0 {
            session.give_input(row)?;
        }
        let mut path = Vec::with_capacity(steps);
        while let Step::Acquire(feature) = session.next() {
            session.observe_input(feature, row)?;
            path.push(feature as u32);
        }
        path.resize(steps, features as u32);
        Ok((path, session.predict().to_vec()))
    };
    let all = (0..split.y.len()).into_par_iter().map(one).collect::<Result<Vec<_>>>()?;
    let mut traces = Traces { features, steps, path: vec![], guess: vec![], loss: vec![] };
    let mut beliefs = Vec::with_capacity(all.len() * classes);
    for ((path, belief), &label) in all.into_iter().zip(&split.y) {
        traces.path.extend(path);
        let best =
            (0..classes).fold(0, |best, class| if belief[class] > belief[best] { class } else { best });
        traces.guess.push(best as u32);
        let weight = problem.class_weights()[label as usize] as f32;
        traces.loss.push(-weight * belief[label as usize].max(f32::MIN_POSITIVE).ln());
        beliefs.extend(belief);
    }
    Ok(Outcomes { traces, beliefs })
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
        // Each class: one hit, two guesses, two instances.
        assert_eq!((s.macro_f1, s.f1), (0.5, Some(0.5)));
        let (shares, total) = traces.shares(|instance| instance < 2);
        assert_eq!(total, 2);
        assert_eq!(shares, [[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]]);
    }
}
