//! What `querent train` leaves beside its models: what was trained, on what, and what came of it.

use crate::data::encoding::Metric;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::methods::fixed::Subset;
use crate::policy::evaluate::Summary;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file's name in a run's folder.
pub const FILE: &str = "run.json";

/// A run: one or several models of the same table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version that made it.
    pub querent: String,
    /// The command's arguments.
    #[serde(default)]
    pub command: String,
    /// What was trained on: the path of a `problem.toml`, or a data set's name.
    pub problem: String,
    /// Where that `problem.toml` was, as seen from anywhere; `None` for a data set, and for runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem_file: Option<String>,
    /// The data folder that its data set was found in; `None` for what is not read from one.
    pub data_dir: Option<String>,
    /// The engine.
    pub engine: String,
    /// What to judge by.
    pub metric: Metric,
    /// Training, validation and test rows.
    pub sizes: [usize; 3],
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Features that can be asked for.
    pub features: usize,
    /// Columns that the networks read.
    pub columns: usize,
    /// Cost of asking for everything.
    pub full_cost: f64,
    /// What is known from the start.
    pub known: Vec<String>,
    /// The models, in the order of training.
    pub points: Vec<Point>,
    /// Asking nothing.
    pub nothing: Option<Subset>,
    /// Asking for everything.
    pub everything: Option<Subset>,
}

/// One model of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The method.
    #[serde(default = "first_method")]
    pub method: String,
    /// What trades loss for cost: what a unit of cost is worth, or the threshold of the stop rule.
    pub alpha: f64,
    /// The range of α its model was trained for, if it was: other points may be of the same model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Its seed.
    pub seed: u64,
    /// Its model's file, relative to the run's folder.
    pub model: String,
    /// How long training took.
    pub seconds: f64,
    /// Epochs trained, and at most.
    pub epochs: [usize; 2],
    /// Results on the test rows (on the validation rows, if there are none).
    pub test: Summary,
    /// What was asked and answered there.
    pub digest: Digest,
    /// Fixed subsets of about the same cost: one that is not above it and the next.
    pub subsets: Vec<Subset>,
}

impl Summary {
    /// The number to judge by.
    pub fn score(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Accuracy => self.accuracy,
            Metric::MacroF1 => self.macro_f1,
        }
    }
}

impl Subset {
    /// The number to judge by.
    pub fn score(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Accuracy => self.accuracy,
            Metric::MacroF1 => self.macro_f1,
        }
    }
}

/// Runs of older versions do not say so.
fn first_method() -> String {
    crate::nmppg::NAME.into()
}

impl Point {
    /// The name of what trades loss for cost.
    pub fn symbol(&self) -> &'static str {
        match crate::methods::find(&self.method).map(|entry| entry.tradeoff) {
            Ok(crate::methods::Tradeoff::Threshold) => "threshold",
            _ => "α",
        }
    }

    /// What fixed subsets reach at exactly the policy's cost: between the cheaper and the dearer one in
    /// proportion, as if each person got one of the two by chance.
    pub fn fixed_score(&self, metric: Metric) -> Option<f64> {
        let score = |subset: &Subset| subset.score(metric);
        match &self.subsets[..] {
            [] => None,
            [only] => Some(score(only)),
            [low, high, ..] => {
                let share = (self.test.cost - low.cost) / (high.cost - low.cost).max(1e-12);
                Some(score(low) + (score(high) - score(low)) * share.clamp(0.0, 1.0))
            }
        }
    }
}

impl Run {
    /// Reads a run.
    ///
    /// # Errors
    /// There is none in the folder, or it cannot be read.
    pub fn load(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::file(&path, format!("not a run of this version: {error}")))
    }

    /// Writes a run, under a temporary name first.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        let text = serde_json::to_string(self).map_err(|error| Error::file(&path, error.to_string()))?;
        write_atomically(&path, text.as_bytes())
    }
}
