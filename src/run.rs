//! What `querent train` leaves beside its models: what was trained, on what, and what came of it.

mod trained;

pub use trained::{CURVE, TESTED, Trained, at};

use crate::data::Dataset;
use crate::data::encoding::{Encoding, Metric};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::methods::fixed::Subset;
use crate::methods::{Tradeoff, reader};
use crate::policy::evaluate::Summary;
use crate::policy::tradeoff::rounded;
use crate::policy::uncertainty::deviation;
use crate::policy::{Model, Uncertainty};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// Rows of the table that were asked for, at most, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<u64>,
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
    /// For each method, the settings that were tried on the table and are better than the defaults.
    #[serde(default)]
    pub tried: BTreeMap<String, Vec<String>>,
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
    /// What to judge by, on the validation rows (of a range of α, the mean along it): models are chosen by it, so that
    /// the test rows choose nothing. Runs of older versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
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

    /// Its standard error over the rows; 0 where it is not known.
    pub fn score_error(&self, metric: Metric) -> f64 {
        score_error(self.uncertainty, metric)
    }
}

fn score_error(of: Option<Uncertainty>, metric: Metric) -> f64 {
    of.map_or(0.0, |of| match metric {
        Metric::Accuracy => of.accuracy,
        Metric::MacroF1 => of.macro_f1,
    })
}

impl Subset {
    /// The number to judge by.
    pub fn score(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Accuracy => self.accuracy,
            Metric::MacroF1 => self.macro_f1,
        }
    }

    /// Its standard error over the rows; 0 where it is not known.
    pub fn score_error(&self, metric: Metric) -> f64 {
        score_error(self.uncertainty, metric)
    }
}

/// A mean over seeds, with the standard deviation between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, as a sample's.
    pub deviation: f64,
}

impl Spread {
    /// Of some values.
    pub fn of(values: &[f64]) -> Self {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self { mean, deviation: deviation(values) }
    }
}

/// What several seeds have at one trade-off.
#[derive(Clone, Debug, PartialEq)]
pub struct OverSeeds {
    /// What it is, in words: `α 0.02`, or `α about 0.02` where each seed has found a range of its own.
    pub name: String,
    /// How many there are.
    pub seeds: usize,
    /// What to judge by.
    pub score: Spread,
    /// Share of right answers.
    pub accuracy: Spread,
    /// The loss.
    pub loss: Spread,
    /// The cost.
    pub cost: Spread,
    /// Questions asked.
    pub acquisitions: Spread,
}

/// Runs of older versions do not say so.
fn first_method() -> String {
    crate::nmppg::NAME.into()
}

impl Point {
    /// The name of what trades loss for cost.
    pub fn symbol(&self) -> &'static str {
        match reader(&self.method).map(|method| method.tradeoff) {
            Ok(Tradeoff::Threshold) => "threshold",
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
    /// A run on a data set that has no model yet; `problem` and `engine` are what it is trained on.
    pub fn new(problem: &str, engine: &str, data: &Dataset, encoding: &Encoding) -> Self {
        let of = data.problem();
        Self {
            querent: env!("CARGO_PKG_VERSION").into(),
            command: String::new(),
            problem: problem.into(),
            problem_file: None,
            data_dir: None,
            sample: None,
            engine: engine.into(),
            metric: encoding.metric,
            sizes: data.sizes(),
            classes: of.classes().to_vec(),
            features: of.features().len(),
            columns: of.columns(),
            full_cost: of.features().iter().map(|feature| feature.cost).sum(),
            known: encoding.known.iter().map(|field| field.name.clone()).collect(),
            points: Vec::new(),
            nothing: None,
            everything: None,
            tried: BTreeMap::new(),
        }
    }

    /// The model of each point, at its trade-off, as it is found by the point.
    ///
    /// # Errors
    /// What finding it says, or it was not trained for that trade-off.
    pub fn models(&self, find: impl Fn(&Point) -> Result<Model>) -> Result<Vec<Model>> {
        self.points.iter().map(|point| at(find(point)?, point.alpha)).collect()
    }

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

    /// The models' trade-offs, each with the mean over its seeds; nothing where there is one seed. Models of a range that
    /// was found have other α each: there, points at the same place of their ranges belong together.
    pub fn over_seeds(&self) -> Vec<OverSeeds> {
        let mut groups: Vec<(&str, Option<usize>, Vec<&Point>)> = Vec::new();
        for (index, point) in self.points.iter().enumerate() {
            let first = self.points.iter().position(|other| other.model == point.model).unwrap_or(index);
            let place = point.range.map(|_| index - first);
            let same = |group: &&mut (&str, Option<usize>, Vec<&Point>)| {
                let alike = place.is_some() || group.2.iter().all(|other| other.alpha == point.alpha);
                group.0 == point.method && group.1 == place && alike
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.2.push(point),
                None => groups.push((&point.method, place, vec![point])),
            }
        }
        groups.into_iter().filter(|group| group.2.len() > 1).map(|group| self.mean_of(&group.2)).collect()
    }

    fn mean_of(&self, points: &[&Point]) -> OverSeeds {
        let of = |value: &dyn Fn(&Summary) -> f64| {
            Spread::of(&points.iter().map(|point| value(&point.test)).collect::<Vec<f64>>())
        };
        let (symbol, first) = (points[0].symbol(), points[0].alpha);
        let logs: f64 = points.iter().map(|point| point.alpha.ln()).sum();
        let name = if points.iter().all(|point| point.alpha == first) {
            format!("{symbol} {first}")
        } else {
            format!("{symbol} about {}", rounded((logs / points.len() as f64).exp()))
        };
        OverSeeds {
            name,
            seeds: points.len(),
            score: of(&|test| test.score(self.metric)),
            accuracy: of(&|test| test.accuracy),
            loss: of(&|test| test.loss),
            cost: of(&|test| test.cost),
            acquisitions: of(&|test| test.acquisitions),
        }
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
