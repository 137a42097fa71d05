//! A fixed list without a device: a predictor, and the features in the order they are asked in.

use super::config::Config;
use crate::data::Normalization;
use crate::error::{Error, Result};
use crate::nn::Tensors;
use crate::policy::belief;
use crate::policy::history::Epoch;
use crate::policy::{Activations, Case, Model, Perceptron, Policy, Stored, Tensor, Trained, storable};
use crate::problem::Problem;
use crate::train::Settings;

/// Puts a model together from what training gave: the list, with as many as there are features where it has ended, and
/// the predictor's layers, in PyTorch's layout, rounded to f32.
///
/// # Errors
/// Settings, normalization, list or layers that do not fit the problem, or a number that is not finite.
pub fn model(
    problem: Problem,
    normalization: Normalization,
    config: Config,
    list: &[f64],
    predictor: Vec<Tensors>,
    history: Vec<Epoch>,
) -> Result<Model> {
    config.check(&problem)?;
    let settings = storable("the configuration", &config)?;
    let policy = put_together(&problem, &config, list, &predictor)?;
    let horizon = config.steps(&problem);
    let method = super::NAME;
    Model::new(Trained {
        method,
        settings,
        problem,
        normalization,
        horizon,
        alpha: 0.0,
        policy,
        history,
        tradeoffs: None,
    })
}

/// Reads a policy from its file.
///
/// # Errors
/// Settings or tensors that do not fit the problem.
pub(super) fn load(stored: &mut Stored) -> Result<Box<dyn Policy>> {
    let config: Config = stored.config()?;
    config.check(&stored.problem)?;
    let list = stored.take("list", &[config.steps(&stored.problem)])?;
    let predictor = stored.take_network("predictor", &widths(&stored.problem, &config))?;
    put_together(&stored.problem, &config, &list, &predictor)
}

/// Inputs, hidden units and outputs of the predictor.
fn widths(problem: &Problem, config: &Config) -> Vec<usize> {
    let inputs = problem.columns() + problem.features().len();
    [&[inputs][..], &config.hidden, &[problem.classes().len()]].concat()
}

fn put_together(
    problem: &Problem,
    config: &Config,
    list: &[f64],
    predictor: &[Tensors],
) -> Result<Box<dyn Policy>> {
    Ok(Box::new(List {
        predictor: Perceptron::new("predictor", &widths(problem, config), predictor)?,
        features: checked(list, config.steps(problem), problem.features().len())?,
        steps: config.steps(problem),
        nothing: problem.features().len(),
        threshold: config.threshold as f32,
        columns: problem.columns(),
        classes: problem.classes().len(),
    }))
}

/// The features of a list, up to where it has ended.
fn checked(list: &[f64], steps: usize, features: usize) -> Result<Vec<usize>> {
    if list.len() != steps {
        return Err(Error::Config(format!("the list has {} places instead of {steps}", list.len())));
    }
    let mut found = Vec::new();
    for (at, &entry) in list.iter().enumerate() {
        let feature = entry as usize;
        if feature as f64 != entry || feature > features {
            return Err(Error::Config(format!(
                "entry {at} of the list is {entry}, but it must be a feature, 0 to {}, or {features} where it has ended",
                features - 1
            )));
        }
        if found.contains(&feature) || (feature < features && found.len() < at) {
            let wrong = if found.len() < at { "comes after its end" } else { "is in it before" };
            return Err(Error::Config(format!("entry {at} of the list is feature {feature}, which {wrong}")));
        }
        if feature < features {
            found.push(feature);
        }
    }
    Ok(found)
}

/// The list with its predictor.
#[derive(Clone, Debug, PartialEq)]
struct List {
    predictor: Perceptron,
    features: Vec<usize>,
    /// Places of the list, those after its end included.
    steps: usize,
    /// What stands in those.
    nothing: usize,
    threshold: f32,
    columns: usize,
    classes: usize,
}

impl Policy for List {
    fn case(&self) -> Box<dyn Case + '_> {
        let mut case = Instance {
            of: self,
            threshold: self.threshold,
            predictor: Activations::new(&self.predictor),
            belief: vec![0.0; self.classes],
        };
        case.believe();
        Box::new(case)
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.threshold = belief::threshold(at)?;
        Ok(())
    }

    fn tensors(&self) -> Vec<Tensor> {
        let ended = std::iter::repeat(&self.nothing);
        let values = self.features.iter().chain(ended).take(self.steps).map(|&feature| feature as f32);
        let list = Tensor { name: "list".into(), shape: vec![self.steps], values: values.collect() };
        [vec![list], self.predictor.tensors()].concat()
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// One instance.
#[derive(Clone, Debug)]
struct Instance<'p> {
    of: &'p List,
    threshold: f32,
    predictor: Activations<'p>,
    belief: Vec<f32>,
}

impl Instance<'_> {
    /// The softmax of the predictor's output.
    fn believe(&mut self) {
        belief::believe(&self.predictor.output()[..self.of.classes], &mut self.belief);
    }
}

impl<'p> Case for Instance<'p> {
    fn reset(&mut self) {
        self.predictor.reset();
        self.believe();
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.threshold = belief::threshold(at)?;
        self.reset();
        Ok(())
    }

    fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) -> bool {
        self.predictor.observe(columns, inputs, feature.map(|feature| self.of.columns + feature));
        let fits = self.is_finite();
        if !fits {
            self.predictor.undo();
        }
        self.believe();
        fits
    }

    /// The next of the list; what is not in it is never asked for.
    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.of.features.iter().copied().find(|&feature| open(feature))
    }

    fn stops(&self, best: usize) -> bool {
        self.stop_score(best) < self.threshold
    }

    /// The entropy of the belief.
    fn stop_score(&self, _: usize) -> f32 {
        belief::entropy(&self.belief)
    }

    fn threshold(&self) -> Option<f32> {
        Some(self.threshold)
    }

    fn belief(&self) -> &[f32] {
        &self.belief
    }

    fn is_finite(&self) -> bool {
        self.predictor.is_finite()
    }

    fn boxed<'a>(&self) -> Box<dyn Case + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_checked() {
        assert_eq!(checked(&[2.0, 0.0, 1.0], 3, 3).expect("whole"), [2, 0, 1]);
        assert_eq!(checked(&[2.0, 3.0, 3.0], 3, 3).expect("ended"), [2]);
        for (list, says) in [
            (&[1.0, 0.0][..], "2 places instead of 3"),
            (&[0.5, 1.0, 2.0], "entry 0 of the list is 0.5"),
            (&[-1.0, 1.0, 2.0], "must be a feature, 0 to 2"),
            (&[4.0, 1.0, 2.0], "entry 0 of the list is 4"),
            (&[f64::NAN, 1.0, 2.0], "entry 0"),
            (&[1.0, 1.0, 2.0], "is in it before"),
            (&[1.0, 3.0, 2.0], "after its end"),
        ] {
            let error = checked(list, 3, 3).expect_err("refused").to_string();
            assert!(error.contains(says), "{list:?}: {error}");
        }
    }
}
