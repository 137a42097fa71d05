//! What can be asked, what it costs, and what is to be predicted.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// One thing that can be asked for. It may stand for several columns of the table
/// (a one-hot code, a panel of blood values): acquiring it reveals all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// Its name, as shown to people.
    pub name: String,
    /// What acquiring it costs. Finite and not negative.
    pub cost: f64,
}

/// Features, their columns and costs, and the classes. Immutable once made, so it is always valid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    features: Vec<Feature>,
    group_of_column: Vec<u32>,
    classes: Vec<String>,
    class_weights: Vec<f64>,
}

impl Problem {
    /// Describes a problem: the features, for each column of the table the index of the feature
    /// that reveals it, and the names of the classes.
    ///
    /// # Errors
    /// A cost that is negative or not finite, a column of a feature that does not exist, a feature
    /// without a column, no feature, or fewer than two classes.
    pub fn new(features: Vec<Feature>, group_of_column: Vec<u32>, classes: Vec<String>) -> Result<Self> {
        if features.is_empty() {
            return Err(Error::Problem("there is no feature to acquire".into()));
        }
        if classes.len() < 2 {
            return Err(Error::Problem(format!(
                "{} class: at least two are needed to have anything to predict",
                classes.len()
            )));
        }
        for (index, feature) in features.iter().enumerate() {
            if !feature.cost.is_finite() || feature.cost < 0.0 {
                return Err(Error::Problem(format!(
                    "feature {index} (`{}`): its cost is {}, but a cost is a finite number, zero or more",
                    feature.name, feature.cost
                )));
            }
        }
        let mut has_column = vec![false; features.len()];
        for (column, &group) in group_of_column.iter().enumerate() {
            match has_column.get_mut(group as usize) {
                Some(has) => *has = true,
                None => {
                    return Err(Error::Problem(format!(
                        "column {column} belongs to feature {}, but there are only {} features",
                        group as i32,
                        features.len()
                    )));
                }
            }
        }
        if let Some(index) = has_column.iter().position(|has| !has) {
            return Err(Error::Problem(format!(
                "feature {index} (`{}`) has no column: acquiring it would reveal nothing",
                features[index].name
            )));
        }
        let class_weights = vec![1.0; classes.len()];
        Ok(Self { features, group_of_column, classes, class_weights })
    }

    /// A problem whose columns are its features (`x1`, `x2`, …), each at the given cost, with
    /// classes named `0`, `1`, ….
    ///
    /// # Errors
    /// As [`Problem::new`].
    pub fn ungrouped(costs: &[f64], classes: usize) -> Result<Self> {
        let features = costs
            .iter()
            .enumerate()
            .map(|(i, &cost)| Feature { name: format!("x{}", i + 1), cost })
            .collect();
        Self::new(
            features,
            (0..costs.len() as u32).collect(),
            (0..classes).map(|class| class.to_string()).collect(),
        )
    }

    /// Weighs each class's loss, for imbalanced data.
    ///
    /// # Errors
    /// As many weights as classes are needed, each finite and not negative, one of them positive.
    pub fn with_class_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        if weights.len() != self.classes.len() {
            return Err(Error::Problem(format!(
                "{} class weights for {} classes",
                weights.len(),
                self.classes.len()
            )));
        }
        if let Some(class) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            return Err(Error::Problem(format!(
                "class {class} (`{}`): its weight is {}, but a weight is a finite number, zero or more",
                self.classes[class], weights[class]
            )));
        }
        if weights.iter().all(|&w| w == 0.0) {
            return Err(Error::Problem("every class weight is zero: there would be nothing to learn".into()));
        }
        self.class_weights = weights;
        Ok(self)
    }

    /// Adds columns that are known from the start: so many, after all others. They are part of every row
    /// and of what both networks read, but nothing that could be asked for.
    pub fn with_known_columns(mut self, columns: usize) -> Self {
        let nobody = self.features.len() as u32;
        self.group_of_column.extend(std::iter::repeat_n(nobody, columns));
        self
    }

    /// How many columns are known from the start; they are the last ones.
    pub fn known_columns(&self) -> usize {
        let nobody = self.features.len() as u32;
        self.group_of_column.iter().rev().take_while(|&&group| group == nobody).count()
    }

    /// Columns of the feature, or of what is known from the start, that has most.
    pub fn widest(&self) -> usize {
        let mut counts = vec![0; self.features.len() + 1];
        self.group_of_column.iter().for_each(|&group| counts[group as usize] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    /// The features, in the order of their indices.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// For each column of the table, the feature that reveals it; as many as there are features for a
    /// column that is known from the start.
    pub fn group_of_column(&self) -> &[u32] {
        &self.group_of_column
    }

    /// How many columns the table has.
    pub fn columns(&self) -> usize {
        self.group_of_column.len()
    }

    /// The names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The weight of each class's loss.
    pub fn class_weights(&self) -> &[f64] {
        &self.class_weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<Problem>) -> String {
        result.expect_err("should have been refused").to_string()
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(message(Problem::ungrouped(&[], 2)).contains("no feature"));
        assert!(message(Problem::ungrouped(&[1.0], 1)).contains("at least two"));
        assert!(message(Problem::ungrouped(&[1.0, -2.0], 2)).contains("feature 1 (`x2`): its cost is -2"));
        assert!(message(Problem::ungrouped(&[f64::NAN], 2)).contains("NaN"));
        let two = |groups| {
            let feature = |name: &str| Feature { name: name.into(), cost: 1.0 };
            Problem::new(vec![feature("a"), feature("b")], groups, vec!["n".into(), "y".into()])
        };
        assert!(message(two(vec![0, 2])).contains("column 1 belongs to feature 2"));
        assert!(message(two(vec![0, 0])).contains("feature 1 (`b`) has no column"));
        assert!(
            message(two(vec![0, 1]).and_then(|p| p.with_class_weights(vec![1.0])))
                .contains("1 class weights")
        );
        assert!(
            message(two(vec![0, 1]).and_then(|p| p.with_class_weights(vec![1.0, -1.0])))
                .contains("class 1 (`y`)")
        );
    }
}
